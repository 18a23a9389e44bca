"""`mispair ARGUMENTS` many times, each in a fork of one process that has imported everything and used nothing.

A fork starts in milliseconds, may hang, die or eat memory without harm to the tests, and can be killed at its n-th
write: Python reports every file that is opened for writing, renamed or removed (`sys.addaudithook`), so no clock is
involved.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
COMMAND_LINE = "mispair.cli.app"


@dataclass(frozen=True)
class Ran:
    code: int  # negative: ended by that signal
    out: str
    err: str
    hung: bool
    memory: int  # most that was resident beyond what the fork began with (what its parent had imported), bytes
    writes: int  # moments at which it could have been killed


class Forks:
    """The process that is forked. Use it in a `with`."""

    def __enter__(self) -> Forks:
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "200",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(
        self,
        *arguments: object,
        folder: Path | None = None,
        kill_at: int | None = None,
        by: signal.Signals = signal.SIGKILL,
        tear: bool = False,
        limit: float = 60.0,
        environment: Mapping[str, str] | None = None,
        ranks: int = 1,
        program: str = COMMAND_LINE,
    ) -> Ran:
        """`mispair ARGUMENTS`.

        Args:
            folder: where writes are counted.
            kill_at: the write, from 1, at which it is killed `by` a signal.
            tear: whether the file that was to be renamed then is left half as long, as if killed while writing it.
            limit: seconds after which it is ended as hung.
            environment: variables that differ from those of the tests.
            ranks: so many processes that know of each other by what torchrun sets; the first that fails gives the code.
            program: the module whose `main` is called, if not the command line.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            "arguments": list(map(str, arguments)), "folder": str(folder or ""), "kill_at": kill_at, "by": int(by),
            "tear": tear, "limit": limit, "environment": dict(environment or {}),
            "ranks": ranks, "program": program,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Ran(**json.loads(self._process.stdout.readline()))


# What torch imports at the first step of an optimizer, pyarrow at the first table, and the verbs when they are called:
# seconds of each fork, were it not here.
HEAVY = (
    "torch._dynamo", "torch.utils.tensorboard", "pandas", "pyarrow.parquet", "mispair.workflows.assemble",
    "mispair.workflows.audit", "mispair.workflows.report", "mispair.workflows.train", "mispair.auditing.quick",
    "mispair.data.scenes.draw", "mispair.report.html",
)  # fmt: skip


def _import() -> None:
    """Everything that is dear to import, as yet unused."""
    for name in (COMMAND_LINE, *HEAVY):
        with contextlib.suppress(ImportError):  # some are extras
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a fork that collects would touch, and so copy, every page


def _serve() -> None:
    _import()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)  # noqa: T201


def _run(order: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        out, err, writes, began = (Path(scratch) / name for name in ("out", "err", "writes", "began"))
        ended, alive = os.pipe()  # the child holds one end: the other closes when it ends
        pid = os.fork()
        if pid == 0:
            os.close(ended)
            began.write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
            _child(order, out, err, writes)
        os.close(alive)
        hung = not select.select([ended], [], [], order["limit"])[0]
        if hung:
            os.killpg(pid, signal.SIGKILL)
        os.close(ended)
        _, status, usage = os.wait4(pid, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": out.read_text(errors="replace"),
            "err": err.read_text(errors="replace"),
            "hung": hung,
            "memory": (usage.ru_maxrss - int(began.read_text())) * (1 if sys.platform == "darwin" else 1024),
            "writes": writes.stat().st_size if writes.exists() else 0,
        }


def _child(order: dict[str, Any], out: Path, err: Path, writes: Path) -> None:
    code: object = 1
    others: list[int] = []
    try:
        os.setsid()
        os.environ.update(order["environment"])
        for target, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = (open(fd, "w", encoding="utf-8", closefd=False) for fd in (1, 2))  # noqa: SIM115
        if order["folder"]:
            _count_writes(order, os.open(writes, os.O_CREAT | os.O_WRONLY | os.O_APPEND))
        sys.argv = ["mispair", *order["arguments"]]
        others = _fork_ranks(order["ranks"])
        try:
            importlib.import_module(order["program"]).main()
            code = 0
        except SystemExit as stop:
            code = stop.code
            if not isinstance(code, int):
                code = 0 if code is None else 1
        except BaseException:  # noqa: BLE001  as the interpreter would
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        for pid in others:
            if code:
                os.kill(pid, signal.SIGKILL)  # it would wait for this one
            code = code or os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os._exit(code % 256 if isinstance(code, int) else 1)


def _fork_ranks(ranks: int) -> list[int]:
    """The other processes of several; in those, none."""
    if ranks == 1:
        return []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    others = []
    for rank in reversed(range(ranks)):
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        if rank and (pid := os.fork()):
            others.append(pid)
        elif rank:
            return []
    return others


def _count_writes(order: dict[str, Any], tally: int) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event == "open":
            writing = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(arguments[2], int) else 0
        else:
            writing = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
        path = arguments[0] if writing and arguments else None
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path).startswith(order["folder"]):
            return
        seen += 1
        os.write(tally, b".")
        if seen == order["kill_at"]:
            if order["tear"] and event == "os.rename" and os.path.isfile(path):
                os.truncate(path, os.path.getsize(path) // 2)  # its own event comes after `seen` was counted
            os.kill(os.getpid(), order["by"])

    sys.addaudithook(hook)


if __name__ == "__main__":
    _serve()
