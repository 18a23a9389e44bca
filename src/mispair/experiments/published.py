"""What did the paper print? Every row of its result tables, as facts to compare with; and what came after it.

Han, Zheng, Dai, Luo, Wang: Learning to Rematch Mismatched Pairs for Robust Cross-Modal Retrieval, CVPR 2024,
arXiv:2403.05105. `published.csv` holds one line per table, data set, setting and method, under the paper's own labels
(`tab:table_orginal` is spelled so there). Settings are mismatching rates, batch sizes, or `real` for data as it came.
The table `later` has the sums that UCPM (TIP 2025), CREAM (TIP 2024) and UGNCL (SIGIR 2024) print, under the noise each
of them chose; COCO is the mean of five folds of 1,000.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Fact:
    """One printed row."""

    table: str
    data: str
    setting: str
    method: str
    recalls: tuple[float, ...]  # i2t R@1, R@5, R@10, then t2i; none where the sum alone is known
    printed_rsum: float | None  # the ablation and warm-up tables print none

    @property
    def rsum(self) -> float:
        """As printed, else the sum of the recalls."""
        return round(sum(self.recalls), 1) if self.printed_rsum is None else self.printed_rsum

    @property
    def figures(self) -> tuple[float | None, ...]:
        """The six recalls and their sum; None for what was not printed."""
        return (*(self.recalls or (None,) * 6), self.rsum)


@cache
def facts() -> tuple[Fact, ...]:
    """Every row of the published tables, as printed (`published.csv`)."""
    text = files("mispair.experiments").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Fact(table, data, setting, method, tuple(float(v) for v in recalls if v), float(rsum[0]) if rsum[0] else None)
        for table, data, setting, method, *rest in list(csv.reader(text.splitlines()))[1:]
        for recalls, rsum in [(rest[:6], rest[6:])]
    )


def facts_of(tables: Sequence[str], data: str, setting: str) -> list[Fact]:
    """The rows of these tables for a data set and setting; none where the data is not the paper's."""
    return [f for f in facts() if f.table in tables and f.data == data and f.setting == setting]
