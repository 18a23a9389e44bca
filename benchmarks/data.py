"""Data paths: captions into words, rows into batches, the generated world."""

from __future__ import annotations

import atexit
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from nltk.tokenize import NLTKWordTokenizer

from benchmarks.timing import Case
from mispair.data.config import ScenesConfig
from mispair.data.features import open_features
from mispair.data.files.captions import read_captions
from mispair.data.scenes import make_scenes, split_sizes
from mispair.data.vocabulary import TokenStore, Vocabulary

CAPTIONS = 150_000
BATCH, ROWS, REGIONS, WIDTH = 128, 1536, 36, 2048
SCENES_LIMIT = 10.0  # seconds for 2,000 pictures


def cases() -> list[Case]:
    return [_tokens(), _batches(), _scenes()]


def _scratch() -> Path:
    """A folder that is gone when the benchmark ends."""
    folder = tempfile.TemporaryDirectory(prefix="mispair-bench-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _tokens() -> Case:
    folder = _scratch()
    said = make_scenes(ScenesConfig(pictures=2000), "train").captions
    # Real captions hold possessives, quotes and numbers too: every tenth goes the slow way.
    odd = (" and the dog's ball", ' by a "stop" sign', " (no. 3)", " at 10:30", " - isn't it?")
    lines = [said[k % len(said)] + (odd[k // 10 % 5] if k % 10 == 0 else "") for k in range(CAPTIONS)]
    path = folder / "train_caps.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    vocabulary = Vocabulary.build(lines[:20_000])
    oracle = NLTKWordTokenizer()
    part = CAPTIONS // 10

    def check() -> str:
        store = TokenStore.encode(lines[:5000], vocabulary, 200)
        for k in range(5000):
            expected = vocabulary.encode(oracle.tokenize(lines[k].lower()))
            assert store.flat[store.offsets[k] : store.offsets[k + 1]].tolist() == expected
        return "same words (5,000)"

    return Case(
        path="read, tokenise and number 150,000 captions",
        against="NLTKWordTokenizer alone",
        floor=3.0,
        ours=lambda: TokenStore.encode(read_captions(path).captions, vocabulary, 200),
        reference=lambda: [oracle.tokenize(line.lower()) for line in lines[:part]],
        repeats=3,
        scale=CAPTIONS / part,
        note="a tenth of them, times ten",
        check=check,
    )


def _batches() -> Case:
    path = _scratch() / "train_ims.npy"
    array = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(ROWS, REGIONS, WIDTH))
    rng = np.random.default_rng(0)
    for row in range(ROWS):
        array[row] = rng.random((REGIONS, WIDTH), np.float32)
    array.flush()
    store = open_features(path)
    mapped = np.load(path, mmap_mode="r")
    batches = rng.permutation(ROWS).reshape(-1, BATCH)

    def ours() -> list[torch.Tensor]:
        return [torch.from_numpy(store.take(batch)[0])[:, 0, 0] for batch in batches]

    def reference() -> list[torch.Tensor]:
        # What a Dataset's __getitem__ and a collate function do: one tensor per item, then a stack.
        stacked = []
        for batch in batches:
            items = [torch.from_numpy(np.array(mapped[row])) for row in batch]
            stacked.append(torch.stack(items)[:, 0, 0])
        return stacked

    def check() -> str:
        assert all(torch.equal(a, b) for a, b in zip(ours(), reference(), strict=True))
        return "equal values"

    return Case(
        path=f"{len(batches)} batches of {BATCH} x {REGIONS} x {WIDTH} from the memory map",
        against="a Dataset item by item and a stack",
        floor=2.0,
        ours=ours,
        reference=reference,
        note="warm cache, shuffled",
        check=check,
    )


def _scenes() -> Case:
    config = ScenesConfig(pictures=2000)

    def ours() -> None:
        make_scenes.cache_clear()
        for split in split_sizes(config):
            make_scenes(config, split).compute_features()

    def reference() -> None:
        # The limit itself, as processor time: there is no other maker of this world to compare with.
        end = time.process_time() + SCENES_LIMIT / 10
        while time.process_time() < end:
            pass

    return Case(
        path="scenes: 2,000 pictures, captions and features",
        against=f"the limit of {SCENES_LIMIT:g} s",
        floor=1.0,
        ours=ours,
        reference=reference,
        repeats=2,
        scale=10.0,
    )
