"""Ray with one worker and with two, and two of which one is slow, or lost: the measuring pass.

`python -m benchmarks.scale --ray --sizes 100000,400000 --out FOLDER`. Three figures each: seconds of the clock with the
start of the workers, seconds from the first piece begun to the last one done, and the CPU seconds of the busier worker,
which other work on the machine disturbs least.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.scale import write_pairs
from mispair.progress import silent
from mispair.scale.frame import make_frame
from mispair.workflows.pair_vectors import Subject, open_vectors
from mispair.workflows.ray_audit import ShardWorker
from mispair.workflows.ray_engine import Cluster, connected, map_pieces

SHARDS, SLOW = 16, 3.0


class CountingWorker(ShardWorker):
    """Writes down when each piece was begun and done, and what it cost."""

    def work(self, piece: str) -> str:
        started, before = time.monotonic(), time.process_time()
        said = super().work(piece)
        with (self.judge.place.path.parent / "log.txt").open("a") as log:
            log.write(f"{os.getpid()} {started} {time.monotonic()} {time.process_time() - before}\n")
        return said


class SlowWorker(CountingWorker):
    """The process that is first to make `slow` takes so many times as long for every shard."""

    def __init__(self, subject: str, of: int, folder: str, frame: Any) -> None:
        super().__init__(subject, of, folder, frame)
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


class LostWorker(CountingWorker):
    """Killed in the middle of the work, once."""

    def work(self, piece: str) -> str:
        lost = self.judge.place.path.parent / "lost"
        if piece == str(SHARDS // 2) and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().work(piece)


@dataclass(frozen=True)
class Cost:
    """Of one pass, in seconds."""

    whole: float  # of the clock, the start of the workers included
    steady: float  # of the clock, from the first piece begun to the last one done
    busier: float  # of the processor, the worker that has the most

    def least(self, other: Cost) -> Cost:
        return Cost(*(min(a, b) for a, b in zip(self._all(), other._all(), strict=True)))

    def times(self, other: Cost) -> str:
        """How many times less than `other`."""
        return ", ".join(f"{b / a:.2f}" for a, b in zip(self._all(), other._all(), strict=True))

    def _all(self) -> tuple[float, ...]:
        return self.whole, self.steady, self.busier


def compare_workers(out: Path, pairs: int, rounds: int = 2, *, disturbed: bool = True) -> None:
    """Print costs, the best of `rounds`, interleaved after a round that is not counted."""
    files = write_pairs(out, pairs)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    cases: dict[str, tuple[int, type[CountingWorker]]] = {
        "one worker": (1, CountingWorker), "two workers": (2, CountingWorker),
    }  # fmt: skip
    if disturbed:
        cases |= {f"two, one of them {SLOW:g} times slower": (2, SlowWorker), "two, one lost once": (2, LostWorker)}
    best: dict[str, Cost] = {}
    with connected(None, 2) as cluster:
        for turn in range(rounds + 1):
            for name, (workers, worker) in cases.items():
                cost = _measure(Cluster(cluster.ray, workers), subject, worker, out / "ray")
                if turn:
                    best[name] = cost if name not in best else best[name].least(cost)
    for name, cost in best.items():
        print(
            f"{pairs:,} pairs, {name}: {cost.whole:.1f} s with the start, {cost.steady:.1f} s without,"
            f" {cost.busier:.1f} CPU s of the busier; times less than one worker: {cost.times(best['one worker'])}",
            flush=True,
        )


def _measure(cluster: Cluster, subject: Subject, worker: type[CountingWorker], folder: Path) -> Cost:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    started = time.monotonic()
    cluster.wake(worker)
    frame = cluster.share(make_frame(open_vectors(subject)))
    made_of = subject.model_dump_json(), SHARDS, str(folder / "S"), frame
    failed = map_pieces(cluster, worker, made_of, [str(k) for k in range(1, SHARDS + 1)], "measuring", silent)
    assert not failed, failed
    whole = time.monotonic() - started
    pieces = [line.split() for line in (folder / "log.txt").read_text().splitlines()]
    cpu: dict[str, float] = {}
    for process, _, _, seconds in pieces:
        cpu[process] = cpu.get(process, 0.0) + float(seconds)
    steady = max(float(end) for _, _, end, _ in pieces) - min(float(begin) for _, begin, _, _ in pieces)
    return Cost(whole, steady, max(cpu.values()))
