"""Verdicts as people hold them: the page in one call, pictures in a notebook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import mispair
from mispair.workflows.report.verdicts import VerdictsWithReport, with_report
from tests.auditing.planted import planted
from tests.report.samples import audit_of, png


@pytest.fixture
def pictured(tmp_path: Path) -> VerdictsWithReport:
    """An audit of a table beside which a few of the pictures lie."""
    verdicts = audit_of(60, data={"path": str(tmp_path / "pairs.csv"), "split": "all"})
    (tmp_path / "folder").mkdir()
    for verdict in verdicts.worst(4):
        (tmp_path / verdict.image_id).write_bytes(png())
    return with_report(verdicts)


def test_a_page_in_one_call(pictured: VerdictsWithReport, tmp_path: Path) -> None:
    out = pictured.report(tmp_path / "new" / "r.html")
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "data:image/webp" in page


def test_pictures_in_a_notebook(pictured: VerdictsWithReport) -> None:
    html = pictured._repr_html_()
    assert "<th>picture</th>" in html
    assert html.count("data:image/webp") >= 4
    without = VerdictsWithReport(pictured.table, replace(pictured.facts, data={}))
    assert "<th>picture</th>" not in without._repr_html_()


def test_what_python_gives_has_it(tmp_path: Path) -> None:
    a, b, *_ = planted(pairs=211)
    verdicts = mispair.quick_audit(a, b, captions=[f"words {k}" for k in range(211)])
    assert verdicts.report(tmp_path / "r.html").exists()
    verdicts.save(tmp_path / "audit")
    again = mispair.Verdicts.load(tmp_path / "audit")
    assert again.report(tmp_path / "again.html").exists()
    assert again.table.equals(verdicts.table)


def test_saved_from_memory_and_fixed_where_the_data_is(tmp_path: Path) -> None:
    a, b, *_ = planted(pairs=211)
    frame = pa.table({"img": a.tolist(), "txt": b.tolist(), "caption": [f"words {k}" for k in range(211)]})
    verdicts = mispair.quick_audit("img", "txt", captions="caption", table=frame)
    lines = ["file,caption", *(f"{k}.png,words {k}" for k in range(211))]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    fixed = verdicts.fix("drop", tmp_path / "clean", data=tmp_path / "pairs.csv")
    kept = (tmp_path / "clean" / "pairs.csv").read_text().splitlines()[1:]
    assert fixed.kept == len(kept) == 211 - verdicts.facts.issues
    assert np.array_equal([int(line.split(".")[0]) for line in kept], np.flatnonzero(~verdicts.is_mismatch_issue))
