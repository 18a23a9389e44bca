"""A grid of moments: two methods, two rates, on a handful of scenes."""

import json
from pathlib import Path

import yaml

from mispair.experiments.grid import cells
from mispair.experiments.results import RECALLS
from mispair.experiments.spec import parse_spec

TINY = {
    "data.scenes.pictures": 120,
    "data.min_count": 1,
    "model.embed": 32,
    "model.word_dim": 16,
    "train.batch_size": 32,
    "train.epochs": 4,
    "train.lr": 0.003,
}


def tiny_spec(**changes):
    values = {
        "name": "tiny",
        "title": "A <small> grid & its table",
        "shows": "nothing",
        "rows": {
            "plain": {"label": "plain", "method": "plain", "set": {"method.loss": "infonce"}},
            "l2rm": {"label": "L2RM", "method": "l2rm", "set": {"method.warmup_epochs": 1}},
        },
        "columns": {
            "0.2": {"set": {"data.noise.rate": 0.2}},
            "0.6": {"set": {"data.noise.rate": 0.6}},
        },
        "data": {"scenes": {"set": TINY}},
    }
    return values | changes


def write_spec(folder: Path, **changes) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny_spec(**changes), sort_keys=False))
    return path


def tiny_cells(out: Path, seeds=1, only=(), **changes):
    return cells(parse_spec(tiny_spec(**changes), "tiny"), Path("tiny.yaml"), "scenes", "scenes", out, seeds, only)


def write_cell(out, row, column, seed, rsum, noise="abc", **more):
    folder = out / "cells" / row / column / f"seed-{seed}"
    folder.mkdir(parents=True)
    metrics = dict.fromkeys(RECALLS, rsum / 10) | {"rsum": rsum}
    summary = {
        "test": metrics,
        "dev": metrics,
        "seconds": 60.0,
        "data": {"name": "scenes", "pairs": 100, "hash": "0"},
        "noise": {"text": "", "hash": noise, "rate": 0.2},
        "cost": {"networks_trained": 1, "passes": 14.0, "forward_passes": 9.0},
        **more,
    }
    (folder / "metrics.json").write_text(json.dumps(summary))
    (folder / "cell.json").write_text(json.dumps({"code": "mispair 0, source 123"}))
    return folder


SHIPPED = Path(__file__).parents[2] / "experiments"
