"""How a mismatch rate is said, wherever it is: in a summary, on a card, on a page. One wording, as far as known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rate_words(rate: float, low: float, high: float, conclusive: bool, mended: object = None) -> str:
    """The rate with its interval, or why there is none.

    Args:
        mended: what an earlier fix did to the data (see `mispair.auditing.fixing.earlier`). It chose the pairs by how
            they look, so no interval estimated from how they look holds, and none is said.
    """
    if isinstance(mended, Mapping):
        return _chosen_words(rate, conclusive, mended)
    if conclusive:
        return f"The estimated rate is {rate:.1%} ({low:.1%} to {high:.1%})."
    return (
        f"The mismatch rate is between {low:.0%} and {high:.0%}: this model cannot tell, since matched pairs look too"
        " much like mismatched ones to it. Use a stronger encoder (siglip2-base, say; mispair encoders lists them), or"
        " have 100 pairs looked at (mispair review)."
    )


def _chosen_words(rate: float, conclusive: bool, mended: Mapping[Any, Any]) -> str:
    why = f"mispair fix --action {mended.get('action')} chose these pairs because they look matched"
    wrong = mended.get("wrong")
    then = f" When it did, {wrong:.1%} of them were expected to be wrong." if isinstance(wrong, float) else ""
    seen = f"; that {rate:.1%} of them look mismatched now is too low an answer" if conclusive else ""
    return (
        f"How many of the pairs are mismatched cannot be told from how they look, since {why}{seen}.{then} Looking at"
        " 100 of them gives a valid estimate (mispair review)."
    )


def training_rate_words(summary: Mapping[str, Any]) -> str | None:
    """What a finished training can say of the rate, from the content of `metrics.json`; None where it can say nothing.

    What a method treated as mismatched is no estimate: its losses had a part in that. The rate is estimated by what the
    other pairs say of each one, before training; it may still differ from an audit's answer, and why is said.
    """
    called = summary.get("called_mismatched")
    said = [] if called is None else [f"Training treated {called:.1%} of its pairs as mismatched."]
    if "conclusive" in summary:
        low, high = summary["mismatch_rate_ci"]
        mended = summary.get("mended")
        said.append(rate_words(summary["mismatch_rate"], low, high, summary["conclusive"], mended))
        if isinstance(mended, Mapping):
            return " ".join(said)
        said.append(
            "That is by what all other pairs say of each one, with nothing trained; an audit asks networks that have"
            " not seen the pair too, and where the two differ, believe the audit."
        )
    elif called is not None:
        said.append("That is how it split them, by losses it had a part in, and no estimate of the rate.")
    return " ".join(said) or None
