"""What does a page of results hold? Text, numbers and drawings; the renderers know nothing of experiments."""

from __future__ import annotations

from dataclasses import dataclass

MISSING = "–"
Record = dict[str, str | float | int | None]


@dataclass(frozen=True)
class Entry:
    """One field of a table."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class ResultTable:
    """The first heading stands over the names of the rows."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A figure: whole in itself, an SVG file as it is."""

    name: str  # of its file
    title: str
    svg: str


@dataclass(frozen=True)
class Page:
    """What `mispair experiments table` writes."""

    name: str
    title: str
    about: tuple[str, ...]  # sentences above
    tables: tuple[ResultTable, ...]
    notes: tuple[str, ...]  # sentences below: how to read it, where it comes from
    records: tuple[Record, ...]  # for the CSV
    drawings: tuple[Drawing, ...] = ()
