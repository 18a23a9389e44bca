"""What goes out comes back the same, a spreadsheet never computes a caption, and a foreign file is named."""

import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.errors import InputError
from mispair.reviewing.decisions import Decision
from mispair.reviewing.exchange import read_exchange, to_bytes
from mispair.reviewing.session import ReviewSession
from mispair.workflows.review import export_decisions
from tests.reviewing.audits import small_audit

VERDICTS = SimpleNamespace(
    table=pa.table(
        {"image_id": ["a.png", "b.png", "c.png"], "caption": ["x", "y", "z"], "proposed_caption": ["y", None, None]}
    )
)
DECISIONS = [
    Decision(number=1, pair=0, answer="proposal", reviewer="ann", time="t", p_mismatch=0.75, caption="=1+1"),
    Decision(number=2, pair=2, answer="edit", reviewer="@bob", time="t", caption="'quoted', \"twice\"\nand on"),
    Decision(number=3, pair=1, answer="skip", reviewer="ann", time="t", seconds=2.5),
]


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".json"])
def test_out_and_back(tmp_path, kind):
    path = tmp_path / f"d{kind}"
    path.write_bytes(to_bytes(DECISIONS, kind, VERDICTS))
    back = read_exchange(path, 3)
    assert sorted(d.model_dump_json(exclude={"number"}) for d in back) == sorted(
        d.model_dump_json(exclude={"number"}) for d in DECISIONS
    )


def test_no_cell_is_a_formula():
    for line in to_bytes(DECISIONS, ".csv", VERDICTS).decode().splitlines()[1:]:
        assert not any(cell.lstrip('"').startswith(("=", "+", "@")) for cell in line.split(","))


def test_controls_stay_out_of_label_studio():
    control = Decision(number=1, pair=1, answer="wrong", reviewer="ann", time="", control="re-paired")
    assert json.loads(to_bytes([control], ".json", VERDICTS)) == []


def test_label_studio_is_told_of_nobody_it_may_not_know():
    """Its import refuses a whole file for one annotator who is no member there."""
    for task in json.loads(to_bytes(DECISIONS, ".json", VERDICTS)):
        assert all("completed_by" not in annotation for annotation in task["annotations"])


def label_studio(tmp_path, annotation):
    """What Label Studio exports for somebody who worked there on a task of ours."""
    task = json.loads(to_bytes(DECISIONS[:1], ".json", VERDICTS))[0]
    task["annotations"] = [{"id": 7, "created_at": "2026-01-01T10:00:00.000000Z", **annotation}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task]))
    (decision,) = read_exchange(path, 3)
    return decision


def choice(answer):
    return {"id": "x", "from_name": "answer", "to_name": "image", "type": "choices", "value": {"choices": [answer]}}


def test_what_was_decided_in_label_studio_is_taken(tmp_path):
    taken = label_studio(tmp_path, {"completed_by": 10, "lead_time": 4.5, "result": [choice("proposal")]})
    assert (taken.pair, taken.answer, taken.reviewer, taken.seconds) == (0, "proposal", "10", 4.5)
    assert taken.caption == "y"  # the proposal of the task
    by = {"id": 3, "email": "ann@example.org"}
    assert label_studio(tmp_path, {"completed_by": by, "result": [choice("wrong")]}).reviewer == "ann@example.org"


def test_a_task_that_was_skipped_in_label_studio_is_a_skip(tmp_path):
    assert label_studio(tmp_path, {"completed_by": 10, "was_cancelled": True, "result": []}).answer == "skip"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.csv", b"pair,answer\n1,right\n", "reviewer"),
        ("d.csv", b"pair,answer,reviewer\n9,right,ann\n", "decision 1: there is no pair 9"),
        ("d.csv", b"pair,answer,reviewer\n1,right,ann\n1,perhaps,ann\n", "decision 2: answer"),
        ("d.csv", b"\xff\xfe", "line 1: bytes that are not UTF-8; expected a CSV of decisions"),
        ("d.json", b"{", "not JSON"),
        ("d.json", b'{"a": 1}', "Label Studio"),
        ("d.json", b'[{"data": {}, "annotations": [{"result": []}]}]', "Label Studio"),
        ("d.parquet", b"PAR1", "Parquet"),
        ("d.xlsx", b"", "imported from"),
    ],
)
def test_a_foreign_file_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_exchange(path, 3)
    assert name in str(error.value)


def test_an_export_counts_what_it_wrote(tmp_path):
    audit = tmp_path / "audit"
    verdicts, _ = small_audit(50)
    verdicts.save(audit)
    log = ReviewSession(audit, verdicts).log
    log.decide(1, "right", "ann")
    log.decide(2, "wrong", "ann", control="re-paired", origin="control")
    assert export_decisions(audit, tmp_path / "d.csv") == 2
    assert export_decisions(audit, tmp_path / "d.json") == 1


def _texts(values):
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"pair": [1], "answer": ["right"], "reviewer": _texts([b"\xff\xfe"])}), "is damaged, or not Parquet"),
        (pa.table([pa.array([1]), pa.array([1])], names=["pair", "pair"]), "has no column answer, reviewer"),
        (
            pa.table(
                [pa.array([1]), pa.array([1]), *2 * [pa.array(["right"])]], ["pair", "pair", "answer", "reviewer"]
            ),
            "has two columns of one name",
        ),
    ],
)
def test_a_crafted_table_is_named(tmp_path, table, message):
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(InputError, match=message):
        read_exchange(tmp_path / "d.parquet", 3)
