"""How does a grid run? Unfinished cells through the workers, with news; what was asked for is written down."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from mispair.atomic import write_text
from mispair.counted import counted
from mispair.errors import InputError
from mispair.experiments.estimate import TimeLeft, clock, past_seconds
from mispair.experiments.grid import Cell
from mispair.experiments.grid_file import NAME, GridFile, read_grid_file
from mispair.experiments.provenance import hardware, versions
from mispair.experiments.results import noise_problems, read_cell
from mispair.experiments.spec import Spec
from mispair.experiments.workers import News, Workers

LOCK = ".lock"  # of a grid's folder: two grids in one would write into the same cells


class Audience(Protocol):
    """Who hears how a grid goes: lines that stay, and one that is replaced."""

    def say(self, line: str) -> None:
        """Print a line that stays."""

    def show(self, line: str) -> None:
        """How it stands just now; the next one takes its place."""


def run_grid(cells: Sequence[Cell], jobs: int, keep: bool, threads: int, audience: Audience) -> tuple[list[News], bool]:
    """Run what is unfinished. Returns the failures, and whether a signal stopped it."""
    timing, say = TimeLeft(), audience.say
    unfinished: list[Cell] = []
    for cell in cells:
        if cell.status() == "finished":
            timing.finished(cell, past_seconds(cell))
        else:
            unfinished.append(cell)
    done, total = len(cells) - len(unfinished), len(cells)
    if done:
        say(f"{done} of {total} cells are finished already")
    failures: list[News] = []
    running: dict[Path, str] = {}
    workers = Workers(jobs, keep, threads)
    with _heeding(workers, audience):
        for news in workers.run(unfinished):
            if news.kind == "epoch":
                timing.epoch(news.cell, news.done, news.total)
                running[news.cell.folder] = f"{news.cell.name}, epoch {news.done}/{news.total}"
                audience.show(f"[{done}/{total}] {'; '.join(running.values())}{_left(timing, unfinished, jobs)}")
                continue
            running.pop(news.cell.folder, None)
            if news.kind == "stopped":
                continue
            unfinished = [cell for cell in unfinished if cell.folder != news.cell.folder]
            if news.kind == "failed":
                failures.append(news)
                say(f"[{done}/{total}] {news.cell.name} failed: {news.text}")
                continue
            done += 1
            timing.finished(news.cell, news.seconds)
            rest = _left(timing, unfinished, jobs)
            say(f"[{done}/{total}] {news.cell.name}  {_score(news.cell)}  {clock(news.seconds)}{rest}")
    for problem in noise_problems(cells):
        say(problem)
    return failures, workers.stopping


def refuse_changed(cells: Sequence[Cell], redo: bool) -> None:
    """A finished cell of another configuration is somebody's result: it goes only when asked for."""
    changed = [cell for cell in cells if cell.status() == "changed"]
    if changed and not redo:
        others = len(changed) - 1
        named = f"{changed[0].folder} and {counted(others, 'more cell')} were" if others else f"{changed[0].folder} was"
        raise InputError(
            f"{named} run with other values than the spec now gives; choose another -o, or add --redo to run again what"
            " has changed"
        )
    for cell in changed:
        shutil.rmtree(cell.folder)
        # An ensemble of a run that is made again is made again.
        for other in cells:
            if cell.folder in other.members and other.folder.exists():
                shutil.rmtree(other.folder)


def write_down(out: Path, spec: Spec, kind: str, data: str, seeds: int, command: str) -> None:
    """`experiment.json`: what the table needs to know besides the cells. Later commands are added."""
    before, known = read_grid_file(out) if os.path.lexists(out / NAME) else (None, None)
    if before is not None and known is not None and (known.name != spec.name or before.kind != kind):
        raise InputError(
            f"{out} holds experiment {known.name} on {before.kind}; choose another -o for {spec.name} on {kind}"
        )
    commands = before.commands if before else ()
    down = GridFile(
        spec=spec.model_dump(mode="json"),
        kind=kind,
        data=Path(data).name,
        seeds=max(seeds, before.seeds if before else 0),
        commands=(*commands, *([command] if command not in commands else [])),
        hardware=hardware(),
        versions=versions(),
    )
    write_text(out / NAME, json.dumps(down.model_dump(mode="json"), indent=2) + "\n")


def _left(timing: TimeLeft, unfinished: Sequence[Cell], jobs: int) -> str:
    left = timing.left(unfinished, jobs)
    return f", {clock(left)} left" if left is not None and unfinished else ""


def _score(cell: Cell) -> str:
    result = read_cell(cell.folder)
    assert result is not None
    return f"{result.galleries[0][0]} rSum {result.rsum:.1f}"


@contextmanager
def _heeding(workers: Workers, audience: Audience) -> Iterator[None]:
    def hear(number: int, frame: object) -> None:
        audience.say("stopping: the running cells are being saved")
        workers.stop()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
