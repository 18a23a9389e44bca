"""A table of one's own, from the first look to training on what was mended, with files where people have them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.samples import Ran, run

COLOURS = ("red", "green", "blue", "white", "black", "brown", "pink", "grey")
IMAGES, LOST = 160, 4
SHORT = ("--set", "train.epochs=3", "--set", "method.warmup_epochs=1", "--set", "train.batch_size=16")
QUICK = (*SHORT, "--set", "data.min_count=1")


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose features have another name, ids in a file of any name, and no features for a few images."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, len(COLOURS), IMAGES)
    shown = rng.permutation(IMAGES)[: IMAGES // 4]
    said = kinds.copy()
    said[shown] = rng.permutation(said[shown])
    names = [f"im{k}.jpg" for k in range(IMAGES)]
    words = [f"a {COLOURS[c]} thing" for c in said]
    pq.write_table(pa.table({"image": names, "caption": words}), tmp_path / "pairs.parquet")
    np.save(tmp_path / "images.npy", (np.eye(8)[kinds] + 0.1 * rng.normal(size=(IMAGES, 8)))[LOST:].astype(np.float32))
    (tmp_path / "names.txt").write_text("".join(f"{name}\n" for name in names[LOST:]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ok(ran: Ran) -> str:
    assert ran.code == 0, ran
    return ran.out


def test_the_way_of_the_guide(here: Path, mispair, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("--features", "images.npy", "--ids", "names.txt")
    ran = mispair("train", "pairs.parquet", *files, *QUICK, "-o", "run")
    assert (ran.code, "--missing skip" in ran.err) == (2, True)
    assert not (here / "run").exists()
    said = json.loads(ok(mispair("train", "pairs.parquet", *files, "--missing", "skip", *QUICK, "-o", "run", "--json")))
    assert said["test"]["rsum"] > 0, "the held-out test part is ranked too"
    ok(mispair("audit", "run", "--folds", 0, "-o", "audit"))
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    fixed = json.loads(ok(mispair("fix", here / "audit", "--action", "drop", "-o", here / "fixed", "--json")))
    assert {file.name for file in (here / "fixed").iterdir()} == {
        "pairs.parquet", "images.npy", "names.txt", "fix.patch"
    }  # fmt: skip
    assert fixed["pairs"] == IMAGES - LOST
    again = json.loads(ok(mispair("train", *shlex.split(fixed["train"]), *QUICK, "-o", "again", "--json")))
    assert 0 < again["data"]["pairs"] < said["data"]["pairs"]


def test_training_and_judging_in_one_go(here: Path, mispair) -> None:
    files = ("--features", "images.npy", "--ids", "names.txt", "--missing", "skip")
    ok(mispair("audit", "pairs.parquet", "--train", *files, *QUICK, "--folds", 0, "-o", "audit", "--budget", 5))
    assert {"audit.parquet", "look.csv", "run"} <= {file.name for file in (here / "audit").iterdir()}
    ran = mispair("audit", "audit/run", "--features", "images.npy", "-o", "other")
    assert (ran.code, "name it with --data" in ran.err) == (2, True)


def test_a_run_ranks_other_data_with_the_features_it_is_told(here: Path, mispair) -> None:
    files = ("--features", "images.npy", "--ids", "names.txt", "--missing", "skip")
    ok(mispair("train", "pairs.parquet", *files, *QUICK, "-o", "run"))
    table = pq.read_table("pairs.parquet")
    pq.write_table(table.slice(LOST, 40), "other.parquet")
    ran = mispair("evaluate", "run", "--data", "other.parquet", "--split", "all")
    assert ran.code == 2, "the features of the run's own data are not those of other data"
    np.save("other.npy", np.load("images.npy")[:40])
    beside = ok(mispair("evaluate", "run", "--data", "other.parquet", "--split", "all", "--json"))
    named = ok(mispair("evaluate", "run", "--data", "other.parquet", *files, "--split", "all", "--json"))
    assert json.loads(beside) == json.loads(named)
    assert mispair("evaluate", "run", "--features", "images.npy").code == 2


def test_two_arrays_train_and_a_folder_with_one_table_is_that_table(here: Path, mispair) -> None:
    first = np.load("images.npy")
    np.save("notes.npy", first @ np.linspace(-1, 1, 40, dtype=np.float32).reshape(8, 5))
    assert json.loads(ok(mispair("train", "images.npy", "notes.npy", *SHORT, "-o", "arrays", "--json")))["dev"]
    ok(mispair("audit", "images.npy", "notes.npy", "--train", *SHORT, "--folds", 0, "-o", "audit"))
    assert mispair("audit", "arrays", "notes.npy").code == 2
    folder = here / "folder"
    folder.mkdir()
    (here / "pairs.parquet").rename(folder / "pairs.parquet")
    assert mispair("check", folder, "--features", "images.npy", "--ids", "names.txt", "--missing", "skip").code in (
        0,
        1,
    )


def test_a_folder_with_one_table_can_be_audited_and_fixed(here: Path, mispair) -> None:
    folder = here / "folder"
    folder.mkdir()
    pq.write_table(pq.read_table("pairs.parquet").slice(LOST), folder / "pairs.parquet")
    np.save(folder / "pairs.npy", np.load("images.npy"))
    ok(mispair("train", folder, *QUICK, "-o", "run"))
    ok(mispair("audit", "run", "-o", "audit"))
    fixed = json.loads(ok(mispair("fix", "audit", "--action", "drop", "-o", "fixed", "--json")))
    assert fixed["train"] == "fixed/pairs.parquet"
    assert mispair("train", "fixed", *QUICK, "-o", "again").code == 0, "the folder is enough"


def test_few_images_are_audited_without_folds(here: Path, mispair) -> None:
    pq.write_table(pq.read_table("pairs.parquet").slice(LOST, 36), "few.parquet")
    np.save("few.npy", np.load("images.npy")[:36])
    ok(mispair("train", "few.parquet", "--epochs", "2", "--set", "train.batch_size=4", "-o", "run"))
    facts = json.loads(ok(mispair("audit", "run", "-o", "audit", "--json")))
    assert "cross-fitting" not in facts["held_out"]
    ran = mispair("audit", "run", "-o", "other", "--folds", 2)
    assert (ran.code, "cross-fitting needs at least 40 images, got 36" in ran.err) == (2, True)


def test_refusals_come_before_the_work(here: Path, mispair) -> None:
    files = ("--features", "images.npy", "--ids", "names.txt", "--missing", "skip")
    ok(mispair("train", "pairs.parquet", *files, *QUICK, "-o", "run"))
    (here / "empty").mkdir()
    for arguments, said in (
        (("audit", "run", "--data", "empty", "-o", "a"), "holds no data mispair knows"),
        (("audit", "run", "--truth-column", "wrong", "-o", "a"), "has no column 'wrong'"),
        (("audit", "pairs.parquet", "--train", "--data", "x", "-o", "a"), "leave --data out"),
        (("train", "pairs.parquet", "--resume", "run"), "--resume goes on with a run as it was"),
        (("train", "--resume", "run", "--features", "images.npy"), "--resume goes on with a run as it was"),
    ):
        ran = mispair(*arguments)
        assert (ran.code, said in ran.err.replace("\n", " ")) == (2, True), ran
        assert not (here / "a").exists()
    (here / "run" / "metrics.json").write_text("{")
    assert "metrics.json is damaged" in mispair("runs", here).err.replace("\n", " ")


def test_names_that_look_like_markup(here: Path, mispair) -> None:
    table = pq.read_table("pairs.parquet").slice(LOST)
    split = pa.array(["[/red]" if k % 2 else "train" for k in range(table.num_rows)])
    pq.write_table(table.append_column("split", split), "marked.parquet")
    ran = mispair("check", "marked.parquet", "--features", "images.npy", "--ids", "names.txt")
    assert ran.code in (0, 1)
    assert "[/red]" in ran.out


@pytest.mark.parametrize("said", ["set", "configuration"])
def test_what_is_said_of_the_data_elsewhere_decides_how_it_is_read(tmp_path: Path, mispair, said: str) -> None:
    rng = np.random.default_rng(2)
    for split, rows in (("train", 40), ("dev", 20)):
        for side in ("audio", "notes"):
            np.save(tmp_path / f"{split}_{side}.npy", rng.normal(size=(rows, 5)).astype(np.float32))
    (tmp_path / "sides.yaml").write_text("data: {sides: [audio, notes]}\nmethod: {name: plain}\n", encoding="utf-8")
    how = ("--set", "data.sides=[audio,notes]") if said == "set" else ("-c", tmp_path / "sides.yaml")
    ran = mispair("train", tmp_path, *how, "--epochs", 1, "--batch-size", 10, "--model", "vse", "-o", tmp_path / "run")
    assert ran.code == 0, ran
    assert (tmp_path / "run" / "model.safetensors").exists()
