"""Who runs the cells? A few processes that take one cell after the other and say how it went.

A worker that dies costs its cell, not the grid. Workers have a session of their own, so that Ctrl-C reaches the grid
alone, which then asks each worker once to save and stop; and they end when the grid is gone, so that a killed and
restarted grid never meets an old worker in a cell.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from mispair.errors import InputError
from mispair.experiments.grid import Cell

_WATCH = 0.2  # seconds between two looks at the parent


@dataclass(frozen=True)
class News:
    """What a worker says about its cell."""

    cell: Cell
    kind: Literal["epoch", "finished", "failed", "stopped"]
    done: int = 0  # epochs
    total: int = 0
    text: str = ""
    seconds: float = 0.0


class Workers:
    """`count` processes with one thread each unless told otherwise."""

    def __init__(self, count: int, keep: bool, threads: int = 1) -> None:
        self._keep, self._threads, self._count = keep, threads, count
        self._busy: dict[Connection, tuple[Any, Cell]] = {}
        self._idle: list[tuple[Connection, Any]] = []
        self.stopping = False

    def run(self, cells: list[Cell]) -> Iterator[News]:
        """News until every cell is done or `stop` was called and the running ones have been saved."""
        waiting = list(cells)
        try:
            while self._busy or (waiting and not self.stopping):
                self._hand_out(waiting)
                for connection in wait(list(self._busy), timeout=0.5):
                    assert isinstance(connection, Connection)
                    yield self._hear(connection)
        finally:
            for connection, process in [*self._idle, *((c, p) for c, (p, _) in self._busy.items())]:
                connection.close()
                if process.is_alive():
                    process.terminate()
                process.join(5)

    def stop(self) -> None:
        """Ask the running cells to save and stop; a second time, at once."""
        self.stopping = True
        for process, _ in self._busy.values():
            process.terminate()

    def _hand_out(self, waiting: list[Cell]) -> None:
        while waiting and not self.stopping and len(self._busy) < self._count:
            cell = _next_ready(waiting, [busy for _, busy in self._busy.values()])
            if cell is None:
                return
            connection, process = self._idle.pop() if self._idle else self._start()
            try:
                connection.send(cell)
            except OSError:  # it died while it had nothing to do: another one takes the cell
                waiting.insert(0, cell)
                continue
            self._busy[connection] = (process, cell)

    def _start(self) -> tuple[Connection, Any]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        os.environ.update(dict.fromkeys(before, str(self._threads)))  # read when the worker imports torch
        process = context.Process(target=_work, args=(theirs, self._keep, self._threads), daemon=True)
        process.start()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        return ours, process

    def _hear(self, connection: Connection) -> News:
        process, cell = self._busy[connection]
        try:
            news: News = connection.recv()
        except (EOFError, OSError):
            del self._busy[connection]
            process.join(5)
            text = f"its process ended with code {process.exitcode} (out of memory?)"
            return News(cell, "stopped" if self.stopping else "failed", text=text)
        if news.kind != "epoch":
            del self._busy[connection]
        if news.kind in ("finished", "failed"):
            self._idle.append((connection, process))
        if news.kind == "stopped" and not self.stopping:  # somebody stopped this worker alone
            return News(cell, "failed", text="its process was asked to stop; the same command goes on with it")
        return news


def _next_ready(waiting: list[Cell], busy: list[Cell]) -> Cell | None:
    """The first cell whose members are not being trained at the moment or still waiting."""
    pending = {cell.folder for cell in [*waiting, *busy]}
    for place, cell in enumerate(waiting):
        if not pending & set(cell.members):
            return waiting.pop(place)
    return None


def _work(connection: Connection, keep: bool, threads: int) -> None:
    os.setsid()
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    import torch

    from mispair.experiments.cell import StoppedError, run_cell

    torch.set_num_threads(threads)
    while True:
        try:
            cell: Cell = connection.recv()
        except EOFError:
            return
        began = time.monotonic()
        try:
            run_cell(cell, keep, partial(_tell, connection, cell))
        except (StoppedError, KeyboardInterrupt):
            connection.send(News(cell, "stopped"))
            return
        except InputError as error:
            connection.send(News(cell, "failed", text=str(error)))
        except Exception as error:  # noqa: BLE001 - one cell's defect must not cost the grid
            where = traceback.format_exc()
            cell.folder.mkdir(parents=True, exist_ok=True)
            (cell.folder / "error.txt").write_text(where, encoding="utf-8")
            text = f"{type(error).__name__}: {error} (see {cell.folder / 'error.txt'})"
            connection.send(News(cell, "failed", text=text))
        else:
            connection.send(News(cell, "finished", seconds=time.monotonic() - began))


def _tell(connection: Connection, cell: Cell, done: int, total: int) -> None:
    connection.send(News(cell, "epoch", done, total))


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os.kill(os.getpid(), signal.SIGKILL)
