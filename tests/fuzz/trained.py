"""Good files that training leaves, and what is made of them: runs, audits, decisions, indexes, grids of runs."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.verdicts import Verdicts
from mispair.reviewing.decisions import DecisionLog
from mispair.reviewing.identity import audit_identity
from tests.experiments.grids import write_spec
from tests.fuzz.data_sets import planted_table
from tests.fuzz.target import Makers, Target, targets
from tests.searching import indexes
from tests.synthetic import TINY

SETS = [f"--set={value}" for value in (*TINY, "data.noise.rate=0.5")]
_READERS = ("evaluate {}/run", "report {}/run -o {}/out", "audit {}/run -o {}/out", "runs {}")


def run(make: Makers, root: Path) -> list[Target]:
    make.copy_once_made(_scenes_run, root)
    files = "run/config.yaml run/metrics.json run/metrics.jsonl run/vocabulary.json run/model.safetensors"
    more = "run/split.parquet run/alignment.json run/last/state.pt"
    return targets(root, files, *_READERS) + targets(root, more, *_READERS[1:3])


def going_on(make: Makers, root: Path) -> list[Target]:
    """As a kill leaves it: without its end."""
    make.copy_once_made(_scenes_run, root)
    (root / "run" / "metrics.json").unlink()
    files = "run/last/state.pt run/config.yaml run/vocabulary.json run/metrics.jsonl run/split.parquet"
    return targets(root, files, "train --resume {}/run")


def audited(make: Makers, root: Path) -> list[Target]:
    make.copy_once_made(_audit, root)
    make.mispair("fix", root / "audit", "--action", "weight", "-o", root / "fixed")
    asked = ("report {}/audit -o {}/out", "fix {}/audit --action weight -o {}/out")
    undone = targets(root, "fixed/fix.patch fixed/pairs.csv", "fix --undo {}/fixed -o {}/out")
    return targets(root, "audit/audit.json audit/audit.parquet", *asked) + undone


def decided(make: Makers, root: Path) -> list[Target]:
    make.copy_once_made(_audit, root)
    log = DecisionLog(root / "audit/decisions.jsonl", audit_identity(Verdicts.load(root / "audit")), 60)
    log.decide_all([{"pair": k, "answer": ("right", "wrong")[k % 2], "reviewer": "ann"} for k in range(12)])
    said = ("said.csv", "said.json", "said.parquet")
    for name in said:
        make.mispair("review", root / "audit", "--export", root / name)
    fixed = "fix {}/audit --action drop --decisions {}/audit/decisions.jsonl -o {}/out"
    trained = f"train {{}}/pairs.csv {' '.join(_SHORT)} --decisions {{}}/audit/decisions.jsonl -o {{}}/out"
    asked = targets(root, "audit/decisions.jsonl", "review {}/audit --status", fixed, trained)
    return asked + [t for name in said for t in targets(root, name, f"review {{}}/audit --import {{}}/{name}")]


def searched(make: Makers, root: Path) -> list[Target]:
    make.copy_once_made(_audit, root)
    make.mispair("index", root / "run", "-o", root / "index")
    files = "manifest.json img_emb/img_emb_0.npy text_emb/text_emb_0.npy metadata/metadata_0.parquet"
    asked = ("search {}/index --pair 3", "index {}/index --parquet {}/out.parquet")
    again = targets(root, "index/keys.npy index/manifest.json index/img_emb/img_emb_0.npy", "index {}/run -o {}/index")
    told = targets(root, "audit/audit.json audit/audit.parquet", "index {}/run --audit {}/audit -o {}/out")
    return targets(root, (f"index/{file}" for file in files.split()), *asked) + again + told


def inverted(make: Makers, root: Path) -> list[Target]:
    """What is written from 200,000 pairs on."""
    indexes.make(root / "index", indexes.vectors(300, 0), indexes.vectors(300, 1), kind="inverted")
    asked = ("search {}/index --pair 3", "search {}/index --pair 3 --captions")
    return targets(root, "index/image.index index/text.index", *asked)


def grid(make: Makers, root: Path) -> list[Target]:
    write_spec(root)
    only = ("--only", "row=plain", "--only", "column=0.2")
    make.mispair("experiments", "run", root / "tiny.yaml", "-o", root / "grid", "--seeds", 1, *only)
    cell = next((root / "grid" / "cells").rglob("metrics.json")).parent.relative_to(root)
    files = " ".join(f"{cell}/{name}" for name in ("metrics.json", "config.yaml", "cell.json", "metrics.jsonl"))
    again = "experiments run {}/tiny.yaml -o {}/grid --seeds 1"
    return [
        *targets(root, f"grid/experiment.json {files} {cell}/truth.npy", "experiments table {}/grid"),
        *targets(root, f"grid/experiment.json {files}", f"{again} {' '.join(only)}"),
        *targets(root, "tiny.yaml", "experiments table {}/grid", f"{again} --dry-run"),
    ]


_SHORT = [f"--set={value}" for value in (*TINY[1:4], "train.batch_size=16", "train.epochs=2", TINY[-1])]


def _scenes_run(make: Makers, root: Path) -> None:
    make.mispair("train", *SETS, "-o", root / "run")


def _audit(make: Makers, root: Path) -> None:
    planted_table(root)
    make.mispair("train", root / "pairs.csv", *_SHORT, "-o", root / "run")
    make.mispair("audit", root / "run", "-o", root / "audit")
