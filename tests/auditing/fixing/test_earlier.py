"""Pairs that an earlier fix left are told as such: a rate estimated from them anew is too low."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mispair
from mispair.auditing.fixing.earlier import earlier_fix
from mispair.auditing.rate_words import training_rate_words
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig
from mispair.workflows.quick_audit import quick_audit_files
from tests.auditing.planted import planted


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Path, Verdicts]:
    images, texts, _, _ = planted(pairs=150)
    np.save(tmp_path / "pairs.npy", images)
    np.save(tmp_path / "texts.npy", texts)
    rows = "".join(f"{k}.png,caption {chr(97 + k % 26)}{k}\n" for k in range(150))
    (tmp_path / "pairs.csv").write_text("image,caption\n" + rows)
    (tmp_path / "pairs_ids.txt").write_text("".join(f"{k}.png\n" for k in range(150)))
    named = DataConfig(path=str(tmp_path / "pairs.csv"))
    return tmp_path, quick_audit_files(tmp_path / "pairs.npy", tmp_path / "texts.npy", data=named)


def test_the_audit_of_what_is_left_says_so(judged: tuple[Path, Verdicts]) -> None:
    folder, verdicts = judged
    assert "mispair fix" not in verdicts.summary().splitlines()[0]
    fixed = mispair.fix(verdicts, "drop", folder / "fixed")
    table = folder / "fixed/pairs.csv"
    assert earlier_fix(str(table)) == {"action": "drop", "wrong": fixed.wrong}
    np.save(folder / "kept.npy", np.load(folder / "texts.npy")[~verdicts.is_mismatch_issue])
    again = quick_audit_files(folder / "fixed/pairs.npy", folder / "kept.npy", data=DataConfig(path=str(table)))
    said = again.summary().splitlines()[0]
    assert said.startswith("How many of the pairs are mismatched cannot be told"), "before any number"
    assert "since mispair fix --action drop chose these pairs" in said
    assert " to " not in said.split("wrong.")[0].replace("expected to be", ""), "no interval"
    assert f"{fixed.wrong:.1%} of them were expected to be wrong" in said
    again.save(folder / "again")
    assert said in Verdicts.load(folder / "again").summary()


def test_a_fix_that_changed_nothing_chose_nothing(judged: tuple[Path, Verdicts]) -> None:
    folder, verdicts = judged
    fixed = mispair.fix(verdicts, "drop", folder / "whole", threshold=1.0)
    assert (fixed.kept, fixed.changed) == (150, 0)
    assert earlier_fix(str(folder / "whole/pairs.csv")) is None


def test_training_on_what_is_left_says_it_with_the_number() -> None:
    summary = {"mismatch_rate": 0.012, "mismatch_rate_ci": [0.01, 0.014], "conclusive": True}
    assert "(1.0% to 1.4%)" in (training_rate_words(summary) or "")
    said = training_rate_words({**summary, "mended": {"action": "drop", "wrong": 0.061}}) or ""
    assert said.startswith("How many of the pairs are mismatched cannot be told from how they look")
    assert "1.4%" not in said
    assert "6.1% of them were expected to be wrong" in said
    assert "believe the audit" not in said, "it sees no more"


def test_only_what_a_fix_chose_is_meant(judged: tuple[Path, Verdicts]) -> None:
    folder, verdicts = judged
    assert earlier_fix(str(folder / "pairs.csv")) is None
    mispair.fix(verdicts, "weight", folder / "weighted")
    assert earlier_fix(str(folder / "weighted/pairs.csv")) is None, "weights leave every pair where it is"
    mispair.fix(verdicts, "drop", folder / "fixed")
    (folder / "fixed/mine.csv").write_text("image,caption\n")
    assert earlier_fix(str(folder / "fixed/mine.csv")) is None, "another table that happens to lie there"
    assert earlier_fix(str(folder / "fixed")) is not None
    (folder / "fixed/fix.patch").write_bytes(b"damaged")
    assert earlier_fix(str(folder / "fixed/pairs.csv")) is None, "it stands in nobody's way"
    assert earlier_fix("scenes") is None
