"""A whole review: what is shown is blind, answers land on disk in order, the estimate follows, a restart goes on."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mispair.errors import InputError
from mispair.reviewing.decisions import read_decisions
from mispair.reviewing.session import ReviewSession
from tests.reviewing.audits import small_audit


@pytest.fixture(scope="module")
def audited():
    return small_audit()


@pytest.fixture
def session(audited, tmp_path):
    return ReviewSession(tmp_path, audited[0])


def truthful(session, mismatched, reviewer, count):
    for _ in range(count):
        shown = session.shown(reviewer)
        item = session.queue.item(reviewer, shown.place)
        wrong = item.control == "re-paired" or (mismatched[shown.pair] and item.control != "sure")
        session.answer(reviewer, shown.place, "wrong" if wrong else "right", seconds=1.0)


def test_nothing_shown_tells_what_the_model_thinks(session):
    shown = session.shown("ann")
    assert not {"p_mismatch", "origin", "control", "score"} & set(shown.__slots__)
    assert "p_mismatch" not in str(session.progress("ann"))


def test_the_estimate_comes_to_hold_the_truth_and_narrows(session, audited):
    mismatched = audited[1]
    truthful(session, mismatched, "ann", 60)
    early = session.estimate()
    truthful(session, mismatched, "ann", 90)
    late = session.estimate()
    assert late.low <= mismatched.mean() <= late.high
    assert late.labelled > early.labelled
    assert late.high - late.low < early.high - early.low
    assert session.progress("ann")["estimate"]["sentence"].startswith(f"after {late.labelled} pairs")


def test_a_truthful_reviewer_makes_no_error_on_controls(session, audited):
    truthful(session, audited[1], "ann", 60)
    progress = session.progress("ann")
    assert progress["controls"] == 6
    assert progress["control_errors"] == 0


def test_repeated_captions_charge_a_truthful_reviewer_with_no_error(tmp_path):
    """Beside a picture called "Card." another "card" is right, whoever put the pair together."""
    titles = [f"caption {k}" if k % 8 == 0 else ("card", "Card.")[k % 2] for k in range(211)]
    session = ReviewSession(tmp_path, small_audit(captions=titles)[0])
    controls = []
    for _ in range(200):
        shown = session.shown("ann")
        item = session.queue.item("ann", shown.place)
        controls += [shown] if item.control == "re-paired" else []
        session.answer("ann", shown.place, "skip")
    assert len(controls) >= 5
    assert not any({shown.caption, shown.proposed_caption} <= {"card", "Card."} for shown in controls)


def test_what_an_audit_cannot_tell_is_no_control(tmp_path, audited):
    verdicts = audited[0]
    for unknown in ({"conclusive": False}, {"data": {"mended": {"action": "drop", "wrong": 0.1}}}):
        told = replace(verdicts, facts=replace(verdicts.facts, **unknown))
        session = ReviewSession(tmp_path, told)
        kinds = {session.queue.item("ann", k).control for k in range(150)}
        assert kinds == {None, "re-paired"}


def test_a_careless_reviewer_is_noticed(session):
    for _ in range(60):
        session.answer("bob", session.shown("bob").place, "right")
    assert session.progress("bob")["control_errors"] > 0


def test_a_key_pressed_twice_is_not_a_second_answer(session):
    place = session.shown("ann").place
    session.answer("ann", place, "right")
    with pytest.raises(InputError, match="load the page again"):
        session.answer("ann", place, "right")
    assert len(session.log.standing) == 1


def test_undo_shows_the_pair_again(session):
    first = session.shown("ann")
    session.answer("ann", first.place, "wrong")
    session.undo("ann")
    assert session.shown("ann") == first


def test_a_restart_goes_on_where_it_was(session, audited, tmp_path):
    truthful(session, audited[1], "ann", 23)
    following = session.shown("ann")
    again = ReviewSession(tmp_path, audited[0])
    assert again.shown("ann") == following
    assert len(read_decisions(tmp_path / "decisions.jsonl").standing) == 23


def test_taking_a_proposal_and_editing_keep_the_caption(session, audited):
    verdicts = audited[0]
    while (shown := session.shown("ann")).proposed_caption is None:
        session.answer("ann", shown.place, "skip")
    decision = session.answer("ann", shown.place, "proposal")
    assert decision.caption == shown.proposed_caption
    assert verdicts.table["caption"][decision.proposed_pair].as_py() == shown.proposed_caption
    edited = session.answer("ann", session.shown("ann").place, "edit", caption="  a new caption ")
    assert edited.caption == "a new caption"
    with pytest.raises(InputError):
        session.answer("ann", session.shown("ann").place, "edit", caption="  ")


def test_two_reviewers_agree_on_what_they_share(session, audited):
    truthful(session, audited[1], "ann", 60)
    truthful(session, audited[1], "bob", 60)
    (row,) = session.progress("ann")["agreement"]
    assert row["pairs"] >= 20
    assert row["share"] == 1.0


def test_decisions_about_another_audit_are_refused(session, tmp_path):
    other, _ = small_audit(captions=[f"other {k}" for k in range(211)])
    with pytest.raises(InputError, match="another audit"):
        ReviewSession(tmp_path, other)


def test_a_flagged_pair_comes_next(session):
    session.flag(100)
    assert session.shown("ann").pair == 100
    with pytest.raises(InputError):
        session.flag(211)


def test_what_looked_wrong_is_shown_after_a_restart_too(session, audited, tmp_path):
    session.flag(100)
    session.flag(7)
    session.flag(100)
    again = ReviewSession(tmp_path, audited[0])
    assert [again.shown("ann", ahead).pair for ahead in range(2)] == [100, 7]
    assert (tmp_path / "flagged.jsonl").read_bytes().count(b"\n") == 2


def test_flags_of_another_audit_and_half_a_line_are_passed_over(session, audited, tmp_path):
    path = tmp_path / "flagged.jsonl"
    session.flag(100)
    path.write_bytes(b'["other", 5]\n[1\n{}\n"x"\nnull\n' + path.read_bytes() + b'["cut off by a ki')
    again = ReviewSession(tmp_path, audited[0])
    assert again.shown("ann").pair == 100
    again.flag(8)
    assert [ReviewSession(tmp_path, audited[0]).shown("ann", k).pair for k in range(2)] == [100, 8]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_place_of_the_flags_is_refused_before_anybody_begins(audited, tmp_path, make):
    make(tmp_path / "flagged.jsonl")
    with pytest.raises(InputError, match=r"flagged\.jsonl is not an ordinary file.*move it away"):
        ReviewSession(tmp_path, audited[0])


def test_what_is_left_counts_pairs_not_controls_and_not_what_others_did(session):
    def left(name):
        return session.progress(name)["left"]

    assert left("ann") == 211
    while (shown := session.shown("ann")) is not None:
        before = left("ann")
        control = session.queue.item("ann", shown.place).control is not None
        session.answer("ann", shown.place, "right")
        assert left("ann") == before - (not control)
    assert left("ann") == 0
    assert left("bob") == 20  # those that everybody is asked


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_reviewer_has_a_name(session, name):
    with pytest.raises(InputError, match="reviewer"):
        session.shown(name)


def test_after_a_restart_even_controls_can_be_taken_back_and_look_the_same(session, audited, tmp_path):
    shown = []
    while len(shown) < 40:
        shown.append(session.shown("ann"))
        session.answer("ann", shown[-1].place, "right")
    kinds = {session.queue.item("ann", k).control for k in range(40)}
    assert "re-paired" in kinds
    again = ReviewSession(tmp_path, audited[0])
    for before in reversed(shown):
        again.undo("ann")
        assert again.shown("ann") == before


def test_an_answer_to_a_pair_that_is_no_longer_there_is_not_kept(session):
    shown = session.shown("ann")
    with pytest.raises(InputError, match="nothing was kept"):
        session.answer("ann", shown.place, "right", pair=shown.pair + 1)
    assert session.log.standing == ()
    assert session.answer("ann", shown.place, "right", pair=shown.pair).pair == shown.pair


def test_who_left_does_not_hold_up_the_estimate(audited, tmp_path):
    """Pairs that were laid out for somebody who went away are shown to the next one, so the sample has no gap."""
    now = [0.0]
    session = ReviewSession(tmp_path, audited[0], clock=lambda: now[0])
    truthful(session, audited[1], "ann", 55)
    for ahead in range(11):
        session.shown("ann", ahead)
    now[0] = 3600.0
    truthful(session, audited[1], "bob", 120)
    answered = {d.pair for d in session.log.standing if d.control is None}
    assert session.estimate().labelled > 40
    assert len(session.queue.random_sample(answered)) == session.estimate().labelled
    assert session.shown("ann") is not None


def test_what_was_shown_and_why_is_told_in_tens(session, audited):
    truthful(session, audited[1], "ann", 19)
    assert session.progress("ann")["shown"] == {"random": 4, "useful": 5, "control": 1}
