"""A function in a fork, with limits: an endless loop and a wait that never ends both come to an end."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

IDLE = 180.0  # seconds
BROKEN = 98  # exit code of a fork whose work raised


def forked(work: Callable[[], int], log: Path, cpu: int, idle: float = IDLE) -> int | None:
    """The exit code of `work` in a fork, None where it died or took more than `cpu` seconds of processor time.

    Time on the clock is no measure on a busy machine; a fork that has used no processor for `idle` seconds hangs.
    """
    pid = os.fork()
    if pid == 0:
        code = BROKEN
        try:
            os.setsid()
            to = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(to, 1)
            os.dup2(to, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
            code = work()
        except BaseException:  # noqa: BLE001  as the interpreter would
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    used, since, looked = -1.0, time.monotonic(), 0.0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else None
        now = time.monotonic()
        if now - looked > min(5.0, idle):
            looked, spent = now, _spent(pid)
            if spent > used:
                used, since = spent, now
            elif now - since > idle:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return None
        time.sleep(0.02)


def _spent(session: int) -> float:
    """Clock ticks used by the processes of a session; the time of day where the system does not say."""
    total, seen = 0, False
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended
        seen = True
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return float(total) if seen else time.monotonic()
