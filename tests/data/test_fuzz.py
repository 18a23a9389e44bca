"""Bytes flipped in good files: an answer every time, never a traceback, never a hang, never silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data.text import Vocabulary
from tests.data.samples import captions, features, precomp, run, write_lines

CASES = 60  # of each kind of file


def _npy(folder: Path) -> tuple[Path, list[object]]:
    return precomp(folder) / "train_ims.npy", ["check", folder]


def _captions(folder: Path) -> tuple[Path, list[object]]:
    return precomp(folder) / "train_caps.txt", ["check", folder]


def _tsv(folder: Path) -> tuple[Path, list[object]]:
    precomp(folder, per_image=1)
    (folder / "train_caps.txt").unlink()
    path = write_lines(folder / "train_caps.tsv", [f"{k}\t{text}" for k, text in enumerate(captions(7))])
    return path, ["check", folder]


def _index(folder: Path) -> tuple[Path, list[object]]:
    np.save(folder / "index.npy", np.arange(7)[::-1].copy())
    return folder / "index.npy", ["check", precomp(folder / "data"), "--noise", folder / "index.npy"]


def _vocabulary(folder: Path) -> tuple[Path, list[object]]:
    Vocabulary.build(captions(20), 1).save(folder / "vocab.json")
    return folder / "vocab.json", ["check", precomp(folder / "data"), "--vocabulary", folder / "vocab.json"]


def _csv(folder: Path) -> tuple[Path, list[object]]:
    np.save(folder / "pairs.npy", features(6))
    return write_lines(folder / "pairs.csv", ["image_id,caption", *(f'{k},"a dog, {k}"' for k in range(6))]), [
        "check",
        folder / "pairs.csv",
    ]


def _jsonl(folder: Path) -> tuple[Path, list[object]]:
    np.save(folder / "pairs.npy", features(6))
    lines = [json.dumps({"file_name": f"{k}.jpg", "text": f"a dog {k}"}) for k in range(6)]
    return write_lines(folder / "pairs.jsonl", lines), ["check", folder / "pairs.jsonl"]


def _parquet(folder: Path) -> tuple[Path, list[object]]:
    np.save(folder / "pairs.npy", features(6))
    rows = {"uid": [f"u{k}" for k in range(6)], "text": [f"a dog {k}" for k in range(6)]}
    pq.write_table(pa.table(rows), folder / "pairs.parquet")
    return folder / "pairs.parquet", ["check", folder / "pairs.parquet"]


KINDS = (_npy, _captions, _tsv, _index, _vocabulary, _csv, _jsonl, _parquet)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__[1:])
def test_flipped_bytes(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    path, arguments = make(tmp_path)
    good = path.read_bytes()
    clean = run(monkeypatch, capsys, *arguments)
    assert clean.code == 0, (clean.out, clean.err)
    rng = np.random.default_rng(0)
    codes = []
    for case in range(CASES):
        damaged = bytearray(good)
        # Half of the cases aim at the beginning, where headers are.
        reach = len(good) if case % 2 else min(len(good), 128)
        for _ in range(1 + case % 4):
            damaged[rng.integers(reach)] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        ran = run(monkeypatch, capsys, *arguments)
        assert ran.code in (0, 1, 2), (case, ran)
        assert "Traceback" not in ran.err + ran.out
        if ran.code == 2:
            assert ran.err.startswith("mispair: "), (case, ran)
            assert ran.err.count("\n") == 1, (case, ran)
        else:
            assert "clean" in ran.out or "finding" in ran.out, (case, ran)
        codes.append(ran.code)
    assert 2 in codes, "a fuzz that damages nothing proves nothing"


def test_truncated_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, arguments = _npy(tmp_path)
    good = path.read_bytes()
    for length in range(0, len(good), 7):
        path.write_bytes(good[:length])
        ran = run(monkeypatch, capsys, *arguments)
        assert ran.code == 2, (length, ran)
        assert "train_ims.npy" in ran.err
