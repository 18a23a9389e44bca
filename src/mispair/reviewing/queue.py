"""Which pair a reviewer sees next, and why.

A uniform random sample for the estimate, the most useful pairs for mending, and one control in ten that measures the
reviewer.

The order is drawn from a seed, so a server that is killed and started again goes on with the same pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mispair.reviewing.decisions import Decision, ItemOrigin

Rows = NDArray[np.int64]
# What ten places in a row show, in an order drawn for every ten and every reviewer: no place says which is which.
_TEN: tuple[ItemOrigin, ...] = ("control", *("random",) * 4, *("useful",) * 5)
_SHARED = 20  # random pairs that every reviewer sees: agreement is measured on them
_AWAY = 600.0  # seconds after which what was laid out for a silent reviewer goes to the others
_SURE = 0.05  # a pair below this probability may stand as a control that is right
_TRIES = 30  # pairs put together at random, of which one must be of two images and two captions


@dataclass(frozen=True, slots=True)
class Item:
    """One pair to be shown."""

    pair: int
    origin: ItemOrigin
    control: Literal["re-paired", "sure"] | None = None
    caption_of: int | None = None  # of a re-paired control: the pair whose caption is shown instead
    proposal_first: bool = False  # which of the two captions stands first: drawn, so that place says nothing


class ReviewQueue:
    """The queue of one audit for all its reviewers. Safe across threads."""

    def __init__(
        self,
        p_mismatch: NDArray[np.float64],
        usefulness: Rows,
        seed: int = 0,
        *,
        captions: Sequence[str] | None = None,
        images: Sequence[Hashable] | None = None,
        trusted: bool = True,
    ) -> None:
        """
        Args:
            p_mismatch: (N,) the model's probability of every pair.
            usefulness: (N,) rank of every pair by how much a person's answer would mend, 1 first.
            captions, images: (N,) what each pair shows; by default no two show the same. A pair put together of two
                that show the same caption or the same image would be no wrong one.
            trusted: whether a pair of low probability is known to match; where the model cannot tell, none is.
        """
        self.pairs = len(p_mismatch)
        self._captions = range(self.pairs) if captions is None else captions
        self._images = range(self.pairs) if images is None else images
        self._seed = seed
        self._random = np.random.default_rng([seed, 1]).permutation(self.pairs)
        self._useful = np.argsort(usefulness, kind="stable")
        self._sure = np.flatnonzero(p_mismatch < _SURE) if trusted else np.zeros(0, np.int64)
        self._served: dict[str, list[Item]] = {}
        self._taken: set[int] = set()  # pairs that somebody was shown as random or useful
        self._disagreements: list[int] = []
        self._flagged: list[int] = []
        self._last: dict[str, tuple[float, int]] = {}  # when a reviewer was last here, and how many were answered then
        self._lock = threading.Lock()

    def take_up(self, decisions: Sequence[Decision]) -> None:
        """Go on behind decisions that stand already."""
        with self._lock:
            for decision in decisions:
                served = self._served.setdefault(decision.reviewer, [])
                served.append(self._as_shown(decision, len(served)))
                if decision.control is None:
                    self._taken.add(decision.pair)

    def ask_again(self, pairs: Sequence[int]) -> None:
        """Pairs that two reviewers answered differently: whoever has not seen them gets them next."""
        with self._lock:
            self._disagreements = list(pairs)

    def flag(self, pair: int) -> None:
        """A pair somebody wants decided: everybody who has not seen it gets it next."""
        with self._lock:
            if pair not in self._flagged:
                self._flagged.append(pair)

    def here(self, reviewer: str, answered: int, now: float) -> None:
        """A reviewer asks, with so many answered; what silent ones were to see next is free for others again.

        Without this the random order would keep a gap where somebody left, and the estimate would wait for it.
        """
        with self._lock:
            self._last[reviewer] = now, answered
            for name, (when, count) in list(self._last.items()):
                if now - when > _AWAY:
                    del self._served[name][count:], self._last[name]
                    kept = (item.pair for served in self._served.values() for item in served if item.control is None)
                    self._taken = set(kept)

    def item(self, reviewer: str, place: int) -> Item | None:
        """What the reviewer sees at `place` (0 first): always the same; None when every pair was seen."""
        with self._lock:
            served = self._served.setdefault(reviewer, [])
            while len(served) <= place:
                following = self._next(reviewer, served)
                if following is None:
                    return None
                served.append(following)
            return served[place]

    def left(self, mine: set[int], answered: set[int]) -> int:
        """How many pairs still come to who answered `mine`, when `answered` are those of everybody; controls apart."""
        with self._lock:
            asked_of_all = {*self._random[:_SHARED].tolist(), *self._disagreements, *self._flagged}
        return self.pairs - len(answered) + len((asked_of_all & answered) - mine)

    def random_sample(self, answered: set[int]) -> list[int]:
        """The part of the drawn order that is answered without a gap: a uniform sample, however its pairs were shown.

        A pair that came up as useful before its turn counts at its place; leaving it out would bend the sample.
        """
        gap = next((k for k, pair in enumerate(self._random.tolist()) if pair not in answered), self.pairs)
        return [int(pair) for pair in self._random[:gap]]

    def _as_shown(self, decision: Decision, place: int) -> Item:
        """What the decision was about, drawn again: whoever takes it back sees the same."""
        draw, first = self._draw(decision.reviewer, place)
        if decision.control != "re-paired":
            return Item(decision.pair, decision.origin, decision.control, proposal_first=first)
        again = self._control(draw, first)
        if again is not None and (again.pair, again.control) == (decision.pair, "re-paired"):
            return again
        other = (decision.pair + 1 + int(draw.integers(self.pairs - 1))) % self.pairs  # one that came from elsewhere
        return Item(decision.pair, "control", "re-paired", other, first)

    def _draw(self, reviewer: str, place: int) -> tuple[np.random.Generator, bool]:
        """What chance says at a place: always the same."""
        draw = np.random.default_rng([self._seed, 2, *reviewer.encode(), place])
        return draw, bool(draw.integers(2))

    def _wanted(self, reviewer: str, place: int) -> ItemOrigin:
        ten, within = divmod(place, len(_TEN))
        order = np.random.default_rng([self._seed, 3, *reviewer.encode(), ten]).permutation(len(_TEN))
        return _TEN[int(order[within])]

    def _next(self, reviewer: str, served: list[Item]) -> Item | None:
        mine = {item.pair for item in served if item.control is None}
        place = len(served)
        draw, first = self._draw(reviewer, place)
        for pair in self._disagreements:
            if pair not in mine:
                return Item(pair, "disagreement", proposal_first=first)
        for pair in self._flagged:
            if pair not in mine:
                return Item(pair, "useful", proposal_first=first)
        wanted = self._wanted(reviewer, place)
        control = self._control(draw, first) if wanted == "control" and self.pairs >= _SHARED else None
        if control is not None:
            return control
        order: tuple[ItemOrigin, ...] = ("random", "useful") if wanted != "useful" else ("useful", "random")
        for origin in order:
            fresh = self._fresh(origin, mine)
            if fresh is not None:
                self._taken.add(fresh)
                return Item(fresh, origin, proposal_first=first)
        return None

    def _fresh(self, origin: ItemOrigin, mine: set[int]) -> int | None:
        """The first pair of the order that nobody has seen; the shared ones only must be new to this reviewer.

        A random pair stays one whoever asks for it and whatever it looks like: the estimate rests on that.
        """
        if origin == "useful":
            sampled = set(self._random[:_SHARED].tolist())
            return next((int(k) for k in self._useful if k not in self._taken and k not in sampled), None)
        shared = next((int(k) for k in self._random[:_SHARED] if k not in mine), None)
        return shared if shared is not None else next((int(k) for k in self._random if k not in self._taken), None)

    def _control(self, draw: np.random.Generator, first: bool) -> Item | None:
        """A pair that is right or wrong for certain; None where no two pairs differ in both caption and image."""
        if len(self._sure) and draw.integers(2):
            return Item(int(draw.choice(self._sure)), "control", "sure", proposal_first=first)
        for _ in range(_TRIES):
            pair, other = draw.choice(self.pairs, 2, replace=False).tolist()
            if self._captions[pair] != self._captions[other] and self._images[pair] != self._images[other]:
                return Item(pair, "control", "re-paired", other, first)
        return None
