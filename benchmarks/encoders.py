"""Encoders: decoding against a plain Pillow loop, workers, the share of the network.

On pictures of your own: `python -m benchmarks.encoders PICTURES.tar CAPTIONS.csv [--split test] [--encoder basic]`
encodes them and prints pictures a second, the share of the time inside the network, memory at 1,000 pictures and at the
end, and how well the joint space tells a picture's own captions from those of another (AUC, nothing trained).
"""

from __future__ import annotations

import argparse
import csv
import io
import resource
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks.timing import Case
from mispair.encoders.basic import BasicEncoder
from mispair.encoders.pipeline import EncodingProgress, PictureItem, encode_pictures, encode_texts
from mispair.encoders.protocol import Encoder, EncoderOutput
from mispair.encoders.registry import open_encoder
from mispair.functional.detection import auroc
from mispair.pictures.decode import Broken, decode, formats
from mispair.prefetch import map_ahead

PICTURES = 64


def cases() -> list[Case]:
    encoder = BasicEncoder("cpu")
    files = _photographs(PICTURES)

    def prepared(data: bytes) -> NDArray[Any]:
        picture = decode(data, encoder.side)
        assert not isinstance(picture, Broken)
        return encoder.prepare(picture)

    def plain() -> list[NDArray[Any]]:
        made = []
        for data in files:
            picture = Image.open(io.BytesIO(data)).convert("RGB").resize((260, 260), Image.Resampling.BICUBIC)
            made.append(np.array(picture))
        return made

    def same() -> str:
        assert all(np.array_equal(prepared(data), row) for data, row in zip(files, plain(), strict=True))
        return "equal pixels"

    network = files[:16]
    batch = np.stack([prepared(data) for data in network])

    def pipeline() -> None:
        items = [PictureItem(str(k), lambda data=data: data) for k, data in enumerate(network)]  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder:
            encode_pictures(encoder, items, Path(folder), ("vector", "cells"), workers=1)

    return [
        Case(
            path=f"decode and prepare {PICTURES} photographs of 320 x 240",
            against="Pillow: open, convert, resize",
            floor=0.9,
            ours=lambda: [prepared(data) for data in files],
            reference=plain,
            check=same,
        ),
        Case(
            path="decode and prepare with 2 workers",
            against="with 1 worker",
            floor=1.7,
            ours=lambda: list(map_ahead(prepared, files, 2, 64)),
            reference=lambda: list(map_ahead(prepared, files, 1, 64)),
            repeats=15,
            note="seconds of the clock: needs two idle cores",
            clock=time.perf_counter,
            check=lambda: _room_for_two(encoder, files),
        ),
        Case(
            path="encode 16 photographs: decode, network, cache",
            against="the network alone",
            floor=0.9,
            ours=pipeline,
            reference=lambda: encoder.encode_images(batch, ("vector", "cells")),
            repeats=3,
            note="the ratio is the network's share",
        ),
    ]


def _room_for_two(encoder: BasicEncoder, files: Sequence[bytes]) -> str:
    """What two workers can reach if they wait for nothing but Python's interpreter lock, from CPU time alone.

    Opening, the EXIF tag and the copy to an array hold the lock; decoding and resizing let go of it but for their first
    and last steps, which a picture of 8 pixels shows. With a share f held, two workers are 2 / (1 + f^2) as fast as one
    (mean value analysis of two customers at one server).
    """
    spent: dict[str, list[float]] = {}

    def lap(step: str, work: Callable[[Any], Any], given: Any) -> Any:
        start = time.thread_time()
        made = work(given)
        spent.setdefault(step, []).append(time.thread_time() - start)
        return made

    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG")
    tiny = out.getvalue()
    for data in files:
        opened = lap("open", lambda data: Image.open(io.BytesIO(data), formats=formats()), data)
        lap("tag", lambda opened: (opened.draft(None, (260, 260)), opened.getexif().get(0x0112)), opened)
        scaled = opened.resize((260, 260), Image.Resampling.BICUBIC)
        lap("copy", np.asarray, scaled)
        lap("glue", lambda data: Image.open(io.BytesIO(data)).resize((8, 7), Image.Resampling.BICUBIC), tiny)
        picture = lap("whole", lambda data: decode(data, encoder.side), data)
        lap("prepare", encoder.prepare, picture)
    best = {step: sorted(seconds)[len(seconds) // 10] for step, seconds in spent.items()}
    share = sum(best[step] for step in ("open", "tag", "copy", "glue")) / (best["whole"] + best["prepare"])
    return f"the lock is held {share:.0%}: room for {2 / (1 + share**2):.2f}"


def _photographs(count: int) -> list[bytes]:
    """JPEGs with the detail of photographs: smooth noise of several scales."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        layers = [
            np.asarray(Image.fromarray(rng.integers(0, 256, (size, size, 3), np.uint8)).resize((320, 240)), np.float32)
            for size in (4, 16, 64)
        ]
        out = io.BytesIO()
        Image.fromarray((sum(layers) / 3).astype(np.uint8)).save(out, "JPEG", quality=85)
        made.append(out.getvalue())
    return made


class _Timed:
    """An encoder that remembers how long its network took."""

    def __init__(self, encoder: Encoder, *, idle: bool) -> None:
        self._encoder, self._idle, self.seconds = encoder, idle, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        if self._idle:
            shapes = {output: (len(prepared), *self._encoder.images[output]) for output in outputs}
            return {output: EncoderOutput(np.zeros(shape, np.float32)) for output, shape in shapes.items()}
        start = time.perf_counter()
        made = self._encoder.encode_images(prepared, outputs)
        self.seconds += time.perf_counter() - start
        return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoders", description=__doc__)
    parser.add_argument("pictures", type=Path, nargs="+", help="plain tar files")
    parser.add_argument("captions", type=Path, help="columns filepath, title, split")
    parser.add_argument("--split", help="only the captions of this split")
    parser.add_argument("--encoder", default="basic")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cells", action="store_true", help="cells too, not vectors alone")
    parser.add_argument("--no-network", action="store_true", help="zeros instead: what everything around it needs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    captions: dict[str, list[str]] = {}
    with open(given.captions, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if given.split in (None, row["split"]):
                captions.setdefault(row["filepath"], []).append(row["title"])
    encoder = open_encoder(given.encoder)
    timed, names, memory = _Timed(encoder, idle=given.no_network), [], {}

    def items() -> Iterator[PictureItem]:
        for path in given.pictures:
            with tarfile.open(path) as tar:
                for member in tar:
                    if member.name in captions and (stream := tar.extractfile(member)) is not None:
                        data = stream.read()
                        names.append(member.name)
                        yield PictureItem(member.name, lambda data=data: data)  # type: ignore[misc]

    def tell(progress: EncodingProgress) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if progress.done <= 1000:
            memory["first"] = peak
        memory["last"] = peak

    with tempfile.TemporaryDirectory(prefix="mispair-bench-") as folder:
        start, cpu = time.perf_counter(), time.process_time()
        outputs = ("vector", "cells") if given.cells else ("vector",)
        made = encode_pictures(timed, items(), Path(folder), outputs, workers=given.workers, tell=tell)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"{len(names):,} pictures, {len(made.failed)} failed: {cpu / len(names) * 1e3:.1f} ms of CPU time each")
        print(f"inside the network: {timed.seconds / seconds:.1%} of the time")
        print(f"memory at most: {memory['first']:.0f} MB for the first 1,000, {memory['last']:.0f} MB for all")
        if encoder.joint and not made.failed and not given.no_network:
            texts = [text for name in names for text in captions[name]]
            owner = np.repeat(np.arange(len(names)), [len(captions[name]) for name in names])
            cpu = time.process_time()
            said = encode_texts(encoder, texts, Path(folder))
            cpu = time.process_time() - cpu
            print(f"{len(texts):,} texts: {cpu / len(texts) * 1e3:.1f} ms of CPU time each")
            seen = encoder.in_text_space(np.asarray(made.tables["vector"].array()[made.rows("vector")]))
            vectors = np.asarray(said.tables["vector"].array()[said.rows("vector")])
            print(f"own against another's caption: AUC {_auc(seen, vectors, owner):.3f}")


def _auc(seen: NDArray[np.float32], said: NDArray[np.float32], owner: NDArray[np.int64]) -> float:
    """Each text with its own picture against the same text with another, both sides centred and of length 1."""
    seen, said = (side - side.mean(0) for side in (seen, said))
    seen, said = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (seen, said))
    other = (owner + np.random.default_rng(0).integers(1, len(seen), len(owner))) % len(seen)
    scores = np.concatenate([(seen[rows] * said).sum(1) for rows in (owner, other)])
    return auroc(-scores, np.arange(len(scores)) >= len(owner))


if __name__ == "__main__":
    main()
