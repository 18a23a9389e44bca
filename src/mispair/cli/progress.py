"""Progress on standard error: a bar on a terminal, a line now and then elsewhere, nothing for short work."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

_PATIENCE = 2.0  # seconds before anything is said
_EVERY = 5.0  # seconds between lines where there is no terminal


class ProgressLine:
    """Tell it what is done; it decides whether anybody needs to know."""

    def __init__(self) -> None:
        self._start = self._heard = time.monotonic()
        self._idle = 0.0  # seconds after the start at which the present piece of work began
        self._what = ""
        self._last = 0.0
        self._live = sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:  # another piece of work has its own pace; it began when the last one was done
            self._what, self._idle = what, (self._heard if done else now) - self._start  # 0: it begins now
        self._heard = now
        if now - self._start < _PATIENCE or now - self._last < (0.1 if self._live else _EVERY):
            return
        self._last = now
        self._shown = True
        rate = done / max(now - self._start - self._idle, 1e-9)
        left = int((total - done) / rate) if rate else 0
        share = f"{what}: {done:,} of {total:,} ({done / max(total, 1):.0%})"
        share += f", {_rate(rate)}, {left // 60}:{left % 60:02d} left" if done else ""
        sys.stderr.write(f"\r\x1b[2K{share}" if self._live else f"{share}\n")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the bar off the terminal: something else is printed now."""
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False


def _rate(rate: float) -> str:
    """So many a second, or seconds each where it is less than one."""
    if rate < 0.95:
        return f"{1 / max(rate, 1e-9):,.0f} s each"
    return f"{rate:,.0f}/s" if rate >= 9.95 else f"{rate:.1f}/s"


class Ticker:
    """Lines that stay, and below them one that says how it stands: on a terminal at once, elsewhere once a minute."""

    def __init__(self, every: float = 60.0) -> None:
        self._every = every
        self._last = time.monotonic()
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Ticker:
        return self

    def say(self, line: str) -> None:
        self._last = time.monotonic()
        sys.stderr.write(f"{self._clear()}{line}\n")
        sys.stderr.flush()

    def show(self, line: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{self._clear()}{line[:width]}")
            sys.stderr.flush()
        elif time.monotonic() - self._last >= self._every:
            self.say(line)

    def _clear(self) -> str:
        return "\r\x1b[2K" if self._live else ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stderr.write(self._clear())
        sys.stderr.flush()
