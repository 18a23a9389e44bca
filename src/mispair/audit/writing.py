"""Writing a data set back in the format it came in, after a fix; the original is only read.

A pair has a slot: its place in the original data. Slots leave, or show another image or caption than before.
Letters: n slots written.
"""

from __future__ import annotations

import csv
import os
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.audit.fix import Fix
from mispair.audit.patch import write_patch
from mispair.audit.tables import Plan, Slot, rewrite_table
from mispair.audit.verdicts import Verdicts
from mispair.data import DataConfig, PairData, list_data_splits, open_source, open_split
from mispair.data.captions import find_captions
from mispair.data.features import FeatureStore
from mispair.data.precomp import ENDINGS
from mispair.data.source import Source
from mispair.data.tables import TABLES, features_path
from mispair.errors import InputError

Rows = NDArray[np.int64]
_ROWS = 1024  # of features copied at a time


@dataclass(frozen=True, eq=False)
class _Pairs:
    """What is written: the image and the text of every slot that stays."""

    slots: Rows  # (n,)
    images: Rows  # (n,) image rows
    texts: Rows  # (n,) text rows
    weights: NDArray[np.float64] | None = None


def write_fixed(verdicts: Verdicts, fix: Fix, out: Path) -> Path:
    """The data set after the fix, with the patch that reverts it, in the new folder `out`."""
    config, data = _reopened(verdicts)
    table = data.table
    before = _Pairs(table.pair_ids, table.image_rows, table.text_rows)
    after = _Pairs(fix.kept, table.image_rows[fix.kept], table.text_rows[fix.caption_of], fix.weights)
    if os.path.lexists(out):
        raise InputError(f"{out} exists already; nothing is overwritten, so choose another place with -o")
    if len(fix.kept) == 0:
        raise InputError("every pair would be dropped: nothing is left to write")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
            given, fixed = Path(folder) / "given", Path(folder) / "fixed"
            fixed.mkdir()
            _write(config, data, after, fixed)
            source = _folder(config)
            if source is None or data.noise_hash is not None:
                # What was judged lies nowhere on disk: it is written too, so that undoing has something to return to.
                given.mkdir()
                _write(config, data, before, given)
                source = given
            names = _names(config, data, source)
            about = {"action": fix.action, "pairs": len(verdicts), "kept": len(fix.kept), "changed": fix.changed}
            write_patch(source, fixed, names, about)
            os.rename(fixed, out)
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}); choose another place with -o") from None
    return out


def train_arguments(verdicts: Verdicts, out: Path) -> str:
    """What `mispair train` must be told to read the data set that was written to `out`."""
    config = DataConfig.model_validate(verdicts.facts.data["config"])
    path = Path(config.path)
    if path.suffix.lower() == ".npy":
        assert config.second is not None
        return shlex.join([str(out / path.name), str(out / Path(config.second).name)])
    if path.suffix.lower() not in TABLES:
        return shlex.quote(str(out))
    words, columns = [str(out / path.name)], config.columns.model_dump(exclude_none=True)
    features = features_path(config, path)
    if features is not None and features_path(DataConfig(path=words[0]), Path(words[0])) is None:
        given = {"--features": features} | ({"--ids": Path(config.ids)} if config.ids else {})
        for option, file in given.items():
            here = out / file.name
            words += [option, str(here if here.exists() else file)]
    for option, column in columns.items():
        words += [f"--{option}-column", column] if option != "id" else []
    return shlex.join(words + (["--missing", "skip"] if config.missing == "skip" else []))


def _reopened(verdicts: Verdicts) -> tuple[DataConfig, PairData]:
    about = verdicts.facts.data
    if not isinstance(about.get("config"), dict):
        raise InputError("this audit was made in memory and does not say where its data lies: audit the files instead")
    config = DataConfig.model_validate(about["config"])
    data = open_split(config, about["split"])
    if data.content_hash != about["hash"] or data.noise_hash != about["noise_hash"] or len(data) != len(verdicts):
        raise InputError(f"{config.path} has changed since the audit; audit it again before fixing it")
    return config, data


def _folder(config: DataConfig) -> Path | None:
    """Where the files lie; None where there are none, or not all of them in one place."""
    if config.path == "scenes":
        return None
    path = Path(config.path)
    if path.suffix.lower() != ".npy":
        return path if path.is_dir() else path.parent
    return path.parent if Path(config.second or "").parent == path.parent else None


def _write(config: DataConfig, data: PairData, pairs: _Pairs, out: Path) -> None:
    path = Path(config.path)
    source = open_source(config, data.split)
    if path.suffix.lower() in TABLES:
        _write_table(config, data, source, pairs, out)
    elif config.path == "scenes":
        _write_scenes(config, data, pairs, out)
    elif source.captions is None:
        _write_arrays(data, pairs, out)
    else:
        _write_folder(config, data, pairs, out)
    if pairs.weights is not None and path.suffix.lower() not in TABLES:
        name = "weights.npy" if data.split == "all" else f"{data.split}_weights.npy"
        np.save(out / name, pairs.weights.astype(np.float32), allow_pickle=False)


def _names(config: DataConfig, data: PairData, source: Path) -> list[str]:
    """The files of the data set in the folder `source`."""
    path = Path(config.path)
    if path.suffix.lower() in TABLES:
        features = features_path(config, path)
        own = [path.name] + ([] if features is None else [features.name, _ids(config, features).name])
        return [name for name in own if (source / name).is_file()]
    if path.suffix.lower() == ".npy":
        assert config.second is not None
        own = [name for one in (path, Path(config.second)) for name in (one.name, f"{one.stem}_lens.npy")]
        return [name for name in own if (source / name).is_file()]
    return sorted(file.name for file in source.iterdir() if file.is_file() and not file.name.startswith("."))


# ---------------------------------------------------------------------------------------------------- the formats


def _write_scenes(config: DataConfig, data: PairData, pairs: _Pairs, out: Path) -> None:
    """Generated data has no files: it becomes a precomputed folder of all its splits."""
    for split in list_data_splits(config):
        if split == data.split:
            _write_split(data, pairs, out)
        else:
            other = open_split(config.model_copy(update={"noise": None}), split, vocabulary=data.vocabulary)
            _write_split(other, _Pairs(other.table.pair_ids, other.table.image_rows, other.table.text_rows), out)


def _write_folder(config: DataConfig, data: PairData, pairs: _Pairs, out: Path) -> None:
    """A precomputed folder: features, captions and ids of the split; the other files are copied."""
    folder, split = Path(config.path), data.split
    captions = find_captions(folder, split).name
    features = next(name for end in ENDINGS if (folder / (name := f"{split}{end}")).exists())
    ids = f"{split}_ids.txt"
    own = {captions, features, ids, f"{Path(features).stem}_lens.npy", f"{split}_weights.npy"}
    for file in folder.iterdir():
        if file.is_file() and file.name not in own and not file.name.startswith("."):
            shutil.copyfile(file, out / file.name)
    _write_split(data, pairs, out, captions, features, with_ids=(folder / ids).exists())


def _write_split(
    data: PairData,
    pairs: _Pairs,
    out: Path,
    captions: str | None = None,
    features: str | None = None,
    with_ids: bool = True,
) -> None:
    rows = _one_per_image(pairs.images)
    _copy_rows(data.images, rows, out / (features or f"{data.split}_ims.npy"))
    names, shown = data.table.image_ids, data.table.captions
    assert shown is not None
    texts = [shown[row] for row in pairs.texts.tolist()]
    target = out / (captions or f"{data.split}_caps.txt")
    if target.suffix == ".tsv":
        ids = [str(row) if names is None else names[row] for row in pairs.images.tolist()]
        with target.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter="\t", lineterminator="\n").writerows(zip(ids, texts, strict=True))
    else:
        target.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    if names is not None and with_ids:
        listed = "".join(f"{names[row]}\n" for row in rows.tolist())
        (out / f"{data.split}_ids.txt").write_text(listed, encoding="utf-8")


def _write_arrays(data: PairData, pairs: _Pairs, out: Path) -> None:
    """Two arrays: both lose the rows that leave; the second shows what belongs to the first."""
    assert isinstance(data.texts, FeatureStore)
    first, second = data.images.path, data.texts.path
    assert first is not None
    assert second is not None
    _copy_rows(data.images, _one_per_image(pairs.images), out / first.name)
    _copy_rows(data.texts, pairs.texts, out / second.name)


def _write_table(config: DataConfig, data: PairData, source: Source, pairs: _Pairs, out: Path) -> None:
    path = Path(config.path)
    assert source.lines is not None
    position = {int(slot): k for k, slot in enumerate(pairs.slots)}
    plan: Plan = {}
    for slot, line in enumerate(source.lines.tolist()):
        plan.setdefault(line, []).append(_slot(data, source, pairs, slot, position.get(slot)))
    rewrite_table(path, config, plan, out / path.name)
    _write_table_features(config, source, pairs, out)


def _write_table_features(config: DataConfig, source: Source, pairs: _Pairs, out: Path) -> None:
    """Features beside the table go with it; where only the order linked them, a list of ids does from now on."""
    path = Path(config.path)
    features = features_path(config, path)
    if features is None:
        return
    ids = _ids(config, features)
    as_it_was = len(pairs.slots) == len(source.image_of_text) and np.array_equal(pairs.images, source.image_of_text)
    if ids.exists() or as_it_was:
        for file in (features, ids):
            if file.exists() and file.parent == path.parent:
                shutil.copyfile(file, out / file.name)
        return
    every = open_source(config, "all")
    assert every.images is not None
    assert every.image_ids is not None
    _copy_rows(every.images, np.arange(len(every.images)), out / f"{path.stem}.npy")
    (out / f"{path.stem}_ids.txt").write_text("".join(f"{name}\n" for name in every.image_ids), encoding="utf-8")


def _ids(config: DataConfig, features: Path) -> Path:
    """The list that says which image each row of the features is, whether or not there is one."""
    return Path(config.ids) if config.ids else features.with_name(f"{features.stem}_ids.txt")


def _slot(data: PairData, source: Source, pairs: _Pairs, slot: int, place: int | None) -> Slot:
    if place is None:
        return Slot(keep=False)
    text, image = int(pairs.texts[place]), int(pairs.images[place])
    assert source.image_ids is not None
    return Slot(
        keep=True,
        caption=None if text == slot or data.table.captions is None else data.table.captions[text],
        image=None if image == source.image_of_text[slot] else source.image_ids[image],
        weight=None if pairs.weights is None else round(float(pairs.weights[place]), 6),
    )


def _one_per_image(images: Rows) -> Rows:
    """One row per image where all images have equally many captions in a row, else one per caption.

    The format knows no other way: the reader divides captions by rows.
    """
    starts = np.flatnonzero(np.append(True, images[1:] != images[:-1]))
    lengths = np.diff(np.append(starts, len(images)))
    return images[starts] if (lengths == lengths[0]).all() else images


def _copy_rows(store: FeatureStore, rows: Rows, path: Path) -> None:
    """Rows of an array as they lie there, in their own type, a few at a time."""
    where = rows if store.rows is None else store.rows[rows]
    out = np.lib.format.open_memmap(path, "w+", store.array.dtype, (len(rows), *store.array.shape[1:]))
    for start in range(0, len(rows), _ROWS):
        out[start : start + _ROWS] = store.array[where[start : start + _ROWS]]
    out.flush()
    if store.lengths is not None:
        np.save(path.with_name(f"{path.stem}_lens.npy"), store.lengths[where], allow_pickle=False)
