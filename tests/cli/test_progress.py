"""Progress as it is told where there is no terminal."""

import pytest

from mispair.cli import progress
from mispair.cli.progress import _rate


@pytest.mark.parametrize(
    ("rate", "text"), [(12345.6, "12,346/s"), (10, "10/s"), (2.5, "2.5/s"), (0.5, "2 s each"), (0.01, "100 s each")]
)
def test_slow_work_is_told_in_seconds_each(rate, text):
    assert _rate(rate) == text


def test_before_the_first_item_no_pace_is_made_up(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.ProgressLine() as line:
        line("captions", 0, 533)
        line._last = -1e9
        line("captions", 533, 533)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "captions: 0 of 533 (0%)"
    assert told[1].endswith("0:00 left")


def test_progress_is_silent_at_first_and_speaks_later(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.ProgressLine() as line:
        line("features", 1, 10)
        assert capsys.readouterr().err == ""
        line._start -= 60.0
        line("features", 600, 1200)
        assert capsys.readouterr().err == "features: 600 of 1,200 (50%), 10/s, 1:00 left\n"
        line("features", 6, 10)
        assert capsys.readouterr().err == "", "a line every few seconds is enough"


def test_work_that_says_when_it_begins_is_not_charged_with_what_was_silent_before(capsys, monkeypatch):
    """Half a minute of training before it would make the first of many epochs look half a minute long."""
    now = 1000.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.ProgressLine() as line:
        now += 30.0
        line("epochs", 0, 40)
        now += 6.0
        line("epochs", 3, 40)
    told = capsys.readouterr().err.splitlines()
    assert told == ["epochs: 0 of 40 (0%)", "epochs: 3 of 40 (8%), 2 s each, 1:14 left"]
