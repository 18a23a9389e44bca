"""What a person should know about a method before choosing it: one line of the list that `mispair methods` prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """Facts of one paper, which every method class carries as `about`."""

    name: str
    paper: str
    venue: str
    year: int
    url: str
    networks: int  # trained, and scored
    cost: float  # forward-backward passes of a training relative to plain, a survey counting a third of a pass
    mismatched: str  # what happens with a pair believed mismatched
