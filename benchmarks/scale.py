"""How does judging grow? `python -m benchmarks.scale --sizes 100000,1000000 --reference 100000 --out FOLDER`

Synthetic pairs x 256 (topics, noise on both sides, 30 % re-paired) are written as two .npy, then judged from their
memory maps, every size in a process of its own on one thread. Printed: CPU seconds, in all and by stage, peak memory
beside the maps, the exponent of the growth; with --reference the audit that holds everything and compares all suspects
with all, and the share of its proposals that are the same. Results are kept in FOLDER and not measured again.
`--ray` measures the engine instead: the same sets by one worker and by two, the first with a slow and a failing worker
too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, RATE, CHUNK = 256, 0.3, 50_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--reference", default="", help="sizes that the audit that holds everything judges too")
    parser.add_argument("--out", type=Path, default=Path("runs/scale"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--by", choices=("large", "whole"), default="large", help=argparse.SUPPRESS)
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.ray:
        from benchmarks.scale_ray import compare_workers

        for count in _numbers(arguments.sizes):
            compare_workers(arguments.out, count, disturbed=count == _numbers(arguments.sizes)[0])
    elif arguments.one is not None:
        _measure(arguments.out, arguments.one, arguments.by)
    else:
        _all(arguments.out, _numbers(arguments.sizes), _numbers(arguments.reference))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _all(out: Path, sizes: list[int], reference: list[int]) -> None:
    found = {}
    for by, counts in (("large", sizes), ("whole", reference)):
        for count in counts:
            result = out / f"{by}-{count}.json"
            if not result.exists():
                command = [sys.executable, "-m", "benchmarks.scale", "--out", str(out), "--one", str(count), "--by", by]
                subprocess.run(command, check=True)
            found[by, count] = json.loads(result.read_text())
            print(f"{by} {count:,}: {json.dumps(found[by, count])}", flush=True)
    cpu = {count: found["large", count]["cpu"] for count in sizes}
    for one, other in pairwise(sizes):
        exponent = np.log(cpu[other] / cpu[one]) / np.log(other / one)
        print(f"growth from {one:,} to {other:,}: exponent {exponent:.2f}")
    for count in reference:
        if count in sizes:
            ratio = found["whole", count]["cpu"] / cpu[count]
            print(f"{count:,}: {ratio:.1f} times less CPU, {same(out, count):.3f} of the proposals the same")


def same(out: Path, count: int) -> float:
    """Of the proposals of the audit that holds everything, the share that the other makes too."""
    ours, theirs = (np.load(out / f"{by}-{count}.npy") for by in ("large", "whole"))
    return float((ours == theirs)[theirs >= 0].mean())


def write_pairs(out: Path, count: int) -> tuple[Path, Path]:
    """Two .npy of `count` rows; made once."""
    files = out / f"images-{count}.npy", out / f"texts-{count}.npy"
    if files[1].exists():
        return files
    shape = (count, WIDTH)
    a, b = (np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.float32, shape) for path in files)
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(max(count // 500, 20), WIDTH)).astype(np.float32)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        meaning = topics[rng.integers(len(topics), size=size)] + 0.7 * _noise(rng, size)
        a[start : start + size] = meaning + _noise(rng, size)
        texts = meaning + _noise(rng, size)
        chosen = rng.choice(size, int(RATE * size), replace=False)
        texts[chosen] = texts[np.roll(chosen, 1)]
        b[start : start + size] = texts
    del a, b
    for path in files:
        path.with_suffix(".part").rename(path)
    return files


def _noise(rng: np.random.Generator, size: int) -> NDArray[np.float32]:
    return rng.standard_normal((size, WIDTH), np.float32)


def _measure(out: Path, count: int, by: str) -> None:
    import torch

    torch.set_num_threads(1)
    files = write_pairs(out, count)
    peak = Peak()
    with peak:
        before, started, stages = time.process_time(), time.monotonic(), Stages()
        verdicts = _judged(files, by, stages)
        result: dict[str, Any] = {
            "pairs": count,
            "cpu": round(time.process_time() - before, 1),
            "seconds": round(time.monotonic() - started, 1),
            "rate": round(verdicts.facts.rate, 4),
            "stages": {what: round(seconds, 1) for what, seconds in stages.cpu.items()},
        }
    proposed = verdicts.table["proposed_caption_pair"].fill_null(-1).to_numpy()
    np.save(out / f"{by}-{count}.npy", proposed)
    result |= {"peak_mb": round(peak.most / 1e6), "proposed": int((proposed >= 0).sum())}
    (out / f"{by}-{count}.json").write_text(json.dumps(result))


def _judged(files: tuple[Path, Path], by: str, tell: Stages) -> Any:
    from mispair.auditing.quick import quick_audit_files
    from mispair.scale.judge_many import judge_many
    from mispair.workflows.pair_vectors import Subject, about_subject, open_vectors

    if by == "whole":
        return quick_audit_files(*files, tell=tell)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    return judge_many(open_vectors(subject), about_subject(subject), tell)


class Stages:
    """CPU seconds up to each word of progress, by what it says was done."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self._last = time.process_time()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.process_time()
        self.cpu[what] = self.cpu.get(what, 0.0) + now - self._last
        self._last = now


class Peak:
    """The most memory of this process that is not pages of a file, looked at every twentieth of a second."""

    def __init__(self) -> None:
        self.most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
                if line.startswith("RssAnon"):
                    self.most = max(self.most, int(line.split()[1]) * 1024)


if __name__ == "__main__":
    main()
