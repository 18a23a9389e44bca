"""Rules of the house that no linter knows."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def test_no_test_waits_on_a_clock() -> None:
    """A pause is too long on a quick machine and too short on a busy one: wait for an event, a signal, a process."""
    own = Path(__file__)
    assert not [path for path in TESTS if path != own and "time.sleep(" in path.read_text(encoding="utf-8")]


def test_no_file_of_the_source_answers_two_questions() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "src").rglob("*.py"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert not long
