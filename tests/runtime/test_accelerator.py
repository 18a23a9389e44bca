"""Epochs of every method and backbone where no value can be read: a step makes the host wait for nothing."""

import numpy as np
import pytest
import torch

from mispair.evaluation_mode import evaluation_mode
from mispair.methods import build_method, method_names, method_preset
from mispair.models import build_model, model_preset
from mispair.models.dual import DualConfig
from mispair.models.sgr import SGR
from mispair.models.sizes import InputSizes
from mispair.retrieval.scoring import score_grid
from mispair.runtime.engine import Engine, EngineConfig
from mispair.runtime.epoch_run import EpochRun
from mispair.runtime.randomness import Streams
from mispair.runtime.train_config import TrainConfig
from mispair.types import Encoded, PairBatch
from mispair.workflows.assemble import input_sizes
from tests.runtime.accelerator import META, pretended
from tests.synthetic import tiny_data

BATCH = 32
SMALL = {"embed": 8, "word_dim": 4, "sim": 4, "shortlist": None}
SHORT = {"warmup_epochs": 1, "noisy_from": 0, "restart_at": (1,)}


class Silent:
    """A journal that says nothing."""

    def track(self, items, *_):
        return iter(items)

    def note(self, sentence):
        pass


def small(name, **changes):
    config = model_preset(name, "small")
    known = {**SMALL, **changes}
    return config.model_copy(update={key: value for key, value in known.items() if key in type(config).model_fields})


def engine(**values):
    made = Engine(EngineConfig(device="cpu", **values))
    made.device = META
    return made


def epochs(method, data, on, count=2):
    """Whole epochs: surveys, sweeps, steps."""
    on.adopt(method.modules, method.rate_scale, method.networks, 0.9)
    on.set_learning_rate(1e-3)
    config = TrainConfig(batch_size=BATCH, epochs=count, drop_words=0.2, drop_regions=0.2)
    run = EpochRun(config, on, data, method, Silent(), Streams(0), lambda between: None)
    for epoch in range(count):
        run.begin(epoch)
        method.epoch(epoch, run)
        run.end()
    assert on.steps > 0
    return run


@pytest.fixture(scope="module")
def data():
    return tiny_data(rate=0.5, pictures=30)


@pytest.fixture(scope="module")
def one_batch():
    """All that a method without phases asks of a network, once: two batches ask twice."""
    data = tiny_data(rate=0.5, pictures=14)
    assert BATCH <= len(data) < 2 * BATCH
    return data


@pytest.mark.parametrize("name", method_names())
def test_a_method_reads_nothing_in_a_step(name, data, monkeypatch):
    config = method_preset(name)
    config = config.model_copy(update={k: v for k, v in SHORT.items() if k in type(config).model_fields})
    with pretended(monkeypatch):
        method = build_method(config, lambda: build_model(small("vse"), input_sizes(data)).to(META), BATCH)
        epochs(method, data, engine())


@pytest.mark.parametrize("changes", [{"kind": "queue", "size": 32}, {"kind": "batch"}])
def test_the_candidates_of_l2rm_read_nothing_else(changes, data, monkeypatch):
    config = method_preset("l2rm")
    config = config.model_copy(update={"warmup_epochs": 1, "candidates": config.candidates.model_copy(update=changes)})
    with pretended(monkeypatch):
        method = build_method(config, lambda: build_model(small("vse"), input_sizes(data)).to(META), BATCH)
        epochs(method, data, engine())


@pytest.mark.parametrize("name", ["sgr", "saf", "imram"])
@pytest.mark.parametrize("loss", ["infonce", "triplet"])
def test_a_backbone_reads_nothing_in_a_step(name, loss, one_batch, monkeypatch):
    config = method_preset("plain").model_copy(update={"loss": loss})
    with pretended(monkeypatch):
        method = build_method(config, lambda: build_model(small(name), input_sizes(one_batch)).to(META), BATCH)
        epochs(method, one_batch, engine(), 1)


@pytest.mark.parametrize("changes", [{"words": "gru"}, {"words": "gru", "pooling": "gpo"}, {"pooling": "gpo"}])
def test_vse_reads_nothing_in_a_step(changes, one_batch, monkeypatch):
    config = method_preset("plain").model_copy(update={"loss": "infonce"})
    with pretended(monkeypatch):
        method = build_method(
            config, lambda: build_model(small("vse", **changes), input_sizes(one_batch)).to(META), BATCH
        )
        epochs(method, one_batch, engine(), 1)


def test_chunks_and_shortlists_read_nothing(one_batch, monkeypatch):
    config = method_preset("plain").model_copy(update={"loss": "infonce"})
    ways = []
    for way in ("_by_means", "_shortlisted"):
        known = getattr(SGR, way)
        monkeypatch.setattr(SGR, way, lambda *given, way=way, known=known: (ways.append(way), known(*given))[1])
    with pretended(monkeypatch):
        make = lambda: build_model(small("sgr", shortlist=1, shortlist_after=1), input_sizes(one_batch)).to(META)  # noqa: E731
        epochs(build_method(config, make, BATCH), one_batch, engine(chunk=16), 2)
    assert ways == ["_by_means"] * (len(ways) // 2) + ["_shortlisted"] * (len(ways) // 2), "an epoch of each"
    assert ways


def test_dual_reads_nothing_in_a_step_nor_when_it_is_scored(monkeypatch):
    sizes = InputSizes(image_width=6, text_width=6)
    with pretended(monkeypatch):
        model = build_model(DualConfig(hidden=4, temperature="learned", bias=-1.0), sizes).to(META).train()
        vectors, real = torch.ones(5, 1, 6, device=META), torch.ones(5, 1, dtype=torch.bool, device=META)
        on = engine()
        on.adopt({"net": model}, {})
        sides = on.encode(model, PairBatch(vectors, real, vectors, real, torch.arange(5, device=META)))
        on.minimize("net", model.link(model.similarity(*sides)).sum())
        with evaluation_mode(model):
            images, texts = model.encode_images(vectors, real), model.encode_texts(vectors, real)
        assert score_grid([model], [images], [texts]).shape == (5, 5)


@pytest.mark.parametrize("name", ["vse", "sgr", "saf", "imram"])
def test_scoring_reads_nothing(name, data, monkeypatch):
    with pretended(monkeypatch):
        model = build_model(small(name), input_sizes(data)).to(META)
        batch = data.batch(np.arange(10)).to(META)
        with evaluation_mode(model):
            images = model.encode_images(batch.images, batch.image_mask)
            texts = model.encode_texts(batch.texts, batch.text_mask)
        assert score_grid([model], [images], [texts]).shape == (10, 10)


def test_what_reads_is_found(monkeypatch):
    """The watch itself: each of these would make a real device wait, or fail there."""
    with pretended(monkeypatch):
        there, here = torch.ones(3, device=META), torch.ones(3)
        for wait in (
            lambda: there.sum().item(),
            lambda: bool(there.any()),
            there.nonzero,
            there.cpu,
            lambda: there[there > 0],
            lambda: Encoded(there[:, None, None], there[:, None] > 0).take(there > 0),
        ):
            with pytest.raises((RuntimeError, NotImplementedError)):
                wait()
        with pytest.raises(AssertionError, match="mixes"):
            there + here
        with pytest.raises(AssertionError, match="mixes"):
            there[torch.tensor([0, 1])]
        assert (there + here.sum()).device == META
