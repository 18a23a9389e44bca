"""A damaged folder of verdicts costs one sentence, whatever is wrong in it."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

import mispair
from mispair.auditing.facts import _FACTS, read_facts
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError
from tests.auditing.planted import planted


@pytest.fixture(scope="module")
def found():
    a, b, *_ = planted(pairs=211, rate=0.3)
    return mispair.quick_audit(a, b, captions=[f'<b>{k}</b>, "quoted"\nline' for k in range(211)])


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


WRONG_FACTS = [
    {"pairs": "211"},
    {"pairs": -1},
    {"rate": float("nan")},
    {"rate": 1.5},
    {"rate_low": 0.9, "rate_high": 0.1},
    {"issues": 10**6},
    {"data": []},
    {"data": {"path": 3}},
    {"damage": [{"kind": 1}]},
    {"damage": {}},
    {"damage": [{"kind": "a", "count": 1, "evidence": "b", "remedy": "c", "pairs": [211]}]},
    {"mixture": {"edges": [[1]]}},
    {"mixture": None},
    {"truth": {"auroc": "high"}},
    {"run": 5},
    {"version": "1"},
    {"conclusive": "perhaps"},
    {"separation": 1.5},
    {"seconds": None},
]


@pytest.mark.parametrize("wrong", WRONG_FACTS, ids=str)
def test_facts_of_wrong_types_cost_one_sentence(found, tmp_path, wrong):
    found.save(tmp_path)
    facts = json.loads((tmp_path / "audit.json").read_text())
    (tmp_path / "audit.json").write_text(json.dumps(facts | wrong))
    with pytest.raises(InputError, match="audit.json is damaged"):
        Verdicts.load(tmp_path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("proposed_caption_pair", 211),
        ("proposed_image_pair", -1),
        ("swap_with", 1 << 40),
        ("p_mismatch", float("nan")),
        ("p_mismatch", 1.5),
        ("score", float("inf")),
        ("look", 0),
        ("look", 10**9),
        ("look", 3),
        ("caption_rank", -3),
        ("pair", 5),
        ("caption", None),
    ],
)
def test_columns_out_of_bounds_cost_one_sentence(found, tmp_path, column, value):
    found.save(tmp_path)
    at = found.table.schema.get_field_index(column)
    values = found.table[column].to_pylist()
    values[17] = value
    field = pa.field(column, found.table.schema.field(at).type)
    pq.write_table(found.table.set_column(at, field, pa.array(values, field.type)), tmp_path / "audit.parquet")
    with pytest.raises(InputError, match=f"column '{column}'"):
        Verdicts.load(tmp_path)


def test_half_a_proposal_costs_one_sentence(found, tmp_path):
    found.save(tmp_path)
    column = "proposed_caption"
    at = found.table.schema.get_field_index(column)
    other = found.table.set_column(at, found.table.schema.field(at), pa.nulls(len(found), pa.string()))
    pq.write_table(other, tmp_path / "audit.parquet")
    with pytest.raises(InputError, match=f"column '{column}'"):
        Verdicts.load(tmp_path)


def test_a_pipe_is_not_waited_for(found, tmp_path):
    found.save(tmp_path)
    for name in ("audit.json", "audit.parquet"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        os.mkfifo(tmp_path / name)
        with pytest.raises(InputError, match="not an ordinary file"):
            Verdicts.load(tmp_path)
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(whole)


def test_damaged_bytes_cost_one_sentence_or_nothing(found, tmp_path):
    """Whatever is flipped: an InputError or an audit whose values are in bounds, never anything else."""
    found.save(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("audit.json", "audit.parquet"):
        whole = (tmp_path / name).read_bytes()
        for _ in range(40):
            damaged = bytearray(whole)
            for at in rng.integers(len(whole), size=3):
                damaged[at] ^= int(rng.integers(1, 256))
            (tmp_path / name).write_bytes(
                damaged[: int(rng.integers(1, len(whole) + 1))] if rng.random() < 0.3 else damaged
            )
            try:
                again = Verdicts.load(tmp_path)
            except InputError:
                continue
            assert 0 <= again.p_mismatch.min() <= again.p_mismatch.max() <= 1
        (tmp_path / name).write_bytes(whole)


@pytest.mark.parametrize("name", ["damage", "not_sought"])
def test_a_long_list_of_nonsense_costs_one_complaint(found, tmp_path, name):
    """One for every entry would fill the memory."""
    found.save(tmp_path)
    facts = json.loads((tmp_path / "audit.json").read_text())
    with pytest.raises(ValidationError) as complaints:
        _FACTS.validate_json(json.dumps(facts | {name: [0] * 1000}))
    assert complaints.value.error_count() == 1
    (tmp_path / "audit.json").write_text(json.dumps(facts | {name: [0] * (3 << 20)}))
    with pytest.raises(InputError, match="audit.json"):
        read_facts(tmp_path / "audit.json")
