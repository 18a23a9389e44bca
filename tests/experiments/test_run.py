"""A whole experiment from Python: cells, then the table."""

from functools import partial

import pytest

import mispair as mp
from mispair.encoders import registry
from tests.colours import colour_encoder, write_colours
from tests.data.samples import run
from tests.experiments.grids import write_spec

TINY = {
    "data.holdout": [0.2, 0.2], "data.min_count": 1, "model.embed": 16, "model.word_dim": 8, "train.batch_size": 16,
    "train.epochs": 2,
}  # fmt: skip


def test_an_experiment_from_python(tmp_path):
    heard = []
    spec = str(write_spec(tmp_path))
    only = ["row=plain", "column=0.2"]
    table = mp.run_experiment(spec, tmp_path / "out", seeds=1, only=only, say=heard.append)
    assert "| plain" in table
    assert any("plain 0.2 seed 0" in line for line in heard)
    assert (tmp_path / "out" / "tables" / "tiny.md").read_text() == table
    assert mp.run_experiment(spec, tmp_path / "out", seeds=1, only=only) == table  # finished cells stay


def test_mistakes_are_input_errors(tmp_path):
    with pytest.raises(mp.InputError, match="nowhere does not exist"):
        mp.run_experiment(str(write_spec(tmp_path)), tmp_path / "out", data="nowhere", kind="scenes")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """Pictures with captions and a spec for them; an encoder 'colours' is there."""
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    write_colours(tmp_path / "raw", 40, 4)
    return write_spec(tmp_path, data={"raw": {"set": TINY}})


def test_pictures_are_encoded_once_for_all_cells(colours, tmp_path, monkeypatch, capsys):
    mispair = partial(run, monkeypatch, capsys)
    raw = ("--data", tmp_path / "raw/pairs.csv", "--images", tmp_path / "raw/photos", "--as", "raw")
    command = ("experiments", "run", colours, *raw, "--encoder", "colours", "--seeds", 1, "-o", tmp_path / "out")
    ran = mispair(*command)
    assert ran.code == 0, ran
    features = tmp_path / "out/data/pairs/features.npy"
    written = features.stat().st_mtime_ns
    assert mispair(*command).code == 0
    assert features.stat().st_mtime_ns == written
    table = mp.run_experiment(
        str(colours), tmp_path / "out", seeds=1, kind="raw", encoder="colours",
        data=str(tmp_path / "raw/pairs.csv"), images=tmp_path / "raw/photos",
    )  # fmt: skip
    assert "| plain" in table
    again = mispair(*command, "--cells")
    assert again.code == 2
    assert "was made by 'colours' without cells" in again.err
    brought = mispair(
        "experiments", "run", colours, "--data", features.parent, "--as", "raw", "--cells", "-o", tmp_path / "o"
    )
    assert brought.code == 2
    assert "brings its features" in brought.err
