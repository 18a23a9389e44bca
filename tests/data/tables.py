"""One table in every format, and features to join."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.data import DataConfig
from tests.data.samples import features, write_lines

ROWS = [
    {"image_id": f"im{k // 2}", "caption": f"a dog, number {k}", "split": "test" if k > 5 else "train"}
    for k in range(8)
]


def write(folder: Path, kind: str, rows: list[dict[str, object]]) -> Path:
    path = folder / f"pairs.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        write_lines(path, [json.dumps(row) for row in rows])
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def config(folder: Path, kind: str = "csv", rows: list[dict[str, object]] | None = None, **more: object) -> DataConfig:
    return DataConfig(path=str(write(folder, kind, rows or ROWS)), **more)  # type: ignore[arg-type]


def with_ids(folder: Path, names: list[str]) -> dict[str, str]:
    np.save(folder / "images.npy", features(len(names)))
    write_lines(folder / "ids.txt", names)
    return {"features": str(folder / "images.npy"), "ids": str(folder / "ids.txt")}
