"""Workers that note what they do, and one that is lost: the tests' own, importable where Ray runs them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mispair.workflows.ray_audit import ShardWorker


class Noting(ShardWorker):
    """Writes down every shard it begins."""

    def work(self, piece: str) -> str:
        with (self.judge.place.path.parent / "log.txt").open("a") as log:
            log.write(f"{piece}\n")
        return super().work(piece)


class LostOnce(Noting):
    """Its process is killed at shard 3, the first time."""

    def work(self, piece: str) -> str:
        lost = self.judge.place.path.parent / "lost"
        if piece == "3" and not lost.exists():
            Path(lost).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().work(piece)
