"""How long will it take? From cells that are done, epochs that are done, or steps measured for the purpose."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from mispair.config.schema import RunConfig
from mispair.data.readers.dispatch import open_pairing
from mispair.experiments.grid import Cell
from mispair.protocols import RetrievalModel
from mispair.runtime.run_folder import RunFolder
from mispair.workflows.train import train

_STEPS = (1, 12)  # of one epoch, when measuring: at first, and where those were quick
_LONG_ENOUGH = 20.0  # seconds of measuring that tell enough


class TimeLeft:
    """Seconds a cell of each line takes; learned while the grid runs."""

    def __init__(self) -> None:
        self._measured: dict[str, list[float]] = {}
        self._guessed: dict[str, float] = {}  # from epochs, until the line's first cell is finished
        self._first: dict[Path, tuple[float, int]] = {}  # when which epoch was first heard of
        self._share: dict[Path, float] = {}

    def finished(self, cell: Cell, seconds: float) -> None:
        if cell.config is not None:
            self._measured.setdefault(cell.line, []).append(seconds)
        self._share[cell.folder] = 1.0

    def guess(self, cell: Cell, seconds: float) -> None:
        self._guessed[cell.line] = seconds

    @property
    def lines(self) -> set[str]:
        """Lines of which something is known."""
        return {*self._measured, *self._guessed}

    def epoch(self, cell: Cell, done: int, total: int) -> None:
        now = time.monotonic()
        start, first = self._first.setdefault(cell.folder, (now, done))
        self._share[cell.folder] = done / total
        if done > first:
            self._guessed[cell.line] = (now - start) / (done - first) * total

    def of(self, cell: Cell) -> float | None:
        """Seconds of the whole cell; None while nothing at all has been measured."""
        if cell.config is None:
            return 0.0
        means = {line: sum(seconds) / len(seconds) for line, seconds in self._measured.items()}
        known = {**self._guessed, **means}
        if not known:
            return None
        return known.get(cell.line, sum(known.values()) / len(known))

    def left(self, cells: Iterable[Cell], jobs: int) -> float | None:
        """Seconds until all `cells` are done; None while nothing has been measured."""
        total = 0.0
        for cell in cells:
            seconds = self.of(cell)
            if seconds is None:
                return None
            total += seconds * (1 - self._share.get(cell.folder, 0.0))
        return total / jobs


def past_seconds(cell: Cell) -> float:
    """What a finished cell took."""
    return float(RunFolder(cell.folder).summary["seconds"])


def measure(config: RunConfig) -> float:
    """Seconds a run of this configuration will take: a few steps before and after its warm-up, times their number."""
    pairing = open_pairing(config.data, "train")
    pairs, images = len(pairing.image_of_text), int(pairing.image_of_text.max()) + 1
    warmup, noise = config.method.warmup, config.data.noise
    left_out = noise.rate if noise is not None and noise.oracle else 0.0
    of_images = images / (pairs * (1 - left_out)) if left_out < 1 else math.inf
    for steps in _STEPS:
        limit = math.ceil(min(images, steps * config.train.batch_size * of_images))
        seconds = _epochs(_shortened(config, limit))
        if sum(seconds) > _LONG_ENOUGH:
            break
    # The first epoch of a phase also pays for what happens once, the first of all for starting: the faster one counts.
    main = config.train.epochs - warmup
    return (warmup * min(seconds[:2]) + main * min(seconds[-2:])) * images / limit


def _shortened(config: RunConfig, limit: int) -> RunConfig:
    """The same with so many images, and no more epochs than it takes to see each phase twice."""
    warmup = config.method.warmup
    return config.model_copy(
        update={
            "data": config.data.model_copy(update={"limit": limit}),
            "train": config.train.model_copy(update={"epochs": 4 if warmup else 3}),
            "method": config.method.model_copy(update={"warmup_epochs": 2} if warmup else {}),
        }
    )


def _epochs(config: RunConfig) -> list[float]:
    """Seconds of each epoch of a throw-away training."""
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        result = train(
            config,
            Path(scratch) / "run",
            evaluator=_Unjudged(),
            on_epoch=lambda report: seconds.append(report.seconds),
            summarize=False,
        )
    if result.stopped:
        raise KeyboardInterrupt
    return seconds


class _Unjudged:
    """Stands where the dev split is scored, so that only the training is timed."""

    primary = "rsum"

    def __call__(self, models: Sequence[RetrievalModel]) -> dict[str, float]:
        return {"rsum": 0.0}


def clock(seconds: float) -> str:
    """Seconds as a person reads them: 2:05, 1:02:05."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
