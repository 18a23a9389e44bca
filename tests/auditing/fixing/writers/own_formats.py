"""Formats that only a round trip meets: captions in lists, in keys, in shards, in Latin-1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.data import ColumnsConfig, DataConfig
from mispair.data.splits import open_pairs
from tests.data.picture_samples import picture, write_pictures, write_tar
from tests.data.samples import write_lines

Maker = Callable[[Path], DataConfig]


def data_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def opened(config: DataConfig, split: str = "all") -> JudgedData:
    return JudgedData(config, *open_pairs(config, split))


def tokens(folder: Path) -> DataConfig:
    write_pictures(folder / "Images", ["1.png", "2.png", "drei ü.png"])
    lines = ["1.png#0\ta dog", "1.png#1\tan animal", "", "2.png#0\ta cat # 3", "drei ü.png#0\tein Vogel", "2.png#1\tx"]
    (folder / "results.token").write_bytes("\r\n".join(lines).encode())
    return DataConfig(path=str(folder / "results.token"))


def beside_each(folder: Path) -> DataConfig:
    write_pictures(folder, ["train/a.png", "train/b.png", "test/c.png", "test/silent.png"])
    (folder / "train/a.txt").write_text("a dog\n\nan animal\n")
    (folder / "train/b.txt").write_text("a bird\na wing")
    (folder / "test/c.txt").write_text("a cat\r\na small cat\r\n")
    return DataConfig(path=str(folder))


def img2dataset(folder: Path) -> DataConfig:
    for tar in range(2):
        members: dict[str, bytes] = {}
        keys = [f"{tar}{k:03d}" for k in range(3)]
        for k, key in enumerate(keys):
            about = {"caption": f"words {key}", "url": "x", "key": key}
            members |= {f"{key}.png": picture(3 * tar + k), f"{key}.txt": f"words {key}\n".encode()}
            members[f"{key}.json"] = json.dumps(about, indent=4).encode()
        write_tar(folder / f"0000{tar}.tar", members)
        table = {"key": [*keys, "gone"], "caption": [*(f"words {key}" for key in keys), "never came"]}
        pq.write_table(pa.table(table), folder / f"0000{tar}.parquet")
        (folder / f"0000{tar}_stats.json").write_text("{}")
    return DataConfig(path=str(folder))


def pattern_of_shards(folder: Path) -> DataConfig:
    """Two of three shards; the tables of img2dataset beside them come along, the third shard does not."""
    img2dataset(folder)
    write_tar(folder / "00002.tar", {"z.png": picture(9), "z.txt": b"not asked for"})
    return DataConfig(path=str(folder / "{00000..00001}.tar"))


def captions_in_a_key(folder: Path) -> DataConfig:
    """The caption under a key nobody would guess, and a text beside the picture that is not it."""
    members: dict[str, bytes] = {}
    for k in range(4):
        members |= {f"{k}.png": picture(k), f"{k}.txt": b"not this", f"{k}.json": b'{"caption_de": "Hund %d"}' % k}
    columns = ColumnsConfig(caption="caption_de")
    return DataConfig(path=str(write_tar(folder / "one.tar", members)), columns=columns)


def captions_in_lists(folder: Path) -> DataConfig:
    """Two captions a sample, in one tar; one sample of which nothing is said; a folder and a long name in between."""
    members: dict[str, bytes] = {}
    for k in range(3):
        about = {"captions": [f"ein Hund {k}", f"größer {k}"], "n": k}
        members |= {f"{k}.png": picture(k), f"{k}.json": json.dumps(about, ensure_ascii=False).encode()}
    members |= {"3.png": picture(3), "README": b"not a sample", f"{'long' * 40}.png": picture(4)}
    members[f"{'long' * 40}.txt"] = b"a long name"
    return DataConfig(path=str(write_tar(folder / "one.tar", members)))


def coco_of_five(folder: Path) -> DataConfig:
    write_pictures(folder, ["b 0.png", "b 1.png", "nobody.png"])
    content = {
        "info": {"year": 2014},
        "images": [{"id": 7, "file_name": "b 0.png"}, {"id": 9, "file_name": "b 1.png"}, {"id": 1, "file_name": "n"}],
        "annotations": [{"id": 100 + k, "image_id": 7 if k % 2 else 9, "caption": f"straße {k}"} for k in range(6)],
    }
    (folder / "captions.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return DataConfig(path=str(folder / "captions.json"))


def karpathy_of_two(folder: Path) -> DataConfig:
    write_pictures(folder, ["a.png", "b.png"])
    images = []
    for k, name in enumerate(("a.png", "b.png")):
        said = [
            {"raw": f"A dog, {k} {n}", "tokens": ["a", "dog", str(k), str(n)], "sentid": 3 * k + n} for n in range(3)
        ]
        images.append(
            {
                "filename": name,
                "imgid": k,
                "split": "train",
                "sentences": said,
                "sentids": [3 * k, 3 * k + 1, 3 * k + 2],
            }
        )
    (folder / "dataset_y.json").write_text(json.dumps({"images": images, "dataset": "y"}, separators=(",", ":")))
    return DataConfig(path=str(folder / "dataset_y.json"))


def lists_in_parquet(folder: Path) -> DataConfig:
    for number, split in enumerate(("train", "test")):
        rows = {"jpg": [picture(2 * number + k) for k in range(2)], "captions": [["a 1", "b 2"], [f"c {split}"]]}
        pq.write_table(pa.table(rows), folder / f"{split}-0.parquet", compression="zstd", row_group_size=1)
    return DataConfig(path=str(folder))


def top_metadata(folder: Path) -> DataConfig:
    """An image folder without splits, in Latin letters that are not ASCII."""
    write_pictures(folder, ["vögel/ein bild.png", "b.png", "c.png", "unused.png"])
    lines = ["file_name;text", "vögel/ein bild.png;one", "b.png;two", "c.png;three", "b.png;four"]
    write_lines(folder / "metadata.csv", lines)
    return DataConfig(path=str(folder))


def latin_csv(folder: Path) -> DataConfig:
    """As a spreadsheet saves it: names and words in Latin-1."""
    write_pictures(folder / "photos", ["vögel.png", "b.png", "größe.png"])
    lines = ["filepath;title", "vögel.png;ein Vogel", "b.png;Straße", "größe.png;drei", "b.png;vier é"]
    (folder / "pairs.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    return DataConfig(path=str(folder / "pairs.csv"), images=str(folder / "photos"))


def latin_tokens(folder: Path) -> DataConfig:
    write_pictures(folder, ["1.png", "drei ü.png"])
    lines = ["1.png#0\tStraße", "1.png#1\tan animal", "drei ü.png#0\tein Vögel", "1.png#2\tx"]
    (folder / "results.token").write_bytes("\n".join(lines).encode("latin-1"))
    return DataConfig(path=str(folder / "results.token"))


def img2dataset_as_files(folder: Path) -> DataConfig:
    """img2dataset's output_format=files, its default: a folder of pictures and texts beside each table."""
    for part in range(2):
        keys = [f"{part}{k:03d}" for k in range(3)]
        write_pictures(folder / f"0000{part}", [f"{key}.png" for key in keys])
        for key in keys:
            (folder / f"0000{part}/{key}.txt").write_text(f"words {key}")
            (folder / f"0000{part}/{key}.json").write_text("{}")
        table = {"key": [*keys, "gone"], "caption": [*(f"words {key}" for key in keys), "never came"]}
        pq.write_table(pa.table(table), folder / f"0000{part}.parquet")
    return DataConfig(path=str(folder))


def bars(folder: Path) -> DataConfig:
    """Flickr30k's results.csv."""
    write_pictures(folder / "photos", ["a.png", "b.png"])
    lines = [
        "image_name| comment_number| caption",
        "a.png| 0| A dog , red .",
        "a.png| 1| x",
        "b.png| 0| y",
        "b.png| 1| z",
    ]
    write_lines(folder / "results.csv", lines)
    columns = ColumnsConfig(image="image_name")
    return DataConfig(path=str(folder / "results.csv"), images=str(folder / "photos"), columns=columns)


def not_a_number(folder: Path) -> DataConfig:
    """A caption that is missing, as Python writes a table of pandas."""
    write_pictures(folder / "photos", [f"{k}.png" for k in range(5)])
    said = ["a", "b", "c", float("nan"), "e"]
    lines = [json.dumps({"file_name": f"{k}.png", "text": text}) for k, text in enumerate(said)]
    write_lines(folder / "pairs.jsonl", lines)
    return DataConfig(path=str(folder / "pairs.jsonl"), images=str(folder / "photos"))


OWN: list[Maker] = [
    *(tokens, beside_each, img2dataset, captions_in_lists, coco_of_five, karpathy_of_two, lists_in_parquet),
    *(top_metadata, latin_csv, latin_tokens, pattern_of_shards, captions_in_a_key, img2dataset_as_files),
    *(bars, not_a_number),
]
