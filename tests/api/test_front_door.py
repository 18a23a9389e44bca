"""The front door: what a notebook does with `import mispair as mp`."""

import importlib.util
import inspect
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

import mispair as mp
from mispair import api
from mispair.data import DataConfig, ScenesConfig
from mispair.types import Encoded

SMALL = {"data.scenes.pictures": 120, "data.min_count": 1}


class OwnNetwork(nn.Module):
    """One linear map per side; keeps `RetrievalModel` without deriving from anything of ours."""

    def __init__(self, sizes):
        super().__init__()
        self.images = nn.Linear(sizes.image_width, 8)
        self.words = nn.Embedding(sizes.vocabulary_size, 8)

    def encode_images(self, images, mask):
        return self._whole(self.images(images), mask)

    def encode_texts(self, texts, mask):
        return self._whole(self.words(texts), mask)

    def _whole(self, parts, mask):
        mean = (parts * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return Encoded(normalize(mean, dim=-1)[:, None], torch.ones(len(mean), 1, dtype=torch.bool))

    def similarity(self, images, texts, *, sparse=False):
        return self.pool_images(images) @ self.pool_texts(texts).T

    def paired(self, images, texts, rows, cols):
        return (self.pool_images(images)[rows] * self.pool_texts(texts)[cols]).sum(-1)

    def link(self, logits):
        return logits

    def pool_images(self, images):
        return images.values[:, 0]

    def pool_texts(self, texts):
        return texts.values[:, 0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("api") / "run"
    heard = []
    trained = mp.train(
        "scenes", method="l2rm", model="vse", epochs=3, batch_size=32, lr=0.01, noise=0.4, seed=1, out=out,
        options={**SMALL, "model.embed": 16}, on_epoch=heard.append, quiet=True,
    )  # fmt: skip
    assert [report.epoch for report in heard] == [0, 1, 2]
    return trained


def test_a_trained_run_is_a_loaded_run(run):
    again = mp.load(run.folder)
    assert again.metrics == run.metrics
    assert again.metrics["noise"]["rate"] == pytest.approx(0.4, abs=0.15)
    assert again.config == run.config
    assert (run.config.train.lr, run.config.train.batch_size, run.config.seed) == (0.01, 32, 1)
    assert [line["epoch"] for line in again.history] == [0, 1, 2]
    assert "finished, rSum" in repr(again)
    assert mp.evaluate(again)["rsum"] == pytest.approx(run.metrics["test"]["rsum"])


def test_scores_of_raw_captions_are_those_of_the_evaluation(run):
    data = run.open_split("test")
    features = data.image_batch(np.arange(5))[0].numpy()
    captions = [data.table.captions[k] for k in range(7)]
    scores = run.score(features, captions)
    assert scores.shape == (5, 7)
    whole = run.score(data.image_batch(np.arange(len(data.images)))[0], data.table.captions)
    assert np.allclose(whole[:5, :7], scores, atol=1e-5)
    texts, images = run.encode_texts(captions), run.encode_images(features)
    assert np.array_equal(run.encode_text(captions).vectors, texts.vectors)
    assert (len(texts), len(images)) == (7, 5)
    assert np.allclose(np.linalg.norm(texts.vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(run.score(images, texts), scores, atol=1e-6)
    assert run.encode_texts("one caption").vectors.shape[0] == 1
    assert repr(texts) == "EncodedItems(7 items, vectors (7, 16))"


def test_vectors_of_several_networks_rank_by_the_mean_of_their_cosines(run):
    """Methods that train two networks score with both: one vector per item, whose products are the means."""
    other = mp.load(run.folder).models[0]
    for parameter in other.parameters():
        parameter.data.mul_(-0.5)
    features, captions = run.open_split("test").image_batch(np.arange(5))[0], ["a red ring", "a blue star"]
    single = [replace(run, models=[model]) for model in (run.models[0], other)]
    cosines = [one.encode_images(features).vectors @ one.encode_texts(captions).vectors.T for one in single]
    both = replace(run, models=[run.models[0], other])
    images, texts = both.encode_images(features).vectors, both.encode_texts(captions).vectors
    assert np.allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)
    assert np.allclose(images @ texts.T, np.mean(cosines, axis=0), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda run: run.encode_images(np.ones(3)), "must have shape"),
        (lambda run: run.encode_images(np.array([[[np.nan] * 64]])), "row 0 holds NaN"),
        (lambda run: run.encode_images([["a"]]), "must be numbers"),
        (lambda run: run.encode_texts(np.ones((2, 3))), "was trained on captions"),
        (lambda run: mp.load(run.folder, model="vse"), "knows which of our models"),
        (lambda run: mp.load(run.folder, model=OwnNetwork), "leave the network out"),
        (lambda run: run.encode_texts([]), "nothing to encode"),
        (lambda run: mp.train(resume=run.folder, epochs=3), "leave the other arguments out"),
        (lambda run: mp.train(resume=run.folder, features="images.npy"), "leave the other arguments out"),
        (lambda run: mp.train(resume=run.folder, weights="weight"), "leave the other arguments out"),
        (lambda run: mp.audit(5), "judged by a run folder, .* got int"),
        (lambda run: mp.audit(run.models[0]), "give the pairs too"),
        (lambda run: run.evaluate(data="nowhere.csv"), "nowhere.csv does not exist"),
        (lambda run: mp.merge_embedded([], "whole"), "name the folders of all shards"),
        (lambda run: mp.train("scenes", method="magic"), "no method 'magic'"),
        (lambda run: mp.train("scenes", model=3), "model is a name, a configuration or a dictionary"),
        (lambda run: mp.train("scenes", method=["l2rm"]), "method is a name, a configuration or a dictionary"),
        (lambda run: mp.train("scenes", model={"name": "vse", "depth": 3}), "there is no model.depth"),
        (lambda run: mp.train("scenes", options={"train.speed": 3}), "there is no train.speed"),
        (lambda run: mp.train("scenes", epochs="3"), "epochs is a whole number, got '3'"),
        (lambda run: mp.train(pa.table({"a": [1]})), "data is a path, got Table; save what is in memory first"),
        (lambda run: mp.check(pa.table({"a": [1]})), "data is a path, got Table"),
        (lambda run: mp.audit(run, pa.table({"a": [1]})), "data is a path, got Table"),
        (lambda run: run.evaluate(data=pa.table({"a": [1]})), "data is a path, got Table"),
        (lambda run: mp.audit(run, folds=0).fix("drop", "new", data=pa.table({"a": [1]})), "data is a path, got Table"),
        (lambda run: mp.register(OwnNetwork), "neither a method nor a model"),
    ],
)
def test_mistakes_are_input_errors(run, call, sentence):
    with pytest.raises(mp.InputError, match=sentence):
        call(run)


def test_audit_of_a_run_its_path_and_its_data(run):
    by_run = mp.audit(run, folds=0)
    assert len(by_run) == len(run.open_split("train"))
    assert np.array_equal(mp.audit(str(run.folder), folds=0).p_mismatch, by_run.p_mismatch)
    assert np.array_equal(mp.audit(run, "scenes", folds=0).p_mismatch, by_run.p_mismatch)


@pytest.mark.parametrize("model", [OwnNetwork, "made"])
def test_a_network_of_ones_own_trains_saves_and_loads(tmp_path, model):
    if model == "made":
        from mispair.models import InputSizes

        probe = mp.train("scenes", model="vse", method="plain", epochs=1, batch_size=32, out=tmp_path / "probe",
                         options=SMALL, quiet=True)  # fmt: skip
        sizes = InputSizes.model_validate_json(probe.about["sizes"])
        model = OwnNetwork(sizes)
        again = OwnNetwork(sizes)
    else:
        again = OwnNetwork
    run = mp.train("scenes", method="plain", model=model, epochs=2, batch_size=32, lr=0.05, out=tmp_path / "own",
                   options=SMALL, quiet=True)  # fmt: skip
    assert run.config.model.name == "own"
    assert run.config.model.describes == "OwnNetwork"
    loaded = mp.load(tmp_path / "own", model=again)
    assert loaded.evaluate()["rsum"] == pytest.approx(run.metrics["test"]["rsum"])
    assert len(mp.audit(loaded, folds=2)) == len(run.open_split("train"))
    with pytest.raises(mp.InputError, match=r"a network of its own \(OwnNetwork\)"):
        mp.load(tmp_path / "own")
    with pytest.raises(mp.InputError, match="does not fit"):
        mp.load(tmp_path / "own", model=lambda sizes: OwnNetwork(sizes.model_copy(update={"image_width": 3})))


def test_a_run_goes_to_other_programs(run, tmp_path):
    for what in (run, run.folder):
        out = mp.export(what, tmp_path / type(what).__name__)
        assert (out / "model.safetensors").exists()


def test_one_network_is_not_two(tmp_path):
    from mispair.models import InputSizes

    network = OwnNetwork(InputSizes(image_width=64, vocabulary_size=9))
    with pytest.raises(mp.InputError, match="trains several networks"):
        mp.train("scenes", method="ncr", model=network, epochs=3, out=tmp_path / "a", options=SMALL, quiet=True)
    with pytest.raises(mp.InputError, match="lacks encode_images"):
        mp.train("scenes", model=nn.Linear(2, 2), epochs=3, out=tmp_path / "a", options=SMALL, quiet=True)
    with pytest.raises(mp.InputError, match="must make a torch.nn.Module"):
        mp.train("scenes", model=lambda sizes: 3, epochs=3, out=tmp_path / "a", options=SMALL, quiet=True)
    assert not list(tmp_path.iterdir())


def test_corrupt_check_and_methods(tmp_path):
    few = DataConfig(path="scenes", scenes=ScenesConfig(pictures=120))
    index = mp.corrupt(few, tmp_path / "index.npy", rate=0.5)
    assert (tmp_path / "index.npy").exists()
    assert len(index.hash) == 64
    shifted = mp.corrupt(few, tmp_path / "shifted.npy", rate=0.5, shift=3)
    assert shifted.hash not in (index.hash, mp.corrupt(few, tmp_path / "other.npy", shift=3, start=9).hash)
    assert mp.corrupt(few, tmp_path / "one.npy", rate=0.5, repeat=True).hash != index.hash
    with pytest.raises(mp.InputError, match="rate is missing"):
        mp.corrupt(few, tmp_path / "none.npy")
    with pytest.raises(mp.InputError, match="one of index, shift and repeat"):
        mp.corrupt(few, tmp_path / "none.npy", rate=0.5, shift=1, repeat=True)
    assert not (tmp_path / "none.npy").exists()
    steps = []
    found = mp.check(few, noise=tmp_path / "index.npy", tell=lambda what, done, total: steps.append(what))
    assert steps
    assert {split.split for split in found.splits} == {"train", "dev", "test"}
    assert "l2rm" in [method.name for method in mp.list_methods()]


@pytest.mark.parametrize("name", api.__all__)
def test_no_package_has_the_name_of_a_function(name):
    """`import mispair.NAME.module as m` would find the function in the place of the package."""
    assert importlib.util.find_spec(f"mispair.{name}") is None


def test_importing_costs_nothing():
    code = "import sys, mispair, mispair.api; print([m for m in ('torch', 'numpy', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", api.__all__)
def test_every_function_says_what_it_takes_and_gives(name):
    function = getattr(mp, name)
    assert function is getattr(api, name)
    text = inspect.getdoc(function)
    parameters = inspect.signature(function).parameters
    assert not [p for p in parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)], (
        "nothing completes those"
    )
    assert "Example:" in text
    assert "Returns:" in text
    assert not parameters or "Args:" in text
    for parameter in parameters:
        assert parameter in text.partition("Args:")[2], parameter
    assert "return" in function.__annotations__
