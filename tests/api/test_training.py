"""`mispair.train` takes its arguments as the command line takes its options: what was said, over the configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml

import mispair as mp
from mispair.data import DataConfig
from tests.colours import colour_encoder, write_colours

FEW = {
    "data": {"path": "scenes", "min_count": 1, "scenes": {"pictures": 60}, "noise": {"rate": 0.5}},
    "train": {"epochs": 1, "batch_size": 16},
    "method": {"name": "plain"},
    "model": {"name": "vse", "embed": 16, "words": "bag"},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(FEW))
    return tmp_path / "few.yaml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> mp.TrainedRun:
    folder = tmp_path_factory.mktemp("training")
    (folder / "few.yaml").write_text(yaml.safe_dump(FEW))
    return mp.train(config=folder / "few.yaml", out=folder / "run", quiet=True)


def test_data_beside_a_configuration_changes_what_it_says_and_no_more(config: Path, tmp_path: Path) -> None:
    named = mp.train("scenes", config=config, out=tmp_path / "named", quiet=True).config.data
    assert named.noise is not None
    assert (named.noise.rate, named.min_count, named.scenes.pictures) == (0.5, 1, 60)
    section = DataConfig(path="scenes", min_count=2)
    said = mp.train(section, config=config, out=tmp_path / "section", quiet=True).config.data
    assert said.noise is not None
    assert (said.noise.rate, said.min_count, said.scenes.pictures) == (0.5, 2, 60)


def test_values_of_other_libraries_are_options_too(config: Path, tmp_path: Path) -> None:
    place = Path("phot\u00f6s \U0001f600")
    options = {"train.lr": np.float32(0.25), "seed": torch.tensor(7), "data.images": place, "data.noise": None}
    said = mp.train(config=config, out=tmp_path / "run", options=options, quiet=True).config
    assert (said.train.lr, said.seed, said.data.noise) == (0.25, 7, None)
    assert Path(str(said.data.images)).name == str(place)
    with pytest.raises(mp.InputError, match=r"train.lr takes a number, a text, a list or a dictionary, got function"):
        mp.train(config=config, out=tmp_path / "other", options={"train.lr": lambda: 1}, quiet=True)


def test_an_encoder_without_data_is_refused(config: Path, tmp_path: Path) -> None:
    with pytest.raises(mp.InputError, match="encoder= encodes the pictures of data: name the data"):
        mp.train(config=config, encoder="basic", out=tmp_path / "run", quiet=True)


@pytest.mark.parametrize("model", ["sgr", "sgr:small", {"name": "sgr"}])
def test_a_model_that_compares_words_gets_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: object) -> None:
    """As on the command line: few captions are read as vectors of the encoder, but not by a model of words."""
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    table, encoder = write_colours(tmp_path), colour_encoder()
    options = {"model.embed": 8, "model.sim": 4, "method.name": "plain"}
    run = mp.train(
        table, images=tmp_path / "photos", encoder=encoder, model=model, epochs=1, options=options, quiet=True,
        out=tmp_path / "run",
    )  # fmt: skip
    assert run.vocabulary is not None
    assert run.config.data.second is None


def test_a_device_that_is_not_there_is_refused_in_a_sentence(run: mp.TrainedRun) -> None:
    for device in ("gpu7", "meta:x"):
        with pytest.raises(mp.InputError, match=f"there is no device '{device}' here; try 'auto' or 'cpu'"):
            mp.load(run.folder, device=device)
    assert mp.load(run.folder, device="cpu").metrics == run.metrics


@pytest.mark.parametrize("nothing", [5, None, [5]])
def test_what_is_no_run_is_refused_in_a_sentence(nothing: object, tmp_path: Path) -> None:
    said = "a run is a run folder or what mispair.load gave, got"
    with pytest.raises(mp.InputError, match=said):
        mp.evaluate(nothing)  # type: ignore[arg-type]
    if nothing is not None:
        with pytest.raises(mp.InputError, match=said):
            mp.index(nothing, tmp_path / "index")  # type: ignore[arg-type]


def test_captions_come_as_columns_of_any_library(run: mp.TrainedRun) -> None:
    captions = ["a red circle", "two blue squares"]
    expected = run.encode_texts(captions).vectors
    columns = [tuple(captions), np.array(captions), pa.array(captions), pa.chunked_array([captions]), iter(captions)]
    pandas = pytest.importorskip("pandas")
    for column in (*columns, pandas.Series(captions, index=[7, 9])):
        assert np.array_equal(run.encode_texts(column).vectors, expected), type(column)


@pytest.mark.parametrize("nothing", [5, None, [], np.array(5.0), np.empty((0, 3))])
def test_nothing_to_encode_is_said(run: mp.TrainedRun, nothing: object) -> None:
    with pytest.raises(mp.InputError, match="texts"):
        run.encode_texts(nothing)
    with pytest.raises(mp.InputError, match="features"):
        run.encode_images(nothing)
