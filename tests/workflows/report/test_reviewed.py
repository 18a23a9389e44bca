"""What a report says of a review: the pairs people decided, not the answers they gave, and how far they agree."""

from mispair.reviewing.session import ReviewSession
from mispair.workflows.report.reviewed import reviewed
from tests.reviewing.audits import small_audit


def test_pairs_are_counted_once_and_controls_not(tmp_path):
    verdicts, _ = small_audit(200)
    assert reviewed(tmp_path, verdicts) == ""
    session = ReviewSession(tmp_path, verdicts)
    assert reviewed(tmp_path, verdicts) == ""
    for pair in range(3):
        session.log.decide(pair, "right", "ann")
    assert reviewed(tmp_path, verdicts) == "People decided 3 of the pairs (one reviewer)."
    for pair, answer in enumerate(("right", "right", "wrong", "wrong")):
        session.log.decide(pair, answer, "bob")
    session.log.decide(9, "wrong", "bob", control="sure", origin="control")
    session.log.decide(10, "skip", "bob")
    assert reviewed(tmp_path, verdicts) == (
        "People decided 4 of the pairs "
        "(2 reviewers who agree on 67% of 3, kappa 0.00, 1 of 1 controls answered wrongly)."
    )
    session.log.decide(3, "wrong", "ann")
    assert "agree on 75% of 4, kappa 0.50, 1 of 1 controls" in reviewed(tmp_path, verdicts)
