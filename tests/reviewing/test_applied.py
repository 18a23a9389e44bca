"""What people decided stands above any probability, in the verdicts and in the data that is written."""

import csv
import sys

import numpy as np
import pytest

import mispair as mp
from mispair.cli.app import main
from mispair.data import DataConfig
from mispair.reviewing.applied import apply_decisions
from mispair.reviewing.decisions import Decision, DecisionLog
from mispair.reviewing.identity import audit_identity
from tests.auditing.planted import planted
from tests.reviewing.audits import small_audit


@pytest.fixture(scope="module")
def verdicts():
    return small_audit()[0]


def said(pair, answer, caption=None, reviewer="ann"):
    return Decision(number=1, pair=pair, answer=answer, reviewer=reviewer, time="", caption=caption)


def test_answers_replace_probabilities_and_proposals(verdicts):
    suspect = int(np.argmax(verdicts.p_mismatch))
    trusted = int(np.argmin(verdicts.p_mismatch))
    applied = apply_decisions(verdicts, [said(suspect, "right"), said(trusted, "wrong"), said(7, "edit", "new")])
    after = applied.verdicts
    assert after.p_mismatch[[suspect, trusted, 7]].tolist() == [0.0, 1.0, 0.0]
    assert after.is_mismatch_issue[[suspect, trusted]].tolist() == [False, True]
    assert after.table["proposed_caption_pair"][trusted].as_py() is None
    assert applied.captions == {7: "new"}
    assert applied.decided == 3
    others = np.setdiff1d(np.arange(len(verdicts)), [suspect, trusted, 7])
    np.testing.assert_array_equal(after.p_mismatch[others], verdicts.p_mismatch[others])  # three labels mend nothing


def test_most_reviewers_count_and_a_caption_most_reject_does_not(verdicts):
    decisions = [said(3, "edit", "mine"), said(3, "right", reviewer="bob"), said(3, "right", reviewer="carl")]
    applied = apply_decisions(verdicts, decisions)
    assert applied.verdicts.p_mismatch[3] == 0.0
    assert applied.captions == {}


def test_many_labels_mend_the_other_probabilities(verdicts):
    decisions = [said(pair, "right") for pair in range(0, 200, 2)] + [said(1, "wrong")]
    after = apply_decisions(verdicts, decisions).verdicts
    others = np.arange(3, 200, 2)
    assert after.p_mismatch[others].mean() < verdicts.p_mismatch[others].mean()


def test_fix_obeys_them(tmp_path, monkeypatch, capsys):
    images, texts, _, _ = planted(pairs=120)
    np.save(tmp_path / "images.npy", images)
    rows = [{"image": f"{k}.png", "caption": f"caption {k}"} for k in range(120)]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "caption"])
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "images_ids.txt").write_text("".join(f"{row['image']}\n" for row in rows))
    names = [row["image"] for row in rows]
    verdicts = mp.quick_audit(images, texts, captions=[row["caption"] for row in rows], image_ids=names)
    verdicts.save(tmp_path / "audit")
    suspect, trusted = int(np.argmax(verdicts.p_mismatch)), int(np.argmin(verdicts.p_mismatch))
    log = DecisionLog(tmp_path / "audit" / "decisions.jsonl", audit_identity(verdicts), 120)
    log.decide(suspect, "right", "ann")
    log.decide(trusted, "wrong", "ann")
    log.decide(5, "edit", "ann", caption='a "new", caption')
    command = ["fix", "audit", "--action", "drop", "-o", "clean", "--decisions", "audit/decisions.jsonl"]
    command += ["--data", "pairs.csv", "--features", "images.npy", "--ids", "images_ids.txt"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mispair", *command])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    said = capsys.readouterr().out
    assert "3 pairs are as reviewers decided" in said
    decided = apply_decisions(verdicts, log.standing).verdicts.p_mismatch
    assert f"before it was {decided.mean():.1%}." in said, "before and after by the same probabilities"
    with (tmp_path / "clean" / "pairs.csv").open(newline="") as file:
        written = {row["image"]: row["caption"] for row in csv.DictReader(file)}
    config = DataConfig(path="pairs.csv", features="images.npy", ids="images_ids.txt")
    np.save("pairs.npy", images)
    (tmp_path / "pairs_ids.txt").write_text((tmp_path / "images_ids.txt").read_text())
    kept = {mp.fix(verdicts, "drop", f"by-{k}", data=data).kept for k, data in enumerate((config, "pairs.csv"))}
    assert len(kept) == 1, "data may be named as everywhere else, by its path"
    assert f"{suspect}.png" in written
    assert f"{trusted}.png" not in written
    assert written["5.png"] == 'a "new", caption'


def test_what_the_labels_did_to_the_others_is_said(verdicts):
    """Reviewers who call every suspect right: nobody should wonder why suspects they never saw stay as well."""
    few = apply_decisions(verdicts, [said(3, "wrong")])
    assert few.others_sentence(verdicts, 0.5) == "", "one label moves nothing"
    order = np.argsort(verdicts.p_mismatch)
    looked = order[:: len(order) // 40]
    many = apply_decisions(verdicts, [said(int(p), "wrong" if k < 3 else "right") for k, p in enumerate(looked)])
    assert many.recalibration.kind != "none"
    others = np.setdiff1d(np.arange(len(verdicts)), looked)
    then, now = ((v.p_mismatch[others] > 0.5).sum() for v in (verdicts, many.verdicts))
    assert now < then
    assert f"{len(others)} others" in many.others_sentence(verdicts, 0.5)
    assert many.others_sentence(verdicts, 0.5).endswith(f"{now} are above 0.5, before {then}.")
