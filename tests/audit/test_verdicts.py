"""Verdicts travel: saved and loaded the same, damaged folders refused, untrusted captions escaped."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

import mispair
from mispair.audit.judge import judge
from mispair.audit.scan import Space
from mispair.audit.truth import with_truth
from mispair.audit.verdicts import SCHEMA, Verdicts
from mispair.data.table import PairTable
from mispair.errors import InputError
from tests.audit.planted import planted


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
    with pytest.raises(InputError, match="cannot be written"):
        found.to_csv(tmp_path / "no" / "a.csv")


def test_worst_first(found):
    worst = found.worst(7)["p_mismatch"].to_pylist()
    assert worst == sorted(found.p_mismatch, reverse=True)[:7]


def test_the_summary_says_what_was_found(found):
    said = found.summary()
    assert f"{found.facts.issues} of 211 pairs" in said
    assert f"{found.facts.rate:.1%}" in said


def test_captions_are_escaped_in_notebooks(found):
    html = found._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_unknown_columns_are_named(found):
    with pytest.raises(InputError, match="no column 'nope'"):
        found.column("nope")


@pytest.mark.parametrize("damage", ["no json", "other version", "cut", "no parquet", "other rows", "list"])
def test_damaged_folders_cost_one_sentence(found, tmp_path, damage):
    found.save(tmp_path)
    facts = json.loads((tmp_path / "audit.json").read_text())
    if damage == "no json":
        (tmp_path / "audit.json").unlink()
    elif damage == "other version":
        (tmp_path / "audit.json").write_text(json.dumps(facts | {"version": 99}))
    elif damage == "cut":
        (tmp_path / "audit.json").write_text(json.dumps(facts)[:50])
    elif damage == "list":
        (tmp_path / "audit.json").write_text("[]")
    elif damage == "no parquet":
        (tmp_path / "audit.parquet").write_bytes(b"PAR1 nonsense")
    else:
        pq.write_table(found.table.slice(1), tmp_path / "audit.parquet")
    with pytest.raises(InputError):
        Verdicts.load(tmp_path)


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
    with pytest.raises(InputError, match="1 pairs have no finite score .first: pair 7."):
        judge(Space(torch.from_numpy(images), torch.from_numpy(texts)), table)
