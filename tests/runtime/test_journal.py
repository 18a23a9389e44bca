"""One line per event, and what a person is told."""

import io
import json
import math

import pytest
from rich.console import Console

from mispair.errors import InputError
from mispair.runtime import journal as module
from mispair.runtime.journal import Journal


class Board:
    def __init__(self):
        self.points = []

    def add_scalar(self, tag, scalar_value, global_step):
        self.points.append((tag, scalar_value, global_step))


@pytest.fixture
def told():
    return io.StringIO()


@pytest.fixture
def journal(tmp_path, told):
    return Journal(tmp_path / "run" / "metrics.jsonl", Console(file=told, width=200), interval=0.0, board=Board())


def _lines(journal):
    return [json.loads(line) for line in journal.path.read_text().splitlines()]


def test_events_are_lines_and_curves(journal):
    journal.event("epoch", epoch=3, dev={"rsum": 5.0, "deep": {"x": 1}}, lr=math.inf, name="x")
    journal.event("start", seed=1)
    assert _lines(journal) == [
        {"event": "epoch", "epoch": 3, "dev": {"rsum": 5.0, "deep": {"x": 1}}, "lr": None, "name": "x"},
        {"event": "start", "seed": 1},
    ]
    assert journal.board.points == [
        ("epoch/dev/rsum", 5.0, 3), ("epoch/dev/deep/x", 1.0, 3), ("epoch/lr", math.inf, 3),
    ]  # fmt: skip


def test_a_note_is_told_once(journal, told):
    for _ in range(2):
        journal.note("mind the step")
    journal.note("and the head")
    assert [line["text"] for line in _lines(journal)] == ["mind the step", "and the head"]
    assert told.getvalue().count("note: mind the step") == 1


def test_how_far_the_work_before_training_is_is_told_now_and_then(journal, told):
    for done in range(1, 4):
        journal.tell("decoding the pictures of train once", done, 3000)
    assert told.getvalue().splitlines()[-1] == "decoding the pictures of train once: 3 of 3,000"
    journal.interval = 1e6
    journal.tell("decoding the pictures of train once", 4, 3000)
    assert len(told.getvalue().splitlines()) == 3


def test_what_a_resumed_run_writes_again_is_cut(journal):
    assert journal.size() == 0
    journal.event("a")
    size = journal.size()
    journal.event("b")
    assert journal.size() > size > 0
    journal.cut(size)
    assert [line["event"] for line in _lines(journal)] == ["a"]
    journal.cut(10**6)  # never longer than it was
    assert journal.size() == size


def test_other_processes_write_and_say_nothing(capsys):
    silent = Journal(None)
    silent.event("a")
    silent.note("x")
    silent.cut(3)
    assert silent.size() == 0
    assert list(silent.track([1, 2], 2, "x")) == [1, 2]
    assert capsys.readouterr() == ("", "")


def test_a_line_now_and_then_says_how_far_it_is(journal, told, monkeypatch):
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    assert list(journal.track("abcd", 10, "epoch 1", lambda: "loss 2", start=4)) == list("abcd")
    lines = told.getvalue().splitlines()
    assert lines[0].startswith("epoch 1: 5/10 loss 2 ")
    assert lines[-1].startswith("epoch 1: 8/10 loss 2 ")
    assert lines[0].endswith("1:40 left")  # 20 seconds for one, five to go


def test_a_terminal_gets_a_bar(tmp_path):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Journal(tmp_path / "m.jsonl", terminal) as journal:
        assert journal.progress is not None
        for _ in journal.track(range(3), 3, "epoch 1", lambda: "loss 2"):
            assert [task.description for task in journal.progress.tasks] == ["epoch 1"]
        assert not journal.progress.tasks
    assert Journal(None, terminal).__enter__().progress is None


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written.*go on with --resume") as error:
        Journal(tmp_path / "file" / "m.jsonl").event("a")
    assert "intact" not in str(error.value), "nobody knows whether anything was saved"
