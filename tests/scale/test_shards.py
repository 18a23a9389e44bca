"""The command line in shards: the same audit from any number of them, and one sentence for what does not fit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mispair.auditing.verdicts import Verdicts
from mispair.encoders import registry
from mispair.scale.statistics import load_statistics
from mispair.workflows.train import train
from tests.colours import colour_encoder, write_colours
from tests.data.samples import run
from tests.scale.many import write_arrays
from tests.synthetic import tiny_config


@pytest.fixture
def mispair(monkeypatch, capsys):
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def in_shards(mispair, folder: Path, out: Path, of: int, *what):
    for _ in range(2):
        for shard in range(1, of + 1):
            ran = mispair("audit", *what, "--shard", f"{shard}/{of}", "--statistics", folder)
            assert ran.code == 0, ran.err
        ran = mispair("merge", folder, *(["-o", out] if (folder / "calibration.npz").exists() else []))
        assert ran.code == 0, ran.err
    return Verdicts.load(out)


def test_any_number_of_shards_gives_the_audit_of_one(tmp_path, mispair):
    files, wrong, _ = write_arrays(tmp_path)
    found = {
        of: in_shards(mispair, tmp_path / f"s{of}", tmp_path / f"audit{of}", of, "--embeddings", *files)
        for of in (1, 2, 7)
    }
    one = found[1]
    assert abs(one.facts.rate - wrong.mean()) < 0.05
    for of in (2, 7):
        assert abs(found[of].facts.rate - one.facts.rate) < 1e-6
        assert np.abs(found[of].p_mismatch - one.p_mismatch).max() < 1e-5
        assert found[of].table.equals(one.table)
    assert one.facts.data["format"] == "arrays"


def test_a_table_names_the_rows_and_can_be_mended(tmp_path, mispair):
    files, wrong, _ = write_arrays(tmp_path, 600)
    lines = ["image_id,caption", *(f"i{k}.jpg,caption {k}" for k in range(600))]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    what = "--embeddings", *files, "--data", tmp_path / "pairs.csv"
    found = in_shards(mispair, tmp_path / "s", tmp_path / "audit", 2, *what)
    assert found[5].image_id == "i5.jpg"
    assert found[5].caption == "caption 5"
    ran = mispair("fix", tmp_path / "audit", "--action", "drop", "-o", tmp_path / "fixed")
    assert ran.code == 0, ran.err
    kept = (tmp_path / "fixed" / "pairs.csv").read_text().splitlines()
    assert abs(len(kept) - 1 - (~wrong).sum()) < 30


def test_a_run_judges_in_shards(tmp_path, mispair):
    train(tiny_config("data.noise={rate: 0.4}", "train.epochs=2", "data.scenes.pictures=160"), tmp_path / "run")
    one, three = (
        in_shards(mispair, tmp_path / f"s{of}", tmp_path / f"audit{of}", of, tmp_path / "run") for of in (1, 3)
    )
    assert three.table.equals(one.table)
    assert three.facts.learned
    assert three.facts.run == str(tmp_path / "run")
    train(tiny_config("data.noise={rate: 0.4}", "train.epochs=1", "data.scenes.pictures=160"), tmp_path / "other")
    ran = mispair("audit", tmp_path / "other", "--shard", "1/3", "--statistics", tmp_path / "s3")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "of vectors of another model" in ran.err


def test_embedding_in_shards_gives_the_folder_of_one(tmp_path, mispair, monkeypatch):
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    table = write_colours(tmp_path)
    what = table, "--images", tmp_path / "photos", "--encoder", "colours", "--workers", 0
    assert mispair("embed", *what, "-o", tmp_path / "whole").code == 0
    for shard in (3, 1, 2):
        ran = mispair("embed", *what, "-o", tmp_path / f"part-{shard}", "--shard", f"{shard}/3")
        assert ran.code == 0, ran.err
    parts = [tmp_path / f"part-{shard}" for shard in (2, 3, 1)]
    ran = mispair("merge", *parts, "-o", tmp_path / "merged")
    assert ran.code == 0, ran.err
    assert sorted(p.name for p in (tmp_path / "merged").iterdir()) == sorted(
        p.name for p in (tmp_path / "whole").iterdir()
    )
    for name in ("features.npy", "texts.npy"):
        assert np.array_equal(np.load(tmp_path / "merged" / name), np.load(tmp_path / "whole" / name))
    for name in ("features_ids.txt", "encoder.json"):
        assert (tmp_path / "merged" / name).read_text() == (tmp_path / "whole" / name).read_text()
    found = in_shards(mispair, tmp_path / "s", tmp_path / "audit", 2, tmp_path / "merged")
    assert len(found) == 96
    assert found[0].caption
    for wrong, sentence in (
        ([parts[0], parts[1]], "shards are missing: 1/3"),
        ([*parts, parts[0]], "shard 2/3 is there twice"),
    ):
        ran = mispair("merge", *wrong, "-o", tmp_path / "no")
        assert ran.code == 2
        assert sentence in ran.err
        assert not (tmp_path / "no").exists()
    said = json.loads((parts[0] / "shard.json").read_text())
    (parts[0] / "shard.json").write_text(json.dumps(said | {"data": "another"}))
    ran = mispair("merge", *parts, "-o", tmp_path / "no")
    assert (ran.code, (tmp_path / "no").exists()) == (2, False)
    assert "shards of different data" in ran.err


def test_what_does_not_fit_costs_a_sentence(tmp_path, mispair):
    files, _, _ = write_arrays(tmp_path, 1500)
    others, _, _ = write_arrays(tmp_path / "other", 1500, seed=1)
    what, place = ("audit", "--embeddings"), tmp_path / "s"

    def refused(sentence, *arguments):
        before = sorted(place.iterdir()) if place.exists() else []
        ran = mispair(*arguments)
        assert ran.code == 2, ran
        assert sentence in ran.err, ran.err
        assert ran.err.count("\n") == 1
        assert (sorted(place.iterdir()) if place.exists() else []) == before

    refused("a shard is i/n", *what, *files, "--shard", "8/7", "--statistics", place)
    refused("a shard is i/n", *what, *files, "--shard", "two", "--statistics", place)
    refused("a shard needs both options", *what, *files, "--shard", "1/2")
    refused("leave training", *what, *files, "--shard", "1/2", "--statistics", place, "--truth")
    refused("does not exist", "merge", place)
    assert mispair(*what, *files, "--shard", "1/3", "--statistics", place).code == 0
    refused("statistics of 2 of 3 shards are missing: 2/3, 3/3", "merge", place)
    refused("of other data", *what, *others, "--shard", "1/3", "--statistics", place)
    assert mispair(*what, *others, "--shard", "2/3", "--statistics", place).code == 0
    assert mispair(*what, *files, "--shard", "3/3", "--statistics", place).code == 0
    refused("of other data", "merge", place)
    names = [place / f"statistics-0000{k}-of-00003.npz" for k in (1, 2, 3)]
    shutil.copy(names[0], names[1])
    refused("overlap", "merge", place)
    names[1].unlink()
    assert mispair(*what, *files, "--shard", "1/2", "--statistics", place).code == 0
    refused("out of 2 and out of 3, which overlap", "merge", place)
    (place / "statistics-00001-of-00002.npz").unlink()
    assert mispair(*what, *files, "--shard", "2/3", "--statistics", place).code == 0
    refused("meet in one folder", "merge", place, tmp_path)
    assert mispair("merge", place).code == 0
    refused("holds no verdicts", "merge", place, "-o", tmp_path / "audit")
    refused("say where the audit goes", "merge", place)
    refused("calibrated with 3 shards, not 2", *what, *files, "--shard", "1/2", "--statistics", place)
    refused("of other data", *what, *others, "--shard", "1/3", "--statistics", place)
    for shard in (1, 2, 3):
        assert mispair(*what, *files, "--shard", f"{shard}/3", "--statistics", place).code == 0
    verdicts = place / "verdicts-00002-of-00003.parquet"
    content = verdicts.read_bytes()
    verdicts.write_bytes(content[:-50])
    refused("damaged; judge this shard again", "merge", place, "-o", tmp_path / "audit")
    shutil.copy(place / "verdicts-00001-of-00003.parquet", verdicts)
    refused("not one for each of 1,500 pairs", "merge", place, "-o", tmp_path / "audit")
    verdicts.write_bytes(content)
    changed = np.load(files[1])
    np.save(files[1], changed[::-1])
    refused("has changed", "merge", place, "-o", tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


def test_what_is_done_is_not_done_again(tmp_path, mispair):
    files, _, _ = write_arrays(tmp_path, 600)
    what = "audit", "--embeddings", *files, "--shard", "1/1", "--statistics", tmp_path / "s"
    assert "are in" in mispair(*what).out
    before = (tmp_path / "s/statistics-00001-of-00001.npz").stat().st_mtime_ns
    assert "there already" in mispair(*what).out
    assert (tmp_path / "s/statistics-00001-of-00001.npz").stat().st_mtime_ns == before


def test_a_shard_without_rows_says_so(tmp_path, mispair):
    files, _, _ = write_arrays(tmp_path, 600)
    ran = mispair("audit", "--embeddings", *files, "--shard", "1/7", "--statistics", tmp_path / "s")
    assert ran.code == 0
    assert ran.out.startswith("Statistics of no rows (shards are cut 512 pairs at a time) are in")


def test_an_audit_that_lies_there_is_no_business_of_a_shard(tmp_path, mispair, monkeypatch):
    files, _, _ = write_arrays(tmp_path, 600)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "audit.json").write_text("{}")
    ran = mispair("audit", "--embeddings", *files, "--shard", "1/2", "--statistics", "s")
    assert ran.code == 0, ran.err
    assert (tmp_path / "s" / "statistics-00001-of-00002.npz").exists()


@pytest.mark.parametrize(
    "option", [["--cells"], ["--encoder", "basic"], ["--workers", 2], ["--device", "cpu"], ["--json"]]
)
def test_options_that_a_shard_does_not_heed_are_refused(option, tmp_path, mispair):
    files, _, _ = write_arrays(tmp_path, 50)
    ran = mispair("audit", "--embeddings", *files, "--shard", "1/2", "--statistics", tmp_path / "s", *option)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert option[0] in ran.err
    assert not (tmp_path / "s").exists()


def test_statistics_that_were_lost_are_made_again(tmp_path, mispair):
    files, _, _ = write_arrays(tmp_path, 1100)
    what, place = ("audit", "--embeddings", *files), tmp_path / "s"
    for shard in ("1/2", "2/2"):
        assert mispair(*what, "--shard", shard, "--statistics", place).code == 0
    (place / "subject.json").unlink()
    ran = mispair("merge", place)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "subject.json" in ran.err
    assert mispair(*what, "--shard", "2/2", "--statistics", place).code == 0, "it says again what it is of"
    assert mispair("merge", place).code == 0
    lost = place / "statistics-00002-of-00002.npz"
    content = load_statistics(lost)
    lost.unlink()
    ran = mispair(*what, "--shard", "2/2", "--statistics", place)
    assert (ran.code, "is judged" in ran.out) == (0, True), ran.err
    assert np.array_equal(load_statistics(lost).suspicion, content.suspicion)
