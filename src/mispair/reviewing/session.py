"""A review under way: what to show a reviewer, what they answered, and what it amounts to so far."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mispair.auditing.damage import plain_caption
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError
from mispair.reviewing.agreement import agreements, disagreements, majority, reviewer_figures
from mispair.reviewing.decisions import FILE, Answer, Decision, DecisionLog
from mispair.reviewing.estimate import RateEstimate, estimate_rate
from mispair.reviewing.flags import FILE as FLAGS
from mispair.reviewing.flags import FlagLog
from mispair.reviewing.identity import audit_identity
from mispair.reviewing.queue import Item, ReviewQueue

_NAME = 100  # characters of a reviewer's name


@dataclass(frozen=True, slots=True)
class Shown:
    """A pair as a reviewer sees it. Blind: neither the probability nor why it is shown."""

    place: int
    pair: int
    image_id: str
    caption: str
    proposed_caption: str | None
    proposed_image_id: str | None
    proposal_first: bool


class ReviewSession:
    """One audit, one decisions file, any number of reviewers."""

    def __init__(
        self,
        folder: Path,
        verdicts: Verdicts,
        decisions: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.verdicts, self._clock = verdicts, clock
        self.log = DecisionLog(decisions or folder / FILE, audit_identity(verdicts), len(verdicts))
        self._p = verdicts.p_mismatch
        facts = verdicts.facts
        self.queue = ReviewQueue(
            self._p,
            verdicts.column("look"),
            captions=[plain_caption(caption) for caption in verdicts.table["caption"].to_pylist()],
            images=verdicts.table["image_id"].to_pylist(),
            trusted=facts.conclusive and not facts.data.get("mended"),
        )
        self.queue.take_up(self.log.standing)
        self.queue.ask_again(disagreements(self.log.standing))
        self._flags = FlagLog(self.log.path.with_name(FLAGS), audit_identity(verdicts), len(verdicts))
        for pair in self._flags.pairs:
            self.queue.flag(pair)

    @property
    def note(self) -> str | None:
        """What was dropped when an older decisions file was read."""
        return self.log.note

    def shown(self, reviewer: str, ahead: int = 0) -> Shown | None:
        """What the reviewer sees next, or `ahead` of that; None when every pair was answered."""
        reviewer = _named(reviewer)
        answered = len(self.log.of(reviewer))
        self.queue.here(reviewer, answered, self._clock())
        place = answered + ahead
        item = self.queue.item(reviewer, place)
        return None if item is None else self._show(place, item)

    def answer(
        self,
        reviewer: str,
        place: int,
        answer: Answer,
        caption: str | None = None,
        seconds: float | None = None,
        pair: int | None = None,
    ) -> Decision:
        """Take an answer to what stands at `place`; on disk when this returns.

        Args:
            pair: the pair that was on the screen; where another one stands at `place` by now, nothing is taken.

        Raises:
            InputError: an answer to another place than the next one (a second tab, a key pressed twice).
        """
        reviewer = _named(reviewer)
        due = len(self.log.of(reviewer))
        if place != due:
            raise InputError(f"place {place} is not the next one of {reviewer}, which is {due}; load the page again")
        item = self.queue.item(reviewer, place)
        if item is None:
            raise InputError("every pair was answered: there is nothing left to decide")
        if pair is not None and pair != item.pair:
            raise InputError(f"another pair than {pair} is next by now; nothing was kept, look at this one")
        about: dict[str, Any] = {"p_mismatch": float(self._p[item.pair]), "origin": item.origin, "seconds": seconds}
        if item.control is not None:
            about["control"] = item.control
        if answer == "proposal":
            row = self.verdicts.table.slice(item.pair, 1).to_pylist()[0]
            shown = self._show(place, item)
            if shown.proposed_caption is None:
                raise InputError("nothing was proposed for this pair")
            about["caption"] = shown.proposed_caption
            about["proposed_pair"] = item.pair if item.control == "re-paired" else row["proposed_caption_pair"]
        elif answer == "edit":
            about["caption"] = (caption or "").strip() or None
        decision = self.log.decide(item.pair, answer, reviewer, **about)
        self.queue.ask_again(disagreements(self.log.standing))
        return decision

    def undo(self, reviewer: str) -> Decision | None:
        """Take back the reviewer's last answer."""
        return self.log.undo(_named(reviewer))

    def flag(self, pair: int) -> None:
        """A pair that looked wrong to somebody: whoever has not seen it gets it next, after a restart too."""
        if not 0 <= pair < len(self.verdicts):
            raise InputError(f"there is no pair {pair}; pairs go from 0 to {len(self.verdicts) - 1:,}")
        self._flags.add(pair)
        self.queue.flag(pair)

    def estimate(self) -> RateEstimate:
        """The mismatch rate from the answered part of the random order, narrowed by the model."""
        standing = self.log.standing
        said = majority(standing)
        sample = [pair for pair in self.queue.random_sample(self._answered()) if pair in said]  # a skip says nothing
        labels = np.array([said[pair] for pair in sample], bool)
        return estimate_rate(labels, self._p[np.array(sample, np.int64)], self._p)

    def _answered(self) -> set[int]:
        """Pairs that somebody has answered, controls left out: those say nothing of the data."""
        return {d.pair for d in self.log.standing if d.control is None}

    def progress(self, reviewer: str) -> dict[str, Any]:
        """Figures for the page, without anything that would tell a reviewer what others or the model think."""
        mine = self.log.of(_named(reviewer))
        estimate = self.estimate()
        figures = next((f for f in reviewer_figures(mine)), None)
        return {
            "answered": len(mine),
            "pairs": len(self.verdicts),
            "left": self.queue.left({d.pair for d in mine if d.control is None}, self._answered()),
            "seconds": None if figures is None else figures.seconds,
            "estimate": _told(estimate) if estimate.labelled >= 10 else None,
            "shown": Counter(
                d.origin for d in mine[: len(mine) // 10 * 10]
            ),  # in tens: none says what the last one was
            "controls": 0 if figures is None else figures.controls,
            "control_errors": 0 if figures is None else figures.control_errors,
            "reviewers": len({d.reviewer for d in self.log.standing}),
            "agreement": [
                {"reviewers": list(a.reviewers), "pairs": a.pairs, "share": a.share, "kappa": a.kappa}
                for a in agreements(self.log.standing)
            ],
        }

    def _show(self, place: int, item: Item) -> Shown:
        row = self.verdicts.table.slice(item.pair, 1).to_pylist()[0]
        caption, proposed = row["caption"], row["proposed_caption"]
        if item.control == "re-paired":
            assert item.caption_of is not None
            proposed = caption  # the true caption stands where a proposal would
            caption = self.verdicts.table["caption"][item.caption_of].as_py()
        return Shown(
            place, item.pair, row["image_id"], caption, proposed, row["proposed_image_id"], item.proposal_first
        )


def _told(estimate: RateEstimate) -> dict[str, Any]:
    figures = {"rate": estimate.rate, "low": estimate.low, "high": estimate.high, "labelled": estimate.labelled}
    return {"sentence": estimate.sentence(), **figures}


def _named(reviewer: str) -> str:
    name = reviewer.strip()
    if not name or len(name) > _NAME or not name.isprintable():
        raise InputError(f"a reviewer has a name of 1 to {_NAME} printable characters; give one with --reviewer")
    return name
