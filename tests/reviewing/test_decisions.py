"""Nothing that was answered is lost, nothing is changed in place, and a damaged file says where."""

import json
import os
import threading

import pytest

from mispair.errors import InputError
from mispair.reviewing.decisions import DecisionLog, latest_by_pair, merge_imported, read_decisions


@pytest.fixture
def log(tmp_path):
    return DecisionLog(tmp_path / "decisions.jsonl", "audit-1", 100)


def test_an_answer_is_on_disk_when_it_returns(log):
    log.decide(7, "wrong", "ann", p_mismatch=0.9, origin="random", seconds=1.5)
    (decision,) = read_decisions(log.path).standing
    assert (decision.pair, decision.answer, decision.reviewer, decision.p_mismatch) == (7, "wrong", "ann", 0.9)
    assert decision.mismatched is True


def test_undo_takes_back_without_limit_and_only_ones_own(log):
    log.decide(1, "right", "ann")
    log.decide(2, "wrong", "bob")
    log.decide(3, "wrong", "ann")
    assert log.undo("ann").pair == 3
    assert log.undo("ann").pair == 1
    assert log.undo("ann") is None
    assert [d.pair for d in read_decisions(log.path).standing] == [2]


def test_numbers_go_on_after_undo_and_restart(log):
    log.decide(1, "right", "ann")
    log.undo("ann")
    again = DecisionLog(log.path, "audit-1", 100)
    again.decide(4, "skip", "ann")
    again.decide(5, "wrong", "ann")
    assert again.undo("ann").pair == 5
    assert [d.pair for d in read_decisions(log.path).standing] == [4]


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_kill_inside_a_line_costs_that_line_only(log, cut):
    log.decide(1, "right", "ann")
    whole = log.path.read_bytes()
    log.decide(2, "wrong", "ann")
    log.path.write_bytes(log.path.read_bytes()[: len(whole) + cut])
    again = DecisionLog(log.path, "audit-1", 100)
    assert again.note is not None
    again.decide(3, "wrong", "ann")
    assert [d.pair for d in read_decisions(log.path).standing] == [1, 3]


def test_of_another_audit_it_is_refused(log):
    with pytest.raises(InputError, match="another audit"):
        DecisionLog(log.path, "audit-2", 100)


def test_threads_do_not_mix_lines(log):
    def review(name):
        for pair in range(50):
            log.decide(pair, "right", name)

    threads = [threading.Thread(target=review, args=(f"r{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    standing = read_decisions(log.path).standing
    assert len(standing) == 200
    assert [d.number for d in standing] == list(range(1, 201))


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"1",
        b'{"pair": "x"}',
        b'{"pair": 101, "answer": "right", "reviewer": "a", "time": ""}',
        b"[" * 5000,
        b'{"pair": 1, "answer": "perhaps", "reviewer": "a", "time": ""}',
        b'{"undo": -1, "reviewer": "a", "time": ""}',
    ],
)
def test_a_damaged_line_in_the_middle_is_named(log, line):
    log.decide(1, "right", "ann")
    with log.path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match="line 3"):
        read_decisions(log.path)


def test_what_is_no_decision_is_refused_and_not_written(log):
    before = log.path.read_bytes()
    for pair, answer, about in ((100, "right", {}), (1, "edit", {}), (1, "proposal", {}), (1, "perhaps", {})):
        with pytest.raises(InputError):
            log.decide(pair, answer, "ann", **about)
    with pytest.raises(InputError):
        log.decide(1, "right", "")
    assert log.path.read_bytes() == before


def test_not_a_decisions_file(tmp_path):
    path = tmp_path / "d.jsonl"
    with pytest.raises(InputError, match="does not exist; expected decisions"):
        read_decisions(path)
    for content in (b"", b"{}\n", b"hello\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="decisions file"):
            read_decisions(path)


def test_the_last_word_counts_and_controls_do_not(log):
    log.decide(1, "right", "ann")
    log.decide(1, "wrong", "ann")
    log.decide(2, "wrong", "ann", origin="control", control="re-paired")
    log.decide(3, "skip", "ann")
    assert {pair: d.answer for pair, d in latest_by_pair(log.standing).items()} == {1: "wrong"}


def test_imported_decisions_are_taken_once(log, tmp_path):
    other = DecisionLog(tmp_path / "other.jsonl", "audit-1", 100)
    other.decide(1, "edit", "bob", caption="a dog")
    assert merge_imported(log, other.standing) == 1
    assert merge_imported(log, other.standing) == 0
    assert json.loads(log.path.read_text().splitlines()[1])["caption"] == "a dog"


def test_a_control_about_a_pair_does_not_take_the_place_of_its_decision(log, tmp_path):
    """A pair may come up both as itself and as a control; the same answer to both is two answers."""
    other = DecisionLog(tmp_path / "other.jsonl", "audit-1", 100)
    other.decide(1, "right", "bob")
    for minute in ("10:00", "10:05"):
        other.decide(1, "right", "bob", control="sure", origin="control", time=minute)
    assert merge_imported(log, other.standing) == 3
    assert [d.control for d in log.standing] == [None, "sure", "sure"]
    assert merge_imported(log, other.standing) == 0


def test_what_is_imported_keeps_its_time_and_is_written_at_once(tmp_path, monkeypatch):
    log = DecisionLog(tmp_path / "a.jsonl", "audit", 50)
    for pair in range(20):
        log.decide(pair, "right", "ann")
    flushed = []
    other = DecisionLog(tmp_path / "b.jsonl", "audit", 50)
    monkeypatch.setattr(os, "fsync", flushed.append)
    assert merge_imported(other, log.standing) == 20
    assert merge_imported(other, log.standing) == 0
    assert len(flushed) <= 2
    assert [d.time for d in read_decisions(tmp_path / "b.jsonl").standing] == [d.time for d in log.standing]


def test_of_answers_taken_together_one_that_is_none_leaves_no_other(tmp_path):
    log = DecisionLog(tmp_path / "a.jsonl", "audit", 50)
    with pytest.raises(InputError, match="no pair 50"):
        log.decide_all([{"pair": k, "answer": "right", "reviewer": "ann"} for k in (1, 50)])
    assert read_decisions(tmp_path / "a.jsonl").standing == log.standing == ()
