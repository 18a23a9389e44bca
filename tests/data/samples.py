"""Tiny data sets on disk, and the command line called in-process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mispair.cli.app import main


def features(rows: int, regions: int = 3, width: int = 4, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    shape = (rows, regions, width) if regions else (rows, width)
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def captions(count: int, split: str = "train") -> list[str]:
    return [f"A {split} dog number {k} runs on the grass ." for k in range(count)]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def precomp(folder: Path, images: int = 7, per_image: int = 5, splits: Sequence[str] = ("train",)) -> Path:
    """A good folder: every image and caption different."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, split in enumerate(splits):
        np.save(folder / f"{split}_ims.npy", features(images, seed=seed))
        write_lines(folder / f"{split}_caps.txt", captions(images * per_image, split))
    return folder


def table(folder: Path, rows: int = 6, name: str = "pairs.csv", heading: str = "image_id,caption") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return write_lines(folder / name, [heading, *(f"im{k},a dog number {k}" for k in range(rows))])


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> Ran:
    """`mispair ARGUMENTS` in this process."""
    monkeypatch.setattr(sys, "argv", ["mispair", *map(str, arguments)])
    capsys.readouterr()
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return Ran(int(code or 0) if isinstance(code, int | None) else 99, out, err)


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo()
    }
