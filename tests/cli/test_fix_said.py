"""`mispair fix` says what it did, what it left and what it cannot do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mispair.auditing.fixing.actions import ACTIONS
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig
from tests.cli.audits import audit_of, text_table
from tests.cli.calls import Run
from tests.data.samples import captions, features, precomp, run, write_lines


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def test_pairs_nobody_judged_are_counted_apart(tmp_path: Path, mispair: Run) -> None:
    path = text_table(tmp_path / "data", "jsonl")
    with path.open("a", encoding="utf-8") as out:
        out.write('\r\n{"image_id": "lost", "caption": "no picture", "n": 10}')
    np.save(path.with_suffix(".npy"), features(10, regions=0))
    (path.parent / "pairs_ids.txt").write_text("".join(f"im{k}\n" for k in range(10)))
    config = DataConfig(path=str(path), min_count=1, missing="skip")
    audit = audit_of(tmp_path / "audit", config, "all")
    ran = mispair("fix", audit, "--action", "drop", "-o", tmp_path / "fixed")
    assert ran.code == 0, ran
    assert "7 of 10 pairs written" in ran.out
    assert "1 more pair that was not judged stays as it was" in ran.out
    assert len((tmp_path / "fixed/pairs.jsonl").read_text(encoding="utf-8").splitlines()) == 8
    ran = mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back")
    assert "10 pairs" not in ran.out, "eleven are back"


@pytest.mark.parametrize("action", ACTIONS)
def test_pairs_beyond_a_limit_are_told(tmp_path: Path, mispair: Run, action: str) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    config = DataConfig(path=str(folder), min_count=1, limit=4)
    audit = audit_of(tmp_path / "audit", config, "train")
    out = " ".join(mispair("fix", audit, "--action", action, "-o", tmp_path / "fixed").out.split())
    assert "up to data.limit. 15 pairs after it, not judged, are left out of" in out
    assert out.find("Expect ") < out.index("data.limit"), "what is expected is said of the pairs that were written"
    audit = audit_of(tmp_path / "whole", config.model_copy(update={"limit": None}), "train")
    assert "data.limit" not in mispair("fix", audit, "--action", action, "-o", tmp_path / "all").out


@pytest.mark.parametrize(("action", "why"), [("drop", "no pair is above 0.95"), ("swap", "no exchange would mend two")])
def test_a_fix_that_changes_nothing_says_so(tmp_path: Path, mispair: Run, action: str, why: str) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    out = mispair(
        "fix", audit, "--action", action, "--threshold", "0.95", "--min-gain", "0.6", "-o", tmp_path / "fixed"
    ).out
    assert f"Nothing was changed: {why}" in " ".join(out.split())
    assert "Expect " not in out, "it is what it was before"


def test_what_a_drop_leaves_is_not_known_where_the_audit_could_not_tell(tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    assert "Expect " in mispair("fix", audit, "--action", "drop", "-o", tmp_path / "known").out
    told = Verdicts.load(audit)
    Verdicts(told.table, replace(told.facts, conclusive=False)).save(tmp_path / "open")
    out = mispair("fix", tmp_path / "open", "--action", "drop", "-o", tmp_path / "unknown").out
    assert "Expect " not in out
    assert "How many of them are wrong cannot be told" in " ".join(out.split())


def test_what_cannot_be_fixed_costs_one_sentence(tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data")
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    out = tmp_path / "fixed"
    refused = {
        ("fix", audit, "--action", "burn", "-o", out): "no action 'burn'",
        ("fix", audit, "-o", out): "--action is missing",
        ("fix", "--action", "drop", "-o", out): "which audit",
        ("fix", folder, "--action", "drop", "-o", out): "is not an audit folder",
        ("fix", audit, "--action", "drop", "-o", folder): "exists already",
        ("fix", audit, "--action", "drop", "-o", folder / "dev_ims.npy" / "x"): None,
        ("fix", "--undo", folder, "-o", out): "it has no fix.patch",
        ("fix", audit, "--undo", folder, "-o", out): "leave the audit and the action out",
    }
    for arguments, said in refused.items():
        ran = mispair(*arguments)
        if said is not None:
            assert ran.code == 2, ran
            assert said in ran.err
            assert not out.exists()
    assert sorted(file.name for file in folder.iterdir() if file.is_file()) == ["train_caps.txt", "train_ims.npy"]
    assert mispair("fix", audit, "--action", "drop", "-o", out).code == 0
    assert mispair("fix", audit, "--action", "drop", "-o", out).code == 2
    write_lines(folder / "train_caps.txt", captions(35, "other"))
    assert "has changed since the audit" in mispair("fix", audit, "--action", "drop", "-o", tmp_path / "two").err


def test_a_fixed_file_that_was_changed_is_not_undone(tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data")
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    assert mispair("fix", audit, "--action", "swap", "-o", tmp_path / "fixed").code == 0
    text = (tmp_path / "fixed" / "train_caps.txt").read_text()
    (tmp_path / "fixed" / "train_caps.txt").write_text(text.replace("number 1 ", "number x "))
    ran = mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back")
    assert ran.code == 2
    assert "was changed after the fix" in ran.err
    assert not (tmp_path / "back").exists()
    (tmp_path / "fixed" / "fix.patch").write_bytes(b"PK nonsense")
    assert "is damaged" in mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back").err


def test_training_on_weights_is_said_with_the_option_that_reads_them(tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev", "test"))
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    ran = mispair("fix", audit, "--action", "weight", "-o", tmp_path / "fixed")
    said = " ".join(ran.out.split()).split("Train on it: mispair train ")[1].split(" Back again")[0]
    assert said.split() == [str(tmp_path / "fixed"), "--weights", "weights"]
    quick = ("--epochs", "1", "--batch-size", "8", "--set", "data.min_count=1", "-o", tmp_path / "run")
    assert mispair("train", *said.split(), *quick).code == 0
    dropped = mispair("fix", audit, "--action", "drop", "-o", tmp_path / "dropped").out
    assert "--weights" not in dropped


def test_limits(tmp_path: Path, mispair: Run) -> None:
    folder = precomp(tmp_path / "data")
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    ran = mispair("fix", audit, "--action", "drop", "--threshold", 0.95, "-o", tmp_path / "all", "--json")
    assert json.loads(ran.out)["kept"] == 35
    assert mispair("fix", audit, "--action", "drop", "--threshold", 2, "-o", tmp_path / "x").code == 2
