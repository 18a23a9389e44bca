"""Two processes of one thread against one: `python -m benchmarks.processes`. Whole training steps, InfoNCE.

Both live in one run and take turns: one takes the step alone while the other sleeps, then both take it together.
Best of several. Wall-clock seconds need two free cores; the CPU seconds of the busier process do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.models import REGIONS, VOCABULARY, captions
from mispair.functional.contrastive_losses import info_nce
from mispair.models import InputSizes, build_model, model_preset
from mispair.runtime.engine import Engine, EngineConfig
from mispair.types import PairBatch

REPEATS = 3


@dataclass(frozen=True)
class Step:
    """One training step: a model at its size, a batch, and how much faster two processes must be."""

    model: str
    size: str
    batch: int
    floor: float


STEPS = (Step("sgr", "small", 128, 1.7), Step("vse", "paper", 1024, 1.5))


def report(console: Console) -> int:
    """Print the table; how many floors are missed, by the CPU seconds of the busier process."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    command += ["--rdzv-endpoint=localhost:0", "-m", "benchmarks.processes", "rank"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    table = Table(title="two processes of one thread against one: a training step", title_justify="left")
    for heading in ("step", "alone", "together", "ratio", "CPU alone", "CPU of the busier", "ratio", "floor"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    missed = 0
    for step, found in zip(STEPS, json.loads(done.stdout.splitlines()[-1]), strict=True):
        wall, cpu = (found["alone"][kind] / found["together"][kind] for kind in ("wall", "cpu"))
        missed += cpu < step.floor
        seconds = [f"{found[who][kind]:.2f} s" for kind in ("wall", "cpu") for who in ("alone", "together")]
        name = f"{step.model} {step.size}, batch {step.batch}"
        table.add_row(name, *seconds[:2], f"{wall:.2f}x", *seconds[2:], f"{cpu:.2f}x", f"{step.floor:g}x")
    console.print(table)
    return missed


def rank() -> None:
    """One of the two processes; the first prints what was found."""
    torch.set_num_threads(1)
    found = []
    for step in STEPS:
        alone, together = _steps(step)
        best: dict[str, dict[str, float]] = {}
        for turn in range(REPEATS + 1):  # the first only warms up
            times = {"alone": _timed(alone if dist.get_rank() == 0 else _nothing), "together": _timed(together)}
            for who, seconds in times.items() if turn else ():
                best[who] = {kind: min(value, best.get(who, seconds)[kind]) for kind, value in seconds.items()}
        found.append(best)
    if dist.get_rank() == 0:
        print(json.dumps(found))


def _steps(step: Step) -> tuple[Callable[[], None], Callable[[], None]]:
    """The step by this process alone, and its part of the step by all."""
    torch.manual_seed(0)
    width = 2048 if step.size == "paper" else 256
    sizes = InputSizes(image_width=width, vocabulary_size=VOCABULARY, regions=REGIONS)
    images, (words, mask) = torch.randn(step.batch, REGIONS, width), captions(step.batch)
    real = torch.ones(step.batch, REGIONS, dtype=torch.bool)
    whole = PairBatch(images, real, words, mask, torch.arange(step.batch))
    engines = [Engine(EngineConfig(device="cpu")) for _ in range(2)]
    engines[0].world = 1
    share = step.batch // engines[1].world
    mine = slice(engines[1].rank * share, (engines[1].rank + 1) * share)
    part = PairBatch(images[mine], real[mine], words[mine], mask[mine], whole.pair_ids)

    def prepared(engine: Engine, batch: PairBatch) -> Callable[[], None]:
        model = build_model(model_preset(step.model, step.size), sizes).train()
        engine.adopt({"net": model}, {})
        engine.set_learning_rate(1e-4)

        def run() -> None:
            with engine.arithmetic():
                scores: Tensor = model.link(model.similarity(*engine.encode(model, batch)))
                engine.minimize("net", info_nce(scores, 0.05).mean())

        return run

    return prepared(engines[0], whole), prepared(engines[1], part)


def _timed(work: Callable[[], None]) -> dict[str, float]:
    """Wall-clock seconds until all are done, and the CPU seconds of the busier process."""
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    spent = torch.tensor(time.process_time() - cpu)
    dist.all_reduce(spent, dist.ReduceOp.MAX)
    return {"wall": time.perf_counter() - wall, "cpu": float(spent)}


def _nothing() -> None:
    pass


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        rank()
    else:
        sys.exit(1 if report(Console()) else 0)
