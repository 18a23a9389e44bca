"""The same five pictures with captions in every format that holds or names pictures, one maker each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mispair.data import DataConfig
from tests.data.picture_samples import picture, write_pictures, write_tar
from tests.data.samples import write_lines

COUNT = 5


CAPTIONS = [f"a straße number {k}, wide; and long" for k in range(COUNT)]


SPLITS = ["train", "train", "train", "val", "test"]


NAMES = [f"ordner eins/bild {k}.png" for k in range(COUNT)]


def _write_csv(path: Path, delimiter: str = ",", encoding: str = "utf-8") -> None:
    with path.open("w", newline="", encoding=encoding) as stream:
        rows = csv.writer(stream, delimiter=delimiter)
        rows.writerows([("filepath", "title", "split"), *zip(NAMES, CAPTIONS, SPLITS, strict=True)])


def _csv(folder: Path, delimiter: str = ",", name: str = "pairs.csv", encoding: str = "utf-8") -> DataConfig:
    write_pictures(folder / "photos", NAMES)
    _write_csv(folder / name, delimiter, encoding)
    return DataConfig(path=str(folder / name), images=str(folder / "photos"))


def _semicolons(folder: Path) -> DataConfig:
    return _csv(folder, ";", encoding="utf-8-sig")


def _tsv(folder: Path) -> DataConfig:
    return _csv(folder, "\t", "pairs.tsv")


def _jsonl(folder: Path) -> DataConfig:
    write_pictures(folder / "photos", NAMES)
    rows = [{"file_name": n, "text": c, "split": s} for n, c, s in zip(NAMES, CAPTIONS, SPLITS, strict=True)]
    write_lines(folder / "pairs.jsonl", [json.dumps(row) for row in rows])
    return DataConfig(path=str(folder / "pairs.jsonl"), images=str(folder / "photos"))


def _parquet_of_names(folder: Path) -> DataConfig:
    write_pictures(folder / "photos", NAMES)
    pq.write_table(pa.table({"path": NAMES, "caption": CAPTIONS, "split": SPLITS}), folder / "pairs.parquet")
    return DataConfig(path=str(folder / "pairs.parquet"), images=str(folder / "photos"))


def _beside(folder: Path) -> DataConfig:
    """Nobody says where the pictures are: they lie beside the table."""
    return _csv(folder).model_copy(update={"images": None})


def _table_and_tars(folder: Path) -> DataConfig:
    write_tar(folder / "one.tar", {NAMES[k]: picture(k) for k in range(3)})
    write_tar(folder / "two.tar", {NAMES[k].rsplit("/")[-1]: picture(k) for k in range(3, COUNT)})
    _write_csv(folder / "captions.csv")
    return DataConfig(path=str(folder))


def _image_folder(folder: Path) -> DataConfig:
    for split in dict.fromkeys(SPLITS):
        home = folder / {"val": "validation"}.get(split, split)
        home.mkdir(parents=True)
        rows = [k for k in range(COUNT) if SPLITS[k] == split]
        for k in rows:
            (home / f"{k}.png").write_bytes(picture(k))
        lines = [json.dumps({"file_name": f"{k}.png", "text": CAPTIONS[k]}) for k in rows]
        write_lines(home / "metadata.jsonl", lines)
    return DataConfig(path=str(folder))


def _parquet_of_pictures(folder: Path) -> DataConfig:
    images = [{"bytes": picture(k), "path": NAMES[k]} for k in range(COUNT)]
    table = pa.table({"image": images, "caption": CAPTIONS, "split": SPLITS})
    pq.write_table(table, folder / "pairs.parquet", row_group_size=2)
    return DataConfig(path=str(folder / "pairs.parquet"))


def _parquet_of_bytes(folder: Path) -> DataConfig:
    table = pa.table({"jpg": [picture(k) for k in range(COUNT)], "caption": CAPTIONS, "split": SPLITS})
    pq.write_table(table, folder / "pairs.parquet", row_group_size=3)
    return DataConfig(path=str(folder / "pairs.parquet"))


def _structs(rows: list[int]) -> pa.Array:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([{"bytes": picture(k), "path": None} for k in rows], kind)


def _parquet_shards(folder: Path) -> DataConfig:
    (folder / "data").mkdir()
    for split in dict.fromkeys(SPLITS):
        rows = [k for k in range(COUNT) if SPLITS[k] == split]
        for part, some in enumerate((rows[:1], rows[1:])):
            images = [{"bytes": picture(k), "path": None} for k in some]
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            table = pa.table(
                {"image": pa.array(images, kind), "text": pa.array([CAPTIONS[k] for k in some], pa.string())}
            )
            pq.write_table(table, folder / f"data/{split}-0000{part}-of-00002.parquet")
    return DataConfig(path=str(folder))


def _saved_dataset(folder: Path) -> DataConfig:
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation", "test"]}))
    for split in dict.fromkeys(SPLITS):
        home = folder / {"val": "validation"}.get(split, split)
        home.mkdir()
        (home / "dataset_info.json").write_text("{}")
        (home / "state.json").write_text("{}")
        rows = [k for k in range(COUNT) if SPLITS[k] == split]
        images = [{"bytes": picture(k), "path": None} for k in rows]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        table = pa.table({"image": pa.array(images, kind), "caption": [CAPTIONS[k] for k in rows]})
        with (
            pa.OSFile(str(home / "data-00000-of-00001.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as out,
        ):
            for batch in table.to_batches(max_chunksize=2):
                out.write_batch(batch)
    return DataConfig(path=str(folder))


def _shards(folder: Path) -> DataConfig:
    for split in dict.fromkeys(SPLITS):
        members: dict[str, bytes] = {}
        for k in range(COUNT):
            if SPLITS[k] == split:
                members[f"{k:05d}.png"] = picture(k)
                if k % 2:
                    members[f"{k:05d}.txt"] = CAPTIONS[k].encode()
                else:
                    members[f"{k:05d}.json"] = json.dumps({"caption": CAPTIONS[k], "width": 3}).encode()
        write_tar(folder / f"{split}-0000.tar", members)
    return DataConfig(path=str(folder))


def _karpathy(folder: Path) -> DataConfig:
    write_pictures(folder / "images", NAMES)
    images = [
        {
            "filepath": NAMES[k].rsplit("/")[0],
            "filename": NAMES[k].rsplit("/")[-1],
            "split": SPLITS[k],
            "sentences": [{"raw": CAPTIONS[k], "sentid": k}],
        }
        for k in range(COUNT)
    ]
    (folder / "dataset_x.json").write_text(json.dumps({"images": images, "dataset": "x"}))
    return DataConfig(path=str(folder / "dataset_x.json"))


def _coco(folder: Path) -> DataConfig:
    write_pictures(folder / "images", NAMES)
    for split in dict.fromkeys(SPLITS):
        rows = [k for k in range(COUNT) if SPLITS[k] == split]
        content = {
            "images": [{"id": k, "file_name": NAMES[k].rsplit("/")[-1]} for k in rows],
            "annotations": [{"image_id": k, "id": 10 + k, "caption": CAPTIONS[k]} for k in rows],
        }
        (folder / "annotations").mkdir(exist_ok=True)
        (folder / f"annotations/captions_{split}2014.json").write_text(json.dumps(content))
    return DataConfig(path=str(folder / "annotations"), images=str(folder / "images"))


MAKERS: list[Callable[[Path], DataConfig]] = [
    *(_csv, _semicolons, _tsv, _jsonl, _parquet_of_names, _beside, _table_and_tars, _image_folder),
    *(_parquet_of_pictures, _parquet_of_bytes, _parquet_shards, _saved_dataset, _shards, _karpathy, _coco),
]
