"""Do reviewers agree, with each other and with what is known? Cohen's kappa, disagreements, errors on controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from mispair.reviewing.decisions import Decision


@dataclass(frozen=True, slots=True)
class ReviewerFigures:
    """What one reviewer has done."""

    reviewer: str
    answers: int  # controls and skips included
    skipped: int
    controls: int
    control_errors: int
    seconds: float | None  # median per pair

    @property
    def error_rate(self) -> float | None:
        """Share of controls answered wrongly; None before the first."""
        return self.control_errors / self.controls if self.controls else None


def reviewer_figures(decisions: Sequence[Decision]) -> list[ReviewerFigures]:
    """One row per reviewer, in the order of their first answer."""
    rows = []
    for name in dict.fromkeys(d.reviewer for d in decisions):
        mine = [d for d in decisions if d.reviewer == name]
        controls = [d for d in mine if d.control is not None and d.mismatched is not None]
        errors = sum(d.mismatched != (d.control == "re-paired") for d in controls)
        times = sorted(d.seconds for d in mine if d.seconds is not None)
        median = times[len(times) // 2] if times else None
        skipped = sum(d.answer == "skip" for d in mine)
        rows.append(ReviewerFigures(name, len(mine), skipped, len(controls), errors, median))
    return rows


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers on the pairs both answered."""

    reviewers: tuple[str, str]
    pairs: int
    share: float  # answered alike: right or not right
    kappa: float | None  # above chance, 1 = always; None where chance alone explains everything


def agreements(decisions: Sequence[Decision]) -> list[Agreement]:
    """Cohen's kappa of every two reviewers who share pairs (Cohen, 1960)."""
    said = _by_reviewer(decisions)
    rows = []
    for one, other in combinations(said, 2):
        both = said[one].keys() & said[other].keys()
        if both:
            answers = [(said[one][pair], said[other][pair]) for pair in both]
            share = sum(a == b for a, b in answers) / len(both)
            rows.append(Agreement((one, other), len(both), share, cohens_kappa(answers)))
    return rows


def cohens_kappa(answers: Sequence[tuple[bool, bool]]) -> float | None:
    """Agreement of two raters above chance, (share - chance) / (1 - chance); None where chance is 1."""
    count = len(answers)
    first, second = (sum(a) for a in zip(*answers, strict=True))
    chance = first * second + (count - first) * (count - second)  # times count squared, in whole numbers: 0 is 0
    share = count * sum(a == b for a, b in answers)
    return None if chance == count**2 else (share - chance) / (count**2 - chance)


def disagreements(decisions: Sequence[Decision]) -> list[int]:
    """Pairs that two reviewers answered differently and no third has decided, in order."""
    votes: dict[int, list[bool]] = {}
    for answers in _by_reviewer(decisions).values():
        for pair, mismatched in answers.items():
            votes.setdefault(pair, []).append(mismatched)
    return sorted(pair for pair, said in votes.items() if 2 * sum(said) == len(said))


def majority(decisions: Sequence[Decision]) -> dict[int, bool]:
    """Whether each reviewed pair is mismatched, as most reviewers say; where they are even, as was said last."""
    votes: dict[int, list[bool]] = {}
    last: dict[int, bool] = {}
    for answers in _by_reviewer(decisions).values():
        for pair, mismatched in answers.items():
            votes.setdefault(pair, []).append(mismatched)
    for d in decisions:
        if d.control is None and d.mismatched is not None:
            last[d.pair] = d.mismatched
    return {
        pair: last[pair] if 2 * sum(said) == len(said) else 2 * sum(said) > len(said) for pair, said in votes.items()
    }


def _by_reviewer(decisions: Sequence[Decision]) -> dict[str, dict[int, bool]]:
    """Each reviewer's last word on every pair; controls and skips left out."""
    said: dict[str, dict[int, bool]] = {}
    for d in decisions:
        if d.control is None and d.mismatched is not None:
            said.setdefault(d.reviewer, {})[d.pair] = d.mismatched
    return said
