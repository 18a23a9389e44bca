"""The worst pairs: the first rows as HTML, all of them as data the page's script sorts and filters."""

from __future__ import annotations

from typing import Any

from mispair.report.content import PairRow, WorstPairs
from mispair.report.html import Html, data_island, join, tag, visible
from mispair.report.text import SHOWN, isolated

STATIC = 25  # rows that can be read without scripts
TEXT_BUDGET = 1_500_000  # bytes of all texts together: the page stays under 5 MB
_CUTS = (20_000, 10_000, 4_000, 2_000, 1_000, 500, 250, 120, 60, 30, 15, 8)


# key of the data, heading, explanation, digits (None: text), whether the largest comes first
_COLUMNS: tuple[tuple[str, str, str, int | None, bool], ...] = (
    ("p", "p", "probability that the pair does not match", 2, True),
    ("i", "image", "the image as named in the data", None, False),
    ("c", "given caption", "the caption it came with", None, False),
    ("q", "proposed caption", "the caption of the set that scores better", None, False),
    ("w", "weight", "share of the image's mass on the proposed caption", 2, True),
    ("s", "score", "of the given pair, by the model", 2, False),
    ("r", "rank", "of the given caption for its image, 1 is best", 0, True),
)


def pair_table(part: WorstPairs) -> Html:
    """Controls, table and data."""
    data, cut = _data(part)
    shown = [column for column in _COLUMNS if column[0] in data["columns"]]
    first = [tag("tr", *[_cell(row, key, digits) for key, _, _, digits, _ in shown]) for row in part.rows[:STATIC]]
    table = tag("table", tag("thead", tag("tr", *[_heading(*column) for column in shown])), tag("tbody", *first))
    pager = [
        tag("button", "‹ previous", type="button", id="page-back"),
        tag("span", id="page-at", role="status"),
        tag("button", "next ›", type="button", id="page-on"),
    ]
    return join(
        [
            _controls(data["columns"]),
            tag("div", table, id="pairs-view", class_="scroll"),
            tag("div", *pager, class_="pager", hidden=True, id="pager"),
            tag("p", _said(part, cut), class_="quiet"),
            data_island(data, "pairs-data"),
        ]
    )


def _said(part: WorstPairs, cut: int | None) -> str:
    """How much of the data this is."""
    whole = len(part.rows) == part.of
    notes = [f"All {part.of:,} pairs." if whole else f"The {len(part.rows):,} worst of {part.of:,}."]
    if cut is not None:
        notes.append(f"Texts longer than {cut:,} characters are cut here.")
    if part.source and (cut is not None or not whole):
        notes.append(f"{part.source} holds everything.")
    return " ".join(notes)


def _controls(columns: dict[str, Any]) -> Html:
    choices = [("all", "all pairs"), ("flagged", "judged mismatched"), ("kept", "judged matched")]
    if "q" in columns:
        choices.append(("proposed", "with a proposed caption"))
    if "x" in columns:
        choices.append(("swap", "an exchange mends two"))
    if "y" in columns:
        choices.append(("wrong", "misjudged (truth known)"))
    box = tag("input", type="search", id="find", placeholder="caption, image or pair id", spellcheck="false")
    menu = tag("select", *[tag("option", name, value=value) for value, name in choices], id="show")
    labels = tag("label", "Find", box), tag("label", "Show", menu), tag("span", id="found", role="status")
    return tag("form", *labels, id="controls", hidden=True, class_="controls")


def _heading(key: str, name: str, hint: str, digits: int | None, down: bool) -> Html:
    about = {"data_key": key, "data_down": down, "data_digits": digits, "title": hint}
    button = tag("button", name, type="button", **about)
    return tag("th", button, scope="col", aria_sort="descending" if key == "p" else None, class_=f"col-{key}")


def _cell(row: PairRow, key: str, digits: int | None) -> Html:
    texts = {"i": row.image_id, "c": row.caption, "q": row.proposed_caption}
    if digits is None:
        text = texts[key] or ""
        return tag("td", isolated(text if len(text) <= SHOWN else text[:SHOWN] + "…"), class_=f"col-{key}")
    number = {"p": row.p_mismatch, "w": row.proposed_weight, "s": row.score, "r": row.caption_rank}[key]
    return tag("td", "" if number is None else f"{number:,.{digits}f}", class_=f"col-{key}")


def _data(part: WorstPairs) -> tuple[dict[str, Any], int | None]:
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
        shown = [text if len(text) <= cut else text[:cut] + "…" for text in shown]
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
