"""Strangers' text inside the page: isolated in direction, cut where it is long, whole when asked for."""

from __future__ import annotations

from collections.abc import Sequence

from mispair.report.content import Word
from mispair.report.html import Html, join, tag

SHOWN = 280  # characters before a text is folded
MOST = 10_000  # characters of one text in the page
_LEVELS = (0.2, 0.45, 0.8)  # of the strongest word: from here on a word is marked faintly, clearly, strongly


def isolated(text: str, **attributes: object) -> Html:
    """Text that cannot turn the direction of what stands beside it."""
    return tag("bdi", text, **attributes)


def clamped(text: str, shown: int = SHOWN) -> Html:
    """A long text folded behind its beginning; works without scripts and opens in print."""
    return folded(isolated(text[:shown]), text, shown)


def folded(beginning: Html, text: str, shown: int = SHOWN) -> Html:
    """`beginning` stands for the first `shown` characters of `text`; the rest opens below it."""
    if len(text) <= shown:
        return beginning
    whole = text[:MOST]
    if len(text) > MOST:
        whole += f" … and {len(text) - MOST:,} more characters"
    label = f"all {len(text):,} characters"
    inside = tag("summary", beginning, "… ", tag("span", label, class_="more"))
    return tag("details", inside, isolated(whole, class_="whole"), class_="long")


def words(parts: Sequence[Word]) -> Html:
    """A caption whose words are marked by how much they speak for or against the picture."""
    text = "".join(part.text for part in parts)
    drawn: list[Html] = []
    length = 0
    for part in parts:
        piece = part.text[: SHOWN - length]
        if piece:
            drawn.append(tag("mark", piece, class_=mark) if (mark := _mark(part.agreement)) else join(piece))
        length += len(piece)
    return folded(tag("bdi", *drawn), text)


def _mark(agreement: float | None) -> str:
    if agreement is None:
        return ""
    level = sum(abs(agreement) >= step for step in _LEVELS)
    return f"{'for' if agreement > 0 else 'against'}-{level}" if level else ""
