"""A million vectors: grouped search against comparing every one, memory of building, the first query of a process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import Case
from mispair.searching.inverted import load_inverted, search_inverted
from mispair.searching.nearest import exact_nearest

PAIRS, WIDTH = 1_000_000, 256
_BLOCK = 65_536
_COLD = """
import sys, time
from pathlib import Path
import numpy as np
from mispair.searching.inverted import load_inverted, search_inverted
index = load_inverted(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
search_inverted(index, np.ones((1, int(sys.argv[3])), np.float32), 10)
print(time.process_time())
"""
_BUILD = """
import sys
from pathlib import Path
import numpy as np
from mispair.searching.inverted import build_inverted, require_faiss
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
require_faiss()
before = peak()
build_inverted(np.load(sys.argv[1], mmap_mode="r"), Path(sys.argv[2]))
print(peak() - before)
"""


def _write(path: Path) -> None:
    """Topics with structure of low dimension and noise on top, as embeddings have it."""
    rng = np.random.default_rng(0)
    topics, spread = rng.normal(size=(2000, 32)).astype(np.float32), rng.normal(size=(32, WIDTH)).astype(np.float32)
    vectors = np.lib.format.open_memmap(path, "w+", np.float16, (PAIRS, WIDTH))
    for start in range(0, PAIRS, _BLOCK):
        size = min(_BLOCK, PAIRS - start)
        meaning = topics[rng.integers(len(topics), size=size)] + 0.7 * rng.standard_normal((size, 32), np.float32)
        block = meaning @ spread + 0.5 * rng.standard_normal((size, WIDTH), np.float32)
        vectors[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    vectors.flush()


def _run(code: str, *arguments: object) -> float:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def cases() -> list[Case]:
    folder = Path(tempfile.mkdtemp(prefix="mispair-search-"))
    path, grouped = folder / "vectors.npy", folder / "image.index"
    _write(path)
    memory = _run(_BUILD, path, grouped)
    vectors, index = np.load(path, mmap_mode="r"), load_inverted(grouped, PAIRS, WIDTH)
    rng = np.random.default_rng(1)
    queries = np.asarray(vectors[np.sort(rng.choice(PAIRS, 64, replace=False))], np.float32)
    queries += 0.02 * rng.standard_normal(queries.shape, np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)

    def figures() -> str:
        true, answered = exact_nearest(vectors, queries, 10)[1], search_inverted(index, queries, 10)[1]
        recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true.tolist(), answered.tolist(), strict=True)])
        cold = _run(_COLD, grouped, PAIRS, WIDTH)
        share = memory / (PAIRS * WIDTH * 4)
        assert recall >= 0.95, recall
        assert share <= 2.5, share
        assert cold <= 2.0, cold
        return f"recall@10 {recall:.3f}; built in {share:.1f} x the vectors as float32; first query {cold:.1f} s of CPU"

    return [
        Case(
            "64 queries of 1,000,000 x 256",
            "every vector compared",
            20,
            lambda: search_inverted(index, queries, 10),
            lambda: exact_nearest(vectors, queries, 10),
            repeats=1,
            check=figures,
        )
    ]
