"""write_fixed: a data set after a fix, with the patch that reverts it, in a new folder."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import make_atomically
from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.patch import write_patch
from mispair.auditing.fixing.slots import WrittenPairs
from mispair.auditing.fixing.writers.dispatch import writer_of
from mispair.data.config import DataConfig
from mispair.errors import InputError


def write_fixed(data: JudgedData, fix: Fix, out: Path, wrong: float | None = None) -> Path:
    """The data set after the fix, with the patch that reverts it, in the new folder `out`.

    `wrong`: the share of its pairs expected to be mismatched, kept with the patch for whoever estimates it anew.
    Raises InputError where `out` exists, cannot be written, or nothing would be left.
    """
    table = data.table
    if len(fix.kept) == 0:
        raise InputError("every pair would be dropped: nothing is left to write")
    before = WrittenPairs(table.pair_ids, table.image_rows, table.text_rows)
    data, texts = _with_captions(data, fix)
    after = WrittenPairs(fix.kept, table.image_rows[fix.kept], texts, fix.weights)
    with make_atomically(out) as folder:
        fixed = folder / "fixed"
        fixed.mkdir()
        writer = writer_of(data.config)
        writer.write(data, after, fixed)
        source = writer.home(data.config)
        if source is None or data.noise_hash is not None:
            # What was judged lies nowhere on disk: it is written too, so that undoing has something to return to.
            source = folder / "given"
            source.mkdir()
            writer.write(data, before, source)
            names = _every_file(source)
        else:
            names = writer.files(data.config)
        about = {"action": fix.action, "pairs": len(table), "kept": len(fix.kept), "changed": fix.changed}
        write_patch(source, fixed, names, about | {"wrong": wrong})
        os.rename(fixed, out)
    return out


def _with_captions(data: JudgedData, fix: Fix) -> tuple[JudgedData, NDArray[np.int64]]:
    """The data with the captions that people gave as further texts, and the text row of every pair that stays, (n,)."""
    texts = data.table.text_rows[fix.caption_of]
    given = [(place, fix.captions[pair]) for place, pair in enumerate(fix.kept.tolist()) if pair in fix.captions]
    if not given:
        return data, texts
    if data.table.captions is None:
        raise InputError("this data has no captions: what a reviewer wrote cannot be put into it")
    count = len(data.table.captions)
    texts[[place for place, _ in given]] = count + np.arange(len(given))
    table = replace(data.table, captions=[*data.table.captions, *(caption for _, caption in given)])
    return replace(data, table=table), texts


def train_arguments(config: DataConfig, out: Path, weighted: bool = False, tune: object = None) -> str:
    """What `mispair train` must be told to read the data set that was written to `out`, its weights included.

    `tune`: what of an encoder's towers learned, where they did.
    """
    writer = writer_of(config)
    weights = ["--weights", writer.weights] if weighted else []
    towers = ["--tune", tune] if isinstance(tune, str) else []
    return shlex.join([*writer.arguments(config, out), *weights, *towers])


def _every_file(folder: Path) -> list[str]:
    """All files below a folder, as paths relative to it."""
    files = [Path(home) / name for home, _, names in os.walk(folder) for name in names]
    return sorted(str(file.relative_to(folder)) for file in files)
