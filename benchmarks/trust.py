"""Is an audit right where nobody tuned it? `python -m benchmarks.trust`, and a small part of it in `make bench`.

`quick_audit` of planted worlds (`benchmarks/worlds.py`), or with `--vectors IMAGES.npy TEXTS.npy` of pairs taken
to match, row k of one with row k of the other, some of them exchanged; or with `--data DATA [TEXTS.npy]` what is said
of a data set's training pairs before any training (`functional/judged_by_others.py`), whole images exchanged and then
single captions. Prints every cell that misses something
and, by size: how many 95 % intervals hold the true rate (.0025 of tolerance, half a step of the grid they are made
on), how many are narrower than .15 where the AUROC is above .90, in how many the expected calibration error is at
most .05 (3,000 pairs or more) or .08, and how many of the pairs with p >= .99 are wrong.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import worlds
from benchmarks.worlds import Shape, World
from mispair import quick_audit
from mispair.data import DataConfig, NoiseConfig, open_split
from mispair.data.untrained import untrained_vectors
from mispair.functional.detection import auroc, calibration_error
from mispair.functional.judged_by_others import judge_by_others
from mispair.functional.mismatch_rate import MismatchEstimate
from mispair.workflows.embedded_before import embedded_before

RATES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
DATA_RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
SETS = {"choosing": worlds.CHOOSING, "kept": worlds.KEPT, "beyond": worlds.BEYOND}
_TOLERANCE = 0.0025


@dataclass(frozen=True)
class Row:
    """What an audit said of one world, and the truth."""

    name: str
    pairs: int
    truth: float
    rate: float
    low: float
    high: float
    auroc: float  # NaN where nothing is mismatched
    ece: float
    sure: int  # pairs with p >= .99
    sure_wrong: int

    @property
    def holds(self) -> bool:
        return self.low - _TOLERANCE <= self.truth <= self.high + _TOLERANCE

    @property
    def calibrated(self) -> bool:
        return self.ece <= (0.05 if self.pairs >= 3000 else 0.08)


def judge(name: str, pairs: int, world: World) -> Row:
    found = quick_audit(world.images, world.texts, image_ids=world.image_of.tolist(), captions=world.captions)
    facts = found.facts
    estimate = Estimate(facts.rate, facts.rate_low, facts.rate_high)
    return scored(name, pairs, world.wrong, found.p_mismatch, estimate)


class Estimate(NamedTuple):
    """A rate and its interval, as `MismatchEstimate` has them."""

    rate: float
    low: float
    high: float


def scored(
    name: str, pairs: int, wrong: NDArray[np.bool_], p: NDArray[np.float64], said: Estimate | MismatchEstimate
) -> Row:
    sure = p >= 0.99
    return Row(
        name, pairs, float(wrong.mean()), said.rate, said.low, said.high, auroc(p, wrong),
        calibration_error(p, wrong), int(sure.sum()), int(wrong[sure].sum()),
    )  # fmt: skip


def planted(shapes: Sequence[Shape], sizes: Sequence[int], draws: int) -> Iterator[Row]:
    """Every shape in every size, so many draws of it; the rates go round."""
    for shape in shapes:
        for size in sizes:
            for draw in range(draws):
                seed = zlib.crc32(f"{shape.name}/{size}/{draw}".encode())
                yield judge(shape.name, size, worlds.make(shape, size, RATES[(seed + draw) % len(RATES)], seed))


def exchanged(images: Path, texts: Path, sizes: Sequence[int], draws: int) -> Iterator[Row]:
    a, b = (np.load(path, mmap_mode="r", allow_pickle=False) for path in (images, texts))
    for size in sizes:
        for draw in range(draws):
            for rate in RATES:
                rng = np.random.default_rng(1000 * draw + round(100 * rate))
                part = rng.permutation(len(a))[:size]
                shown = np.arange(len(part))
                chosen = rng.permutation(len(part))[: round(rate * len(part))]
                shown[chosen] = rng.permutation(chosen)
                names = [f"text {k}" for k in range(len(part))]
                world = World(a[part], b[part][shown], np.arange(len(part)), names, shown != np.arange(len(part)))
                yield judge(images.stem, len(part), world)


def before_training(path: str, second: str | None, draws: int) -> Iterator[Row]:
    for protocol, rate, draw in product(("image", "caption"), DATA_RATES, range(draws)):
        noise = NoiseConfig(rate=rate, protocol=protocol, seed=draw)
        data = open_split(embedded_before(DataConfig(path=path, second=second, noise=noise), texts=False), "train")
        vectors, truth = untrained_vectors(data), data.table.truth
        assert vectors is not None
        assert truth is not None
        judged = judge_by_others(vectors.images, vectors.texts, data.table.image_rows, joint=vectors.joint)
        name = f"{Path(path).name}, {protocol} protocol, draw {draw}"
        yield scored(name, len(data), truth.mismatched, judged.p_mismatch, judged.estimate)


def summary(rows: Sequence[Row], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    headings = ("pairs", "cells", "interval holds", "narrow where AUROC > .90", "rate error", "ECE", "ECE met",
                "p >= .99", "of them wrong")  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    for size in [*sorted({row.pairs for row in rows}), 0]:
        part = [row for row in rows if size in (0, row.pairs)]
        strong = [row for row in part if row.auroc > 0.9]
        sure = sum(row.sure for row in part)
        table.add_row(
            f"{size:,}" if size else "all",
            str(len(part)),
            f"{np.mean([row.holds for row in part]):.2f}",
            f"{np.mean([row.high - row.low < 0.15 for row in strong]):.2f} of {len(strong)}" if strong else "",
            f"{np.mean([abs(row.rate - row.truth) for row in part]):.3f}",
            f"{np.mean([row.ece for row in part]):.3f}",
            f"{np.mean([row.calibrated for row in part]):.2f}",
            f"{sure:,}",
            f"{sum(row.sure_wrong for row in part) / sure:.3f}" if sure else "",
        )
    return table


def report(console: Console) -> int:
    """The small part, on `KEPT`: how many of coverage and certainty are missed."""
    rows = list(planted(worlds.KEPT, [1500], 1))
    console.print(summary(rows, "quick_audit of planted worlds (benchmarks/trust.py)"))
    sure = sum(row.sure for row in rows)
    missed = np.mean([row.holds for row in rows]) < 0.9, sum(row.sure_wrong for row in rows) < 0.95 * sure
    return sum(map(bool, missed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__)
    parser.add_argument("--worlds", choices=[*SETS], default="kept")
    parser.add_argument("--vectors", type=Path, nargs=2, metavar=("IMAGES", "TEXTS"))
    parser.add_argument("--data", nargs="+", metavar=("DATA", "TEXTS"), help="a data set, and texts.npy for vectors")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1500])
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    console = Console(width=120)
    rows = []
    if given.data:
        title, cells = given.data[0], before_training(given.data[0], (given.data[1:] or [None])[0], given.draws)
    elif given.vectors:
        title, cells = given.vectors[0].stem, exchanged(*given.vectors, given.sizes, given.draws)
    else:
        title, cells = given.worlds, planted(SETS[given.worlds], given.sizes, given.draws)
    for row in cells:
        rows.append(row)
        certain = row.sure_wrong >= 0.95 * row.sure
        missing = [
            what for what, met in (("rate", row.holds), ("ECE", row.calibrated), ("p >= .99", certain)) if not met
        ]
        if missing:
            console.print(
                f"{row.name}, {row.pairs:,} pairs: truth {row.truth:.2f}, said {row.rate:.2f} ({row.low:.2f} to"
                f" {row.high:.2f}), AUROC {row.auroc:.3f}, ECE {row.ece:.3f}: {', '.join(missing)}",
                highlight=False,
            )
    console.print(summary(rows, title))


if __name__ == "__main__":
    main()
