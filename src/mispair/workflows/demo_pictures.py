"""The second half of the demonstration: picture files and a table of captions, from nothing to verdicts and a page."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from mispair.atomic import write_atomically, write_text
from mispair.auditing.verdicts import Verdicts
from mispair.config.choose import choose
from mispair.config.load import validate
from mispair.data import DataConfig
from mispair.data.config import ScenesConfig
from mispair.data.scenes.build import make_scenes
from mispair.functional.detection import detection_metrics
from mispair.progress import Tell, silent
from mispair.report.page import render
from mispair.workflows.audit import audit
from mispair.workflows.embed import Encoding, with_features
from mispair.workflows.report import build_page
from mispair.workflows.train import train

RATE = 0.3
_PICTURES = 500


@dataclass(frozen=True)
class PicturesDemo:
    """What the second half found, and what was hidden in the data."""

    verdicts: Verdicts
    auroc: float
    rate: float  # of the pairs that are really mismatched


def write_pictures(folder: Path, pictures: int = _PICTURES) -> NDArray[np.bool_]:
    """Write photos/*.png and pairs.csv, a share of its captions beside the wrong picture; which, (M,)."""
    world = make_scenes(ScenesConfig(pictures=pictures), "train")
    for row, name in enumerate(world.ids):
        content = world.png(row)
        write_atomically(folder / "photos" / name, partial(Path.write_bytes, data=content))
    rng = np.random.default_rng(0)
    shown = world.image_of_text.copy()
    moved = rng.choice(len(shown), round(RATE * len(shown)), replace=False)
    shown[moved] = shown[np.roll(moved, 1)]
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(["filepath", "title"])
    writer.writerows((world.ids[image], text) for image, text in zip(shown.tolist(), world.captions, strict=True))
    write_text(folder / "pairs.csv", table.getvalue())
    return np.asarray(shown != world.image_of_text)


def judge_pictures(folder: Path, console: Console, tell: Tell = silent) -> PicturesDemo:
    """Write pictures, encode, train, judge and report; as `mispair audit pairs.csv --images photos --train` does.

    Raises:
        InputError: the embedded encoder is not installed.
    """
    mismatched = write_pictures(folder)
    raw = DataConfig(path=str(folder / "pairs.csv"), images=str(folder / "photos"))
    config = with_features(raw, Encoding("basic"), tell)
    chosen = validate(choose(config).values, "the demonstration")
    result = train(chosen, folder / "audit" / "run", console=console, interval=10)
    if result.stopped:
        raise KeyboardInterrupt
    verdicts = audit(str(folder / "audit" / "run"), split="all", tell=tell)
    verdicts.save(folder / "audit")
    write_text(folder / "report.html", render(build_page(folder / "audit")))
    auroc = detection_metrics(verdicts.p_mismatch, mismatched)["auroc"]
    return PicturesDemo(verdicts, float(auroc), float(mismatched.mean()))
