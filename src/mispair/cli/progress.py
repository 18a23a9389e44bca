"""Progress on standard error: a bar on a terminal, a line now and then elsewhere, nothing for short work."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PATIENCE = 2.0  # seconds before anything is said
_EVERY = 5.0  # seconds between lines where there is no terminal


class Progress:
    """Tell it what is done; it decides whether anybody needs to know."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last = 0.0
        self._live = sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._start < _PATIENCE or now - self._last < (0.1 if self._live else _EVERY):
            return
        self._last = now
        self._shown = True
        rate = done / (now - self._start)
        left = int((total - done) / rate) if rate else 0
        share = f"{what}: {done:,} of {total:,} ({done / max(total, 1):.0%})"
        share += f", {rate:,.0f}/s, {left // 60}:{left % 60:02d} left"
        sys.stderr.write(f"\r\x1b[2K{share}" if self._live else f"{share}\n")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
