"""`mispair corrupt`: index files as published, the same as the library's, nothing hidden."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, NoiseConfig, open_split
from tests.data.picture_samples import write_pictures
from tests.data.samples import Ran, precomp, run, table, write_lines

Run = Callable[..., Ran]


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.mark.parametrize(("protocol", "entries"), [("image", 20), ("caption", 100)])
def test_file_equals_library(tmp_path: Path, mispair: Run, protocol: str, entries: int) -> None:
    data, out = precomp(tmp_path / "data", images=20), tmp_path / "index.npy"
    ran = mispair("corrupt", data, "--rate", 0.4, "--protocol", protocol, "--seed", 3, "-o", out, "--json")
    assert ran.code == 0, ran
    facts = json.loads(ran.out)
    index = np.load(out, allow_pickle=False)
    assert index.shape == (entries,)
    assert index.dtype == np.int64
    noise = NoiseConfig(rate=0.4, protocol=protocol, seed=3)  # type: ignore[arg-type]
    drawn = open_split(DataConfig(path=str(data), noise=noise), "train")
    read = open_split(DataConfig(path=str(data), noise=NoiseConfig(index=str(out))), "train")
    assert facts["hash"] == drawn.noise_hash == read.noise_hash
    assert np.array_equal(drawn.table.image_rows, read.table.image_rows)
    assert drawn.table.truth is not None
    wrong = int(drawn.table.truth.mismatched.sum())
    assert facts["chosen_pairs"] == 40
    assert facts["mismatched_pairs"] == wrong
    assert facts["fixed_points"] == 40 - wrong


def test_the_table_names_everything(tmp_path: Path, mispair: Run) -> None:
    ran = mispair("corrupt", precomp(tmp_path / "data"), "--rate", 0.5, "-o", tmp_path / "i.npy")
    assert ran.code == 0
    for word in ("pairs", "chosen", "mismatched pairs", "fixed points", "hash", "i.npy", "image"):
        assert word in ran.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "i.npy"], "no leftovers"


def test_train_takes_the_index_by_the_option_that_check_has_for_it(tmp_path: Path, mispair: Run) -> None:
    data, out = precomp(tmp_path / "data", images=40, splits=("train", "dev")), tmp_path / "the index.npy"
    ran = mispair("corrupt", data, "--rate", 0.4, "-o", out)
    name, *arguments = shlex.split(ran.out.splitlines()[-1].partition(": ")[2])
    assert (name, arguments[0]) == ("mispair", "train")
    train = [*arguments, "--epochs", 1, "--json", "-o", tmp_path / "run", "--set", "model.embed=8"]
    trained = mispair(*train)
    assert trained.code == 0, trained
    drawn = open_split(DataConfig(path=str(data), noise=NoiseConfig(rate=0.4)), "train")
    assert json.loads(trained.out)["noise"]["hash"] == drawn.noise_hash
    for wrong in ("much", "index.json"):
        refused = mispair("train", data, "--noise", wrong, "-o", tmp_path / "no")
        assert (refused.code, refused.out) == (2, "")
        assert f"or an index (.npy) that mispair corrupt wrote, got {wrong!r}" in refused.err
    assert not (tmp_path / "no").exists()


def test_seed_decides(tmp_path: Path, mispair: Run) -> None:
    data = precomp(tmp_path / "data", images=30)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert mispair("corrupt", data, "--rate", 0.5, "--seed", seed, "-o", tmp_path / f"{name}.npy").code == 0
    a, b, c = ((tmp_path / f"{name}.npy").read_bytes() for name in "abc")
    assert a == b != c


def test_shift_and_repeat(tmp_path: Path, mispair: Run) -> None:
    data = precomp(tmp_path / "data", images=10, per_image=1, splits=("train", "dev"))
    assert mispair("corrupt", data, "--from", 4, "--shift", 2, "-o", tmp_path / "s.npy").code == 0
    assert np.load(tmp_path / "s.npy").tolist() == [0, 1, 2, 3, 8, 9, 4, 5, 6, 7]
    assert mispair("corrupt", data, "--rate", 0.5, "--repeat", "-o", tmp_path / "r.npy").code == 0
    images, texts = np.load(tmp_path / "r.npy")
    assert images.tolist() == list(range(10))
    assert np.bincount(texts).max() in (5, 6)
    for name in ("s.npy", "r.npy"):
        assert mispair("check", data, "--noise", tmp_path / name).code == 0


def test_a_table_needs_no_features(tmp_path: Path, mispair: Run) -> None:
    path = table(tmp_path, 40)
    ran = mispair("corrupt", path, "--rate", 0.5, "--split", "all", "-o", tmp_path / "i.npy")
    assert ran.code == 0, ran
    assert len(np.load(tmp_path / "i.npy")) == 40
    assert "image from 'image_id'" in ran.out
    ran = mispair("corrupt", path, "--rate", 0.5, "-o", tmp_path / "t.npy", "--json")
    assert any("no split column: train, dev and test are parts" in note for note in json.loads(ran.out)["notes"])


def test_force_overwrites(tmp_path: Path, mispair: Run) -> None:
    data, out = precomp(tmp_path / "data"), tmp_path / "i.npy"
    out.write_text("old")
    assert mispair("corrupt", data, "--rate", 0.5, "-o", out).code == 2
    assert out.read_text() == "old"
    assert mispair("corrupt", data, "--rate", 0.5, "-o", out, "--force").code == 0
    assert len(np.load(out)) == 7


def test_scenes_are_the_default(tmp_path: Path, mispair: Run) -> None:
    ran = mispair("corrupt", "--rate", 0.2, "-o", tmp_path / "i.npy", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["data"] == "scenes"


def test_pairs_without_a_picture_are_left_out_as_training_leaves_them_out(tmp_path: Path, mispair: Run) -> None:
    """The index has an entry per image that training sees."""
    write_pictures(tmp_path / "shown", [f"{k}.png" for k in range(8)])
    rows = [f"{k}.png,a dog,train" for k in range(10)]
    path = write_lines(tmp_path / "p.csv", ["filepath,title,split", *rows, "7.png,a cat,dev"])
    out = tmp_path / "index.npy"
    ran = mispair("corrupt", path, "--images", tmp_path / "shown", "--missing", "skip", "--rate", 0.5, "-o", out)
    assert ran.code == 0, ran.err
    assert len(np.load(out)) == 8
