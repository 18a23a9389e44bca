"""Good files of every kind a verb reads, made once, and the commands that read them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.auditing.verdicts import Verdicts
from mispair.data.vocabulary import Vocabulary
from mispair.reviewing.decisions import DecisionLog
from mispair.reviewing.identity import audit_identity
from tests.colours import write_colours
from tests.data.samples import captions, features, precomp, write_lines
from tests.experiments.grids import write_spec
from tests.forks import Forks
from tests.synthetic import TINY

SETS = [f"--set={value}" for value in (*TINY, "data.noise.rate=0.5")]


@dataclass(frozen=True)
class Target:
    """A file that is read, and a command that reads it; both inside one folder, which is copied for each case.

    In the command `{}` is the copy. What it writes goes to `{}/out`.
    """

    folder: Path
    file: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.command[0]} {self.file}"


def make(forks: Forks, root: Path) -> list[Target]:
    """Every target, in a fixed order."""
    targets: list[Target] = []

    def add(folder: Path, files: str, *commands: str) -> None:
        targets.extend(Target(folder, file, tuple(command.split())) for file in files.split() for command in commands)

    def mispair(*arguments: object, cache: Path = root / "cache") -> None:
        ran = forks.run(*arguments, limit=300, environment={"MISPAIR_CACHE": str(cache)})
        assert ran.code == 0, (arguments, ran)

    run = root / "run"
    mispair("train", *SETS, "-o", run / "run")
    readers = ("evaluate {}/run", "report {}/run -o {}/out", "audit {}/run -o {}/out", "runs {}")
    add(run, "run/config.yaml run/metrics.json run/metrics.jsonl run/vocabulary.json run/model.safetensors", *readers)
    add(run, "run/split.parquet run/alignment.json run/last/state.pt", *readers[1:3])
    going_on = root / "going-on"  # as a kill leaves it: without its end
    shutil.copytree(run, going_on)
    (going_on / "run" / "metrics.json").unlink()
    add(going_on, "run/last/state.pt run/config.yaml run/vocabulary.json run/metrics.jsonl", "train --resume {}/run")

    data = root / "table"
    data.mkdir()
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(60, 8)).astype(np.float32)
    np.save(data / "pairs.npy", meaning)
    write_lines(data / "pairs_ids.txt", [f"im{k}" for k in range(60)])
    words = [" ".join(f"w{k}{int(v > 0)}" for k, v in enumerate(row)) for row in np.roll(meaning, 20, 0)]
    write_lines(data / "pairs.csv", ["image_id,caption", *(f'im{k},"{text}"' for k, text in enumerate(words))])
    np.save(data / "a.npy", meaning)
    np.save(data / "b.npy", meaning + 0.1 * rng.normal(size=meaning.shape).astype(np.float32))
    add(data, "pairs.csv pairs.npy pairs_ids.txt", "check {}/pairs.csv", "corrupt {}/pairs.csv --rate 0.4 -o {}/out")
    add(data, "a.npy", "audit --embeddings {}/a.npy {}/b.npy -o {}/out")

    shards = root / "shards"
    shards.mkdir()
    measured = ("audit", "--embeddings", data / "a.npy", data / "b.npy", "--shard", "1/1", "--statistics")
    mispair(*measured, shards / "S")
    add(shards, "S/statistics-00001-of-00001.npz S/subject.json", "merge {}/S")
    calibrated = root / "calibrated"
    shutil.copytree(shards, calibrated)
    mispair("merge", calibrated / "S")
    mispair(*measured, calibrated / "S")
    add(calibrated, "S/calibration.npz S/verdicts-00001-of-00001.parquet", "merge {}/S -o {}/out")

    judged = root / "audit"
    judged.mkdir()
    for name in ("pairs.csv", "pairs.npy", "pairs_ids.txt"):
        (judged / name).write_bytes((data / name).read_bytes())
    train = [f"--set={value}" for value in (*TINY[1:4], "train.batch_size=16", "train.epochs=2", TINY[-1])]
    mispair("train", judged / "pairs.csv", *train, "-o", judged / "run")
    mispair("audit", judged / "run", "-o", judged / "audit")
    add(
        judged,
        "audit/audit.json audit/audit.parquet",
        "report {}/audit -o {}/out",
        "fix {}/audit --action weight -o {}/out",
    )
    mispair("fix", judged / "audit", "--action", "weight", "-o", judged / "fixed")
    add(judged, "fixed/fix.patch fixed/pairs.csv", "fix --undo {}/fixed -o {}/out")

    decided = root / "decided"
    shutil.copytree(judged, decided)
    log = DecisionLog(decided / "audit/decisions.jsonl", audit_identity(Verdicts.load(decided / "audit")), 60)
    log.decide_all([{"pair": k, "answer": ("right", "wrong")[k % 2], "reviewer": "ann"} for k in range(12)])
    mispair("review", decided / "audit", "--export", decided / "said.csv")
    mispair("review", decided / "audit", "--export", decided / "said.json")
    mispair("review", decided / "audit", "--export", decided / "said.parquet")
    with_decisions = "--decisions {}/audit/decisions.jsonl -o {}/out"
    add(decided, "audit/decisions.jsonl", "review {}/audit --status", f"fix {{}}/audit --action drop {with_decisions}")
    for name in ("said.csv", "said.json", "said.parquet"):
        add(decided, name, f"review {{}}/audit --import {{}}/{name}")

    searched = root / "searched"
    shutil.copytree(judged, searched)
    mispair("index", searched / "run", "-o", searched / "index")
    index = "manifest.json img_emb/img_emb_0.npy text_emb/text_emb_0.npy metadata/metadata_0.parquet"
    asked = ("search {}/index --pair 3", "index {}/index --parquet {}/out.parquet")
    add(searched, " ".join(f"index/{file}" for file in index.split()), *asked)
    add(searched, "index/keys.npy index/manifest.json index/img_emb/img_emb_0.npy", "index {}/run -o {}/index")

    pictures = root / "pictures"
    write_colours(pictures, 24, 4)
    shown = (pictures / "pairs.csv", "--images", pictures / "photos", "--encoder", "basic")
    mispair("index", *shown, "-o", pictures / "index", cache=pictures / "cache")
    mispair("embed", *shown, "-o", pictures / "features", cache=pictures / "cache")
    again = "index {}/pairs.csv --images {}/photos --encoder basic -o {}/index"
    kept = [file.relative_to(pictures) for file in sorted((pictures / "cache").rglob("*.*"))]
    add(pictures, " ".join(map(str, kept)), again)
    add(pictures, "index/centre.npy index/manifest.json", "search {}/index red", again)
    embedded = "pairs.parquet features.npy features_ids.txt texts.npy joint.npy encoder.json"
    add(
        pictures,
        " ".join(f"features/{file}" for file in embedded.split()),
        "check {}/features",
        "audit {}/features -o {}/out",
    )

    grid = root / "grid"
    grid.mkdir()
    write_spec(grid)
    only = ("--only", "row=plain", "--only", "column=0.2")
    mispair("experiments", "run", grid / "tiny.yaml", "-o", grid / "grid", "--seeds", 1, *only)
    cell = next((grid / "grid" / "cells").rglob("metrics.json")).parent.relative_to(grid)
    add(grid, f"grid/experiment.json {cell}/metrics.json {cell}/config.yaml", "experiments table {}/grid")
    add(grid, "tiny.yaml", "experiments table {}/grid", "experiments run {}/tiny.yaml -o {}/grid --seeds 1 --dry-run")

    small = root / "small"
    precomp(small / "data")
    Vocabulary.build(captions(20), 1).save(small / "vocabulary.json")
    np.save(small / "index.npy", np.arange(7)[::-1].copy())
    np.save(small / "pairs.npy", features(6))
    write_lines(small / "pairs.jsonl", [json.dumps({"file_name": f"{k}.jpg", "text": f"a dog {k}"}) for k in range(6)])
    rows = {"uid": [f"u{k}" for k in range(6)], "text": [f"a dog {k}" for k in range(6)]}
    pq.write_table(pa.table(rows), small / "pairs.parquet")
    add(small, "data/train_ims.npy data/train_caps.txt", "check {}/data")
    add(small, "vocabulary.json", "check {}/data --vocabulary {}/vocabulary.json")
    add(small, "index.npy", "check {}/data --noise {}/index.npy")
    add(small, "pairs.jsonl", "check {}/pairs.jsonl")
    add(small, "pairs.parquet", "check {}/pairs.parquet")
    write_lines(
        small / "config.yaml", ["data: {scenes: {pictures: 120}}", "method: {name: plain}", "train: {epochs: 1}"]
    )
    pinned = " ".join(f"--set={value}" for value in TINY[:6])
    add(small, "config.yaml", f"train -c {{}}/config.yaml {pinned} -o {{}}/out")
    return targets
