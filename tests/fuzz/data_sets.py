"""Good data sets of every format that is read, small, with an audit of each to be mended by."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.auditing.verdicts import Verdicts
from mispair.data.splits import open_pairs
from mispair.data.vocabulary import Vocabulary
from tests.auditing.fixing.writers import own_formats
from tests.auditing.fixing.writers.own_formats import Maker
from tests.data import picture_formats
from tests.data.samples import captions, features, precomp, write_lines
from tests.fuzz.target import Makers, Target, targets
from tests.report.samples import audit_of
from tests.synthetic import TINY

FORMATS: tuple[Maker, ...] = (
    *picture_formats.MAKERS, own_formats.tokens, own_formats.beside_each, own_formats.img2dataset,
    own_formats.captions_in_lists, own_formats.lists_in_parquet, own_formats.top_metadata, own_formats.bars,
)  # fmt: skip


def pictures_and_captions(make: Makers, root: Path, write: Maker) -> list[Target]:
    """Everything `write` writes, read by whoever looks at pairs, by what encodes pictures and by what mends."""
    config = write(root)
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    pictures = [file for file in files if file.endswith(".png")]
    kept = [file for file in files if file not in pictures]
    if pictures:
        kept.append(os.path.commonpath([os.path.dirname(file) for file in pictures]) or ".")
    source, table, _ = open_pairs(config, "all")
    shown = [(source.image_ids or ())[row] for row in table.image_rows]
    said = audit_of(len(table), [(table.captions or ())[row] for row in table.text_rows])
    column = said.table.schema.field("image_id")
    Verdicts(said.table.set_column(2, column, pa.array(shown, column.type)), said.facts).save(root / "audit")
    where = [config.path, *(["--images", str(config.images)] if config.images else [])]
    if config.columns.image is not None:
        where += ["--image-column", config.columns.image]
    data = " ".join(where).replace(str(root), "{}")
    assert " " not in config.path
    encode = f"embed {data} --encoder colours -o {{}}/out"
    mend = f"fix {{}}/audit --action rematch --data {data} -o {{}}/out"
    return targets(root, kept, f"check {data}", f"corrupt {data} --rate 0.4 -o {{}}/out", encode, mend)


def planted_table(folder: Path) -> None:
    """pairs.csv, and the features of its images."""
    meaning = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    np.save(folder / "pairs.npy", meaning)
    write_lines(folder / "pairs_ids.txt", [f"im{k}" for k in range(60)])
    words = [" ".join(f"w{k}{int(v > 0)}" for k, v in enumerate(row)) for row in np.roll(meaning, 20, 0)]
    write_lines(folder / "pairs.csv", ["image_id,caption", *(f'im{k},"{text}"' for k, text in enumerate(words))])


def table(make: Makers, root: Path) -> list[Target]:
    planted_table(root)
    _two_arrays(root)
    looked = ("check {}/pairs.csv", "corrupt {}/pairs.csv --rate 0.4 -o {}/out")
    judged = ("audit --embeddings {}/a.npy {}/b.npy --data {}/pairs.csv -o {}/out", "check {}/a.npy {}/b.npy")
    return [
        *targets(root, "pairs.csv pairs.npy pairs_ids.txt", *looked),
        *targets(root, "a.npy b.npy", *judged),
        *targets(root, "pairs.csv", judged[0]),
    ]


def shards(make: Makers, root: Path) -> list[Target]:
    """What the parts of an audit leave where they meet, before and after it is calibrated."""
    _two_arrays(root)
    measured = ("audit", "--embeddings", root / "a.npy", root / "b.npy", "--shard", "1/1", "--statistics")
    for folder in ("S", "T"):
        make.mispair(*measured, root / folder)
    make.mispair("merge", root / "T")
    make.mispair(*measured, root / "T")
    files = "T/calibration.npz T/verdicts-00001-of-00001.parquet T/statistics-00001-of-00001.npz T/subject.json"
    again = " ".join(str(word) for word in (*measured, "{}/T")).replace(str(root), "{}")
    return [
        *targets(root, "S/statistics-00001-of-00001.npz S/subject.json", "merge {}/S"),
        *targets(root, files, "merge {}/T -o {}/out"),
        *targets(root, "T/calibration.npz T/subject.json a.npy", again),
    ]


def small(make: Makers, root: Path) -> list[Target]:
    """Files of a line or two that a command is pointed at."""
    precomp(root / "data")
    write_lines(root / "data/train_ids.txt", [f"im{k}" for k in range(7)])
    precomp(root / "ids")
    write_lines(root / "ids/train_caps.txt", [f"1,{k},{k + 3},2" for k in range(8, 43)])
    Vocabulary.build(captions(20), 1).save(root / "vocabulary.json")
    np.save(root / "index.npy", np.arange(7)[::-1].copy())
    np.save(root / "pairs.npy", features(6))
    (root / "names.json").write_text(json.dumps([f"{k}.jpg" for k in range(6)]))
    write_lines(root / "pairs.jsonl", [json.dumps({"file_name": f"{k}.jpg", "text": f"a dog {k}"}) for k in range(6)])
    rows = {"uid": [f"u{k}" for k in range(6)], "text": [f"a dog {k}" for k in range(6)]}
    pq.write_table(pa.table(rows), root / "pairs.parquet")
    write_lines(
        root / "config.yaml", ["data: {scenes: {pictures: 120}}", "method: {name: plain}", "train: {epochs: 1}"]
    )
    pinned = " ".join(f"--set={value}" for value in TINY[:6])
    named = "check {}/pairs.jsonl --features {}/pairs.npy --ids {}/names.json"
    return [
        *targets(root, "data/train_ims.npy data/train_caps.txt data/train_ids.txt", "check {}/data"),
        *targets(root, "ids/train_ims.npy ids/train_caps.txt", "check {}/ids", "corrupt {}/ids --rate 0.4 -o {}/out"),
        *targets(root, "vocabulary.json", "check {}/data --vocabulary {}/vocabulary.json"),
        *targets(root, "index.npy", "check {}/data --noise {}/index.npy"),
        *targets(root, "pairs.jsonl", "check {}/pairs.jsonl"),
        *targets(root, "names.json pairs.npy", named),
        *targets(root, "pairs.parquet", "check {}/pairs.parquet"),
        *targets(root, "config.yaml", f"train -c {{}}/config.yaml {pinned} -o {{}}/out"),
    ]


def _two_arrays(folder: Path) -> None:
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(60, 8)).astype(np.float32)
    np.save(folder / "a.npy", meaning)
    np.save(folder / "b.npy", meaning + 0.1 * rng.normal(size=meaning.shape).astype(np.float32))
