"""A grid goes on where it was, whatever happened to it, and ends as if nothing had."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mispair.errors import InputError
from mispair.experiments.cell import run_cell
from mispair.experiments.estimate import TimeLeft
from mispair.experiments.results import noise_problems, read_cell
from mispair.experiments.runner import LOCK, run_grid, write_down
from mispair.experiments.spec import parse_spec
from mispair.runtime.lock import claimed
from tests.experiments.grids import tiny_cells, tiny_spec, write_cell, write_spec


class Heard:
    def __init__(self):
        self.said, self.shown = [], []

    def say(self, line):
        self.said.append(line)

    def show(self, line):
        self.shown.append(line)


# `experiments run`, which sends itself a signal in the second epoch of a cell, once so many cells are finished; its
# workers are named first.
_SIGNALLED = """
import os, sys
from pathlib import Path
from mispair.cli import progress
from mispair.cli.app import main

number, after = int(sys.argv.pop(1)), int(sys.argv.pop(1))

class Signalled(progress.Ticker):
    finished = 0

    def say(self, line):
        self.finished += "rSum" in line
        super().say(line)

    def show(self, line):
        if self.finished >= after and "epoch 2/4" in line and number:
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
            print("workers", children.read_text() if children.exists() else "", flush=True)
            os.kill(os.getpid(), number)
        super().show(line)

progress.Ticker = Signalled
main()
"""


def _run(spec, out, log, number=0, after=0):
    """The exit code of a grid that gets the signal of that number, once `after` cells are finished."""
    command = ["experiments", "run", str(spec), "-o", str(out), "--seeds", "2"]
    with log.open("w") as file:
        ran = subprocess.run(
            [sys.executable, "-c", _SIGNALLED, str(int(number)), str(after), *command],
            stderr=subprocess.STDOUT, stdout=file, timeout=280, check=False,
        )  # fmt: skip
    return ran.returncode


def _gone(pid, seconds):
    """Wait until a process that is not ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = bool(select.select([handle], [], [], seconds)[0])
    os.close(handle)
    return ended


def _finished(out):
    return sorted(out.glob("cells/*/*/*/metrics.json"))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="looks for orphans as Linux does")
def test_killed_and_restarted_it_ends_as_if_nothing_had_happened(tmp_path):
    spec, out, log = write_spec(tmp_path), tmp_path / "out", tmp_path / "log"
    assert _run(spec, out, log, signal.SIGKILL, after=2) == -signal.SIGKILL
    workers = log.read_text().partition("workers ")[2].split()
    assert workers
    assert all(_gone(int(pid), 10) for pid in workers)
    done = {path: path.stat().st_mtime_ns for path in _finished(out)}
    assert 0 < len(done) < 8

    assert _run(spec, out, log) == 0, log.read_text()
    assert "8 of 8 cells are finished" in log.read_text()
    assert f"{len(done)} of 8 cells are finished already" in log.read_text()
    assert {path: path.stat().st_mtime_ns for path in done} == done

    for cell in tiny_cells(tmp_path / "at once"):  # the kill fell among the first seed's cells
        run_cell(cell, keep=False, tell=lambda done, total: None)
        interrupted = out / cell.folder.relative_to(tmp_path / "at once")
        assert read_cell(interrupted).galleries == read_cell(cell.folder).galleries
        assert read_cell(interrupted).noise == read_cell(cell.folder).noise
        assert not (interrupted / "last").exists()
    assert noise_problems(tiny_cells(out, seeds=2)) == []


@pytest.mark.slow
def test_asked_to_stop_it_saves_first(tmp_path):
    spec, out, log = write_spec(tmp_path), tmp_path / "out", tmp_path / "log"
    assert _run(spec, out, log, signal.SIGTERM) == 130
    assert "The same command goes on" in log.read_text()
    cell = next(c for c in tiny_cells(out) if c.status() != "finished")
    assert cell.status() == "begun"
    run_cell(cell, keep=False, tell=lambda done, total: None)
    (whole,) = tiny_cells(tmp_path / "at once", only=[f"row={cell.line}", f"column={cell.column}"])
    run_cell(whole, keep=False, tell=lambda done, total: None)
    assert read_cell(cell.folder).galleries == read_cell(whole.folder).galleries


def test_a_failing_cell_is_reported_and_costs_nothing_else(tmp_path):
    rows = {
        "greedy": {"method": "plain", "set": {"train.batch_size": 5000}},
        "plain": {"method": "plain"},
    }
    heard = Heard()
    cells = tiny_cells(tmp_path, rows=rows, columns={"x": {}})
    failures, stopped = run_grid(cells, 1, keep=True, threads=1, audience=heard)
    assert not stopped
    assert [(f.cell.line, "fewer than one batch of 5000" in f.text) for f in failures] == [("greedy", True)]
    assert cells[1].status() == "finished"
    assert (cells[1].folder / "last" / "state.pt").exists()  # keep
    assert any("greedy x seed 0 failed" in line for line in heard.said)
    assert any("epoch 2/4" in line and "left" in line for line in heard.shown)
    assert any(line.startswith("[1/2] plain x seed 0  test rSum") for line in heard.said)


def test_a_folder_holds_one_experiment_and_one_grid_at_a_time(tmp_path):
    spec = parse_spec(tiny_spec(), "x")
    write_down(tmp_path, spec, "scenes", "scenes", 2, "mispair experiments run tiny")
    write_down(tmp_path, spec, "scenes", "scenes", 1, "mispair experiments run tiny --only row=plain")
    down = json.loads((tmp_path / "experiment.json").read_text())
    assert down["seeds"] == 2
    assert len(down["commands"]) == 2
    with pytest.raises(InputError, match="holds experiment tiny on scenes"):
        write_down(tmp_path, parse_spec(tiny_spec(name="other"), "x"), "scenes", "scenes", 1, "")
    with (
        claimed(tmp_path / LOCK, "mispair experiments run"),
        pytest.raises(InputError, match=r"is in use by mispair experiments run \(process"),
        claimed(tmp_path / LOCK, "mispair experiments run"),
    ):
        pass


def test_rows_that_met_different_mismatches_are_reported(tmp_path):
    found = tiny_cells(tmp_path, only=["column=0.6"])
    for cell, noise in zip(found, ("one", "another"), strict=True):
        write_cell(tmp_path, cell.line, cell.column, cell.seed, 1.0, noise=noise)
    (problem,) = noise_problems(found)
    assert problem.startswith("column 0.6, seed 0: the rows met different mismatches")


def test_time_left_is_learned_per_row():
    plain, _, l2rm, other = tiny_cells(Path("out"))
    timing = TimeLeft()
    assert timing.left([plain], 1) is None
    timing.finished(plain, 10.0)
    timing.finished(l2rm, 30.0)
    assert timing.of(other) == 30.0
    assert timing.left([other, l2rm], 2) == 15.0  # the finished one has nothing left
    unknown = tiny_cells(Path("out"), rows={"new": {"method": "plain"}})[0]
    assert timing.of(unknown) == 20.0
