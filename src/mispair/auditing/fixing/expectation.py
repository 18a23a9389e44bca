"""What to expect of an action: how many of the pairs it writes are wrong, and which action leaves the fewest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.fixing.actions import Fix, plan_fix
from mispair.auditing.verdicts import Verdicts

_MOSTLY = 0.5  # share of proposals that fit, below which none of them is believed unseen
_WORTH = 0.01  # more wrong pairs than after dropping that keeping more pairs may cost


@dataclass(frozen=True, slots=True)
class Expectation:
    """Estimates; None where the audit cannot tell."""

    action: str
    kept: int
    wrong: float | None  # share of the written pairs that are mismatched
    replaced: int  # pairs that show another caption
    true: float | None  # share of those captions that are right


def expect(verdicts: Verdicts, fix: Fix) -> Expectation:
    """What the probabilities and the trial of rematching say of a planned fix."""
    changed = fix.kept != fix.caption_of
    true = _proposals_true(verdicts, fix.kept[changed])
    share = float(true.mean()) if true is not None and len(true) else None
    if not verdicts.facts.conclusive or (changed.any() and true is None):
        return Expectation(fix.action, len(fix.kept), None, int(changed.sum()), share)
    wrong = verdicts.p_mismatch[fix.kept].copy()
    if true is not None:
        wrong[changed] = 1 - true
    rate = float(wrong.mean()) if len(wrong) else 0.0
    return Expectation(fix.action, len(fix.kept), rate, int(changed.sum()), share)


def _proposals_true(verdicts: Verdicts, pairs: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """The probability that the caption proposed for each of `pairs` is right; None where nothing was tried."""
    trial = verdicts.facts.rematch
    if trial is None or not trial.weights:
        return None
    weight = np.nan_to_num(verdicts.column("proposed_caption_weight")[pairs].astype(np.float64))
    return np.interp(weight, trial.weights, trial.true_at)


def advise(verdicts: Verdicts, *, threshold: float = 0.5, min_weight: float = 0.0, min_gain: float = 0.0) -> str:
    """Which action to take within these limits (see `plan_fix`) and what to expect of it, in a sentence or two."""
    facts = verdicts.facts
    if facts.issues == 0:
        said = "No pair is judged mismatched, so there is none to drop or to rematch."
        if not facts.conclusive or facts.learned or facts.data.get("mended") or facts.rate * facts.pairs < 1:
            return said
        # The rate counts what no single pair shows: of 300 pairs with a probability of .1 each, 30 are wrong.
        return f"{said} {facts.rate:.1%} may be wrong all the same, but this model cannot say which."
    limits = {"threshold": threshold, "min_weight": min_weight, "min_gain": min_gain}
    drop, rematch = _both(verdicts, **limits)
    if drop.wrong is None:
        return "What an action would leave cannot be told, since this model cannot tell how many are mismatched."
    said = f"If the mismatched pairs are dropped, {drop.wrong:.1%} of the others are expected to be wrong"
    if rematch.replaced == 0:
        return f"{said}; no other caption is proposed. Recommended: --action drop."
    if rematch.wrong is None:
        return f"{said}; how many of {rematch.replaced:,} proposals fit is unknown. Recommended: --action drop."
    fit = f"about {rematch.true:.0%} of the {rematch.replaced:,} new captions fit"
    said += f"; if they are rematched, {rematch.wrong:.1%} ({fit})"
    return f"{said}. Recommended: --action {recommended(drop, rematch)}."


def _both(verdicts: Verdicts, **limits: float) -> tuple[Expectation, Expectation]:
    drop, rematch = (expect(verdicts, plan_fix(verdicts, action, **limits)) for action in ("drop", "rematch"))
    return drop, rematch


def advised_action(verdicts: Verdicts) -> str | None:
    """The action that `advise` recommends; None where it recommends none, so that pairs are to be looked at."""
    if not verdicts.facts.conclusive or verdicts.facts.issues == 0:
        return None
    return recommended(*_both(verdicts))


def share_of_fitting(verdicts: Verdicts) -> str:
    """How many of the captions that are proposed can be right, in a sentence: their weights alone do not say it."""
    true = expect(verdicts, plan_fix(verdicts, "rematch")).true if verdicts.facts.conclusive else None
    if true is None:
        return "How many of them fit is not known."
    doubt = ": candidates for a person to look at, not corrections" if true < _MOSTLY else ""
    return f"About {true:.0%} of them are expected to fit{doubt}."


def recommended(drop: Expectation, rematch: Expectation) -> str:
    """Rematching keeps more pairs; it is worth that where most new captions fit and hardly more pairs are wrong.

    The second alone would let a few captions that do not fit into a large set, where they hardly count.
    """
    if drop.wrong is None or rematch.wrong is None or rematch.true is None:
        return "drop"
    return "rematch" if rematch.true > 0.5 and rematch.wrong <= drop.wrong + _WORTH else "drop"
