"""Verdicts travel: saved and loaded the same, damaged folders refused, untrusted captions escaped."""

from __future__ import annotations

import csv
import sys
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

import mispair
from mispair.auditing.judge import judge
from mispair.auditing.space import Space
from mispair.auditing.truth import with_truth
from mispair.auditing.verdict_table import SCHEMA, TRUTH, read_csv
from mispair.auditing.verdicts import Verdict, Verdicts
from mispair.data.pair_table import PairTable
from mispair.errors import InputError
from tests.auditing.planted import planted
from tests.report.samples import audit_of


@pytest.fixture(scope="module")
def found():
    a, b, *_ = planted(pairs=211, rate=0.3)
    return mispair.quick_audit(a, b, captions=[f'<b>{k}</b>, "quoted"\nline' for k in range(211)])


def test_saved_and_loaded_the_same(found, tmp_path):
    found.save(tmp_path / "audit")
    again = Verdicts.load(tmp_path / "audit")
    assert again.table.equals(found.table)
    assert again.facts == found.facts
    assert again.table.schema.names == SCHEMA.names
    assert sorted(p.name for p in (tmp_path / "audit").iterdir()) == ["audit.json", "audit.parquet"]
    with pytest.raises(InputError, match="already holds an audit"):
        found.save(tmp_path / "audit")


def test_parquet_and_csv(found, tmp_path):
    found.to_parquet(tmp_path / "a.parquet")
    found.to_csv(tmp_path / "a.csv")
    assert pq.read_table(tmp_path / "a.parquet").equals(found.table)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    assert (
        pyarrow.csv.read_csv(tmp_path / "a.csv", parse_options=parse)["caption"].to_pylist()
        == found.table["caption"].to_pylist()
    )
    with pytest.raises(InputError, match="cannot be made"):
        found.to_csv(tmp_path / "a.csv" / "b.csv")


@pytest.mark.parametrize("rows", [[1, 2], np.array([True] * 211), 1.5, None])
def test_several_rows_at_once_have_a_way_of_their_own(found, rows):
    with pytest.raises(TypeError, match="is a pair by its row, or a slice; for a choice of rows take verdicts.table"):
        found[rows]
    assert found[np.int64(3)] == found[3]


def test_worst_first(found):
    assert [row.p_mismatch for row in found.worst(7)] == sorted(found.p_mismatch, reverse=True)[:7]
    assert len(found.worst(10**6)) == len(found)
    assert found.worst(0) == []
    assert [row.look for row in found.look(5)] == [1, 2, 3, 4, 5]


def test_a_verdict_has_the_columns_of_the_table_in_their_order():
    assert [field.name for field in fields(Verdict)] == [*SCHEMA.names, *TRUTH.names]


def test_one_verdict_is_a_record(found):
    row = found[17]
    assert (row.pair, row.p_mismatch, row.caption) == (17, found.p_mismatch[17], found.table["caption"][17].as_py())
    assert found[-1] == found[210]
    assert [one.pair for one in found] == list(range(211))
    for wrong in (211, -212):
        with pytest.raises(IndexError, match="211 pairs"):
            found[wrong]
    with pytest.raises(TypeError, match="a column is verdicts.column"):
        found["p_mismatch"]


def test_one_verdict_shows_itself_in_one_line(found):
    worst = found.worst(1)[0]
    assert repr(worst).startswith(f"Verdict({worst.pair}: {worst.image_id!r} with ")
    assert f"p_mismatch {worst.p_mismatch:.3f}" in repr(worst)
    long = replace(worst, caption="x" * 1000, proposed_caption="y" * 1000)
    assert len(repr(long)) < 300
    assert "rather 'yyy" in repr(long)


def test_it_shows_itself_in_a_few_lines(found):
    assert len(repr(found).splitlines()) <= 4
    assert len(repr(found)) < 400
    assert "211 pairs" in repr(found)
    assert "edges" not in repr(found.facts)


def test_a_rate_that_cannot_be_told_is_not_told(found):
    unsure = Verdicts(found.table, replace(found.facts, conclusive=False))
    assert "estimated rate" not in unsure.summary() + repr(unsure)
    assert "cannot tell" in unsure.summary()
    for said in (unsure.summary(), repr(unsure)):
        assert "more likely mismatched than matched" not in said
        assert "which is a guess" in said
    learned = Verdicts(found.table, replace(found.facts, conclusive=False, learned=True))
    assert "look mismatched even so" in learned.summary()


def test_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        found.to_pandas()
    monkeypatch.undo()
    pytest.importorskip("pandas")
    assert found.to_pandas()["p_mismatch"].tolist() == found.p_mismatch.tolist()


FORMULAS = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "'=1", "''@x", "'plain", "a=1", "", "'"]


def test_a_spreadsheet_runs_nothing(tmp_path):
    a, b, *_ = planted(pairs=211, rate=0.3)
    ids = [FORMULAS[k % len(FORMULAS)] + ("" if k < len(FORMULAS) else f" {k}") for k in range(211)]
    found = mispair.quick_audit(a, b, captions=ids, image_ids=ids)
    found.to_csv(tmp_path / "a.csv")
    found.to_csv(tmp_path / "look.csv", look=50)
    for name, count in (("a.csv", 211), ("look.csv", 50)):
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        for row in rows:
            for column in ("image_id", "caption", "proposed_caption", "proposed_image_id"):
                assert not row[column].startswith(("=", "+", "-", "@", "\t", "\r")), row[column]
    assert read_csv(tmp_path / "a.csv")["caption"].to_pylist() == ids
    again = read_csv(tmp_path / "look.csv")
    assert again["image_id"].to_pylist() == [row.image_id for row in found.look(50)]


def test_what_cannot_be_told_is_said_in_words():
    rng = np.random.default_rng(0)
    said = mispair.quick_audit(rng.normal(size=(503, 16)), rng.normal(size=(503, 16))).summary()
    assert "this model cannot tell" in said
    assert "100 pairs looked at" in said
    assert "estimated" not in said


def test_the_summary_says_what_was_found(found):
    said = found.summary()
    assert f"{found.facts.issues} of 211 pairs" in said
    assert f"{found.facts.rate:.1%}" in said
    assert "For none of" not in said
    bare = found.table.set_column(
        found.table.column_names.index("proposed_caption_pair"), "proposed_caption_pair", pa.nulls(211, pa.int64())
    )
    assert "For none of the images" in Verdicts(bare, found.facts).summary()
    assert "scores better" not in Verdicts(bare, replace(found.facts, issues=0)).summary(), "nothing is shown with none"


def test_captions_are_escaped_in_notebooks(found):
    html = found._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_unknown_columns_are_named(found):
    with pytest.raises(InputError, match="no column 'nope'"):
        found.column("nope")


def test_truth_by_hand(found):
    wrong = found.is_mismatch_issue.copy()
    rows = np.arange(211)
    partner = found.table["proposed_caption_pair"].fill_null(-1).to_numpy()
    judged = with_truth(found, wrong, rows, rows, lambda images, texts: texts == partner[images])
    truth = judged.facts.truth
    assert truth is not None
    assert (truth["precision"], truth["recall"], truth["auroc"]) == (1, 1, 1)
    assert truth["rate"] == wrong.mean()
    assert truth["proposals_true"] == 1
    assert truth["rematch_accuracy"] == 1
    assert judged.table["proposal_true"].null_count == (partner < 0).sum()
    nobody = with_truth(found, wrong, rows, rows, None).facts.truth
    assert nobody is not None
    assert "proposals_true" not in nobody
    with pytest.raises(InputError, match="3 entries for 211 pairs"):
        with_truth(found, wrong[:3], rows, rows, None)


def test_a_score_that_is_no_number_is_refused(tmp_path):
    """One NaN in the features used to turn the whole audit into "nothing is mismatched"."""
    images, texts, _, _ = planted(pairs=200)
    table = PairTable(np.arange(200), np.arange(200))
    space = Space(torch.from_numpy(images), torch.from_numpy(texts))
    assert judge(space, table).facts.issues > 0
    images[7] = np.nan
    with pytest.raises(InputError, match="1 pair has no finite score .first: pair 7."):
        judge(Space(torch.from_numpy(images), torch.from_numpy(texts)), table)


def test_a_slice_is_a_list_of_verdicts():
    verdicts = audit_of(40)
    assert [verdict.pair for verdict in verdicts[3:7:2]] == [3, 5]
    assert [verdict.pair for verdict in verdicts[-2:]] == [38, 39]
    assert verdicts[50:] == []
