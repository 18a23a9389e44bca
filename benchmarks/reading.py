"""Does a training step wait for the disk? `python -m benchmarks.reading --out FOLDER`

Steps of VSE at paper size and at its smallest (36 regions x 2048, batch 128: 38 MB a step) over batches drawn from a
whole array of features, by the reader of any training: from a sparse file as large as COCO's (33 GB), and from one with
real bytes (4 GB, written once), first with nothing of it in the system's cache (`posix_fadvise` gives the pages back),
then as the cache is. Printed: seconds of the clock, and how many of them the steps waited, with the first three
batches, for which nobody could have read ahead, counted apart.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch

from mispair.data import DataConfig, PairData, open_split
from mispair.functional.contrastive_losses import info_nce
from mispair.models import build_model, model_preset
from mispair.runtime.engine import Engine, EngineConfig
from mispair.runtime.epoch_run import AHEAD, EpochRun
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams
from mispair.runtime.train_config import TrainConfig
from mispair.types import PairBatch
from mispair.workflows.assemble import input_sizes

BATCH, REGIONS, WIDTH = 128, 36, 2048
COCO, REAL = 113_287, 13_500  # images: 33 and 4 GB


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/reading"))
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, images, sparse in (("sparse", COCO, True), ("real", REAL, False)):
        folder = arguments.out / name
        data = write(folder, images, sparse=sparse)
        file = folder / "train_ims.npy"
        for size in ("paper", "small"):
            for cold in (False,) if sparse else (True, False):
                if cold:
                    drop(file)
                before = from_disk()
                begun, waited, total = sweep(data, size, arguments.steps)
                print(
                    f"{name} {file.stat().st_size / 1e9:.1f} GB, {'cache dropped' if cold else 'cache as it is'}, vse"
                    f" {size}: {arguments.steps} steps in {total:.1f} s, {(from_disk() - before) / 1e6:.0f} MB from the"
                    f" disk; waited {begun:.2f} s for the first {AHEAD} batches, {waited:.2f} s"
                    f" ({waited / (total - begun):.1%}) for all others",
                    flush=True,
                )


def write(folder: Path, images: int, *, sparse: bool) -> PairData:
    """Features and one caption of each image in the layout of the field; nothing is written twice."""
    folder.mkdir(parents=True, exist_ok=True)
    path, shape = folder / "train_ims.npy", (images, REGIONS, WIDTH)
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
            if sparse:
                stream.truncate(stream.tell() + 4 * int(np.prod(shape)))
            else:
                rng = np.random.default_rng(0)
                for start in range(0, images, 500):
                    stream.write(rng.standard_normal((min(500, images - start), *shape[1:]), np.float32).tobytes())
        part.rename(path)
    words = [f"word{k}" for k in range(200)]
    rng = np.random.default_rng(1)
    (folder / "train_caps.txt").write_text(
        "".join(" ".join(rng.choice(words, 12)) + "\n" for _ in range(images)), encoding="utf-8"
    )
    return open_split(DataConfig(path=str(folder)), "train")


def drop(path: Path) -> None:
    """The system's cache holds no page of the file from here on, until somebody reads it."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def from_disk() -> int:
    """Bytes that this process has had read from the disk, as Linux tells it."""
    return int(Path("/proc/self/io").read_text().split("read_bytes:")[1].split()[0])


class FirstApart(EpochRun):
    """Notes what the first batches waited."""

    begun = 0.0

    def _ahead(self, read: Any, chosen: Any) -> Iterator[Any]:
        for number, batch in enumerate(super()._ahead(read, chosen)):
            if number < AHEAD:
                self.begun = self.waited
            yield batch


def sweep(data: PairData, size: Literal["paper", "small"], steps: int) -> tuple[float, float, float]:
    """Seconds waited for the first batches, for the others, and of all."""
    torch.manual_seed(0)
    engine = Engine(EngineConfig(device="cpu"))
    model = build_model(model_preset("vse", size), input_sizes(data))
    engine.adopt({"net": model}, {})
    engine.set_learning_rate(1e-4)
    method: Any = SimpleNamespace(modules={"net": model})
    config = TrainConfig(epochs=1, batch_size=BATCH)
    run = FirstApart(config, engine, data, method, Journal(None), Streams(0), lambda stepped: None)
    run.begin(0)

    def step(_: EpochRun, given: PairBatch) -> None:
        engine.minimize("net", info_nce(model.similarity(*engine.encode(model, given)), 0.05).mean())

    chosen = np.random.default_rng(2).permutation(len(data))[: steps * BATCH]
    started = time.monotonic()
    run.sweep(step, given=chosen)
    return run.begun, run.waited - run.begun, time.monotonic() - started


if __name__ == "__main__":
    main()
