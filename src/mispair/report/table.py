"""The worst pairs: the first rows as HTML, all of them as data the page's script sorts and filters."""

from __future__ import annotations

from typing import Any

from mispair.report.content import Pair, Pairs
from mispair.report.html import Html, data_island, join, tag, visible
from mispair.report.text import clamped, isolated

STATIC = 25  # rows that can be read without scripts
TEXT_BUDGET = 2_400_000  # bytes of all texts together: the page stays under 5 MB
_CUTS = (20_000, 10_000, 4_000, 2_000, 1_000, 500, 250, 120, 60)


def pair_table(part: Pairs) -> Html:
    """Controls, table and data."""
    data, cut = _columns(part)
    with_proposals = any(row.proposed_caption is not None for row in part.rows)
    notes = [
        f"All {part.of:,} pairs." if len(part.rows) == part.of else f"The {len(part.rows):,} worst of {part.of:,}."
    ]
    if cut is not None:
        notes.append(f"Texts longer than {cut:,} characters are cut here.")
    if part.source and (cut is not None or len(part.rows) < part.of):
        notes.append(f"{part.source} holds everything.")
    return join(
        [
            _controls(part, with_proposals),
            tag(
                "div",
                tag(
                    "table", _head(with_proposals), tag("tbody", *[_row(r, with_proposals) for r in part.rows[:STATIC]])
                ),
                id="pairs-view",
                class_="scroll",
            ),
            tag(
                "div",
                tag("button", "‹ previous", type="button", id="page-back"),
                tag("span", id="page-at", role="status"),
                tag("button", "next ›", type="button", id="page-on"),
                class_="pager",
                hidden=True,
                id="pager",
            ),
            tag("p", " ".join(notes), class_="quiet"),
            data_island(data, "pairs-data"),
        ]
    )


def _controls(part: Pairs, with_proposals: bool) -> Html:
    choices = [("all", "all pairs"), ("flagged", "judged mismatched"), ("kept", "judged matched")]
    if with_proposals:
        choices.append(("proposed", "with a proposed caption"))
    if any(row.swap_with is not None for row in part.rows):
        choices.append(("swap", "an exchange mends two"))
    if any(row.truth is not None for row in part.rows):
        choices.append(("wrong", "misjudged (truth known)"))
    return tag(
        "form",
        tag(
            "label",
            "Find",
            tag("input", type="search", id="find", placeholder="caption, image or pair id", spellcheck="false"),
        ),
        tag("label", "Show", tag("select", *[tag("option", name, value=value) for value, name in choices], id="show")),
        tag("span", id="found", role="status"),
        id="controls",
        hidden=True,
        class_="controls",
    )


COLUMNS = (
    # key of the data, heading, explanation, whether a larger value comes first
    ("p", "p", "probability that the pair does not match", True),
    ("i", "image", "the image as named in the data", False),
    ("c", "given caption", "the caption it came with", False),
    ("q", "proposed caption", "the caption of the set that fits better", False),
    ("w", "weight", "share of the image's mass on the proposed caption", True),
    ("s", "score", "of the given pair, by the model", False),
    ("r", "rank", "of the given caption for its image, 1 is best", True),
)


def _head(with_proposals: bool) -> Html:
    cells = []
    for key, name, hint, down in COLUMNS:
        if key in "qw" and not with_proposals:
            continue
        button = tag("button", name, type="button", data_key=key, data_down="1" if down else None, title=hint)
        cells.append(
            tag("th", button, scope="col", aria_sort="descending" if key == "p" else None, class_=f"col-{key}")
        )
    return tag("thead", tag("tr", *cells))


def _row(row: Pair, with_proposals: bool) -> Html:
    cells = [
        tag("td", f"{row.p_mismatch:.2f}", class_="col-p"),
        tag("td", isolated(row.image_id), class_="col-i"),
        tag("td", clamped(row.caption), class_="col-c"),
    ]
    if with_proposals:
        cells.append(tag("td", clamped(row.proposed_caption or ""), class_="col-q"))
        cells.append(tag("td", _number(row.proposed_weight, 2), class_="col-w"))
    cells.append(tag("td", _number(row.score, 2), class_="col-s"))
    cells.append(tag("td", _number(row.caption_rank, 0), class_="col-r"))
    return tag("tr", *cells)


def _columns(part: Pairs) -> tuple[dict[str, Any], int | None]:
    """Columns of numbers, texts numbered once each; and at which length texts were cut, if any was."""
    texts: dict[str, int] = {}

    def number(text: str | None) -> int | None:
        return None if text is None else texts.setdefault(text, len(texts))

    rows = part.rows
    columns: dict[str, Any] = {
        "id": [number(r.pair_id) for r in rows],
        "i": [number(r.image_id) for r in rows],
        "c": [number(r.caption) for r in rows],
        "q": [number(r.proposed_caption) for r in rows],
        "o": [number(r.proposed_image) for r in rows],
        "x": [number(r.swap_with) for r in rows],
        "p": [round(r.p_mismatch, 4) for r in rows],
        "s": [_rounded(r.score) for r in rows],
        "w": [_rounded(r.proposed_weight) for r in rows],
        "g": [_rounded(r.proposed_gain) for r in rows],
        "r": [r.caption_rank for r in rows],
        "t": [r.image_rank for r in rows],
        "f": [int(r.flagged) for r in rows],
        "y": [None if r.truth is None else int(r.truth) for r in rows],
    }
    kept = {key: values for key, values in columns.items() if any(value is not None for value in values)}
    pictures = {str(texts[name]): uri for name, uri in part.pictures.items() if name in texts}
    shown = [visible(text) for text in texts]
    cut = _cut(shown)
    if cut is not None:
        shown = [text if len(text) <= cut else f"{text[:cut]}… ({len(text):,} characters)" for text in shown]
    return {"columns": kept, "texts": shown, "pictures": pictures}, cut


def _cut(texts: list[str]) -> int | None:
    """None where everything fits; else the length at which all of them together do."""
    if max(map(len, texts), default=0) <= _CUTS[0] and sum(map(_size, texts)) <= TEXT_BUDGET:
        return None
    return next((cut for cut in _CUTS if sum(_size(text[:cut]) for text in texts) <= TEXT_BUDGET), _CUTS[-1])


def _size(text: str) -> int:
    """Bytes in the page: markup is written as \\u003c, quotes with a backslash."""
    return len(text.encode()) + sum(text.count(c) for c in '"\\') + 5 * sum(text.count(c) for c in "<>&")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
