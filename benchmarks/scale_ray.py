"""Ray with one worker and with two, and two of which one is slow, or lost: seconds of the measuring pass."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.scale import write_pairs
from mispair.progress import silent
from mispair.workflows.pair_vectors import Subject
from mispair.workflows.ray_audit import ShardWorker
from mispair.workflows.ray_engine import Cluster, connected, map_pieces

PAIRS, SHARDS, SLOW = 100_000, 16, 3.0


class SlowWorker(ShardWorker):
    """The process that is first to make `slow` takes so many times as long for every shard."""

    def __init__(self, subject: str, of: int, folder: str) -> None:
        super().__init__(subject, of, folder)
        try:
            os.close(os.open(Path(folder).parent / "slow", os.O_CREAT | os.O_EXCL))
            self.slow = True
        except FileExistsError:
            self.slow = False

    def work(self, piece: str) -> str:
        started = time.monotonic()
        said = super().work(piece)
        if self.slow:
            time.sleep((SLOW - 1) * (time.monotonic() - started))
        return said


class LostWorker(ShardWorker):
    """Killed in the middle of the work, once."""

    def work(self, piece: str) -> str:
        lost = self.judge.place.path.parent / "lost"
        if piece == str(SHARDS // 2) and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().work(piece)


def compare_workers(out: Path, rounds: int = 2) -> None:
    """Print seconds, best of `rounds`, interleaved after a round that is not counted."""
    files = write_pairs(out, PAIRS)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    cases: dict[str, tuple[int, type[ShardWorker]]] = {
        "one worker": (1, ShardWorker), "two workers": (2, ShardWorker),
        f"two, one of them {SLOW:g} times slower": (2, SlowWorker), "two, one of them lost once": (2, LostWorker),
    }  # fmt: skip
    best = dict.fromkeys(cases, float("inf"))
    with connected(None, 2) as cluster:
        for turn in range(rounds + 1):
            for name, (workers, worker) in cases.items():
                seconds = _measure(Cluster(cluster.ray, workers), subject, worker, out / "ray")
                if turn:
                    best[name] = min(best[name], seconds)
    for name, seconds in best.items():
        print(f"{name}: {seconds:.1f} s, {best['one worker'] / seconds:.2f} times one worker")


def _measure(cluster: Cluster, subject: Subject, worker: Any, folder: Path) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made_of = subject.model_dump_json(), SHARDS, str(folder / "S")
    started = time.monotonic()
    failed = map_pieces(cluster, worker, made_of, [str(k) for k in range(1, SHARDS + 1)], "measuring", silent)
    assert not failed, failed
    return time.monotonic() - started
