"""A folder of pictures and no table: a caption may lie beside each (dog.jpg and dog.txt), or none does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.files.captions import not_utf8
from mispair.data.files.picture_folder import FolderStore, walk_pictures
from mispair.data.files.reading import read_lines
from mispair.data.files.rows import TABLES
from mispair.data.files.tar_names import list_tars
from mispair.data.picture_store import PictureIndex
from mispair.data.readers.pair_list import PairList
from mispair.data.readers.pair_list_reader import PairListReader
from mispair.data.readers.split_names import splits_in_names
from mispair.data.source import Finding
from mispair.pictures.containment import contained

_CAPTION_FILES = (*TABLES, ".json", ".token", ".token.txt", "captions.txt")


class PictureFiles(PairListReader):
    """A folder with pictures in it or below it. Several lines beside a picture are several captions."""

    def recognises(self, config: DataConfig) -> bool:
        return os.path.isdir(config.path) and bool(walk_pictures(Path(config.path)))

    def read(self, config: DataConfig) -> PairList:
        return _read(config)


def _read(config: DataConfig) -> PairList:
    root = Path(config.path)
    names = walk_pictures(root)
    beside = captions_beside(config, names)
    captioned = [path is not None for path in beside]
    findings = _outside(config, names, beside)
    captions: list[str] = []
    images: list[str] = []
    unread = _may_hold_captions(root)
    if any(captioned):
        for name, path in zip(names, beside, strict=True):
            if path is not None:
                lines = read_lines(path, "the captions of a picture, one per line")
                texts = [line.strip() for line in lines.lines if line.strip()] or [""]
                captions += texts
                images += [name] * len(texts)
                findings += not_utf8(path, "all", lines.replaced)
        silent = [name for name, there in zip(names, captioned, strict=True) if not there]
        if silent:
            text = f"{counted(len(silent), 'picture')} (first {silent[0]!r}) without a caption beside; not used"
            findings.append(Finding("pictures without a caption", "all", len(silent), text))
    else:
        images = names
        if unread:
            findings.append(Finding("captions not read", "all", len(unread), no_captions(root)))
    rows = np.arange(len(images))
    return PairList(
        path=root,
        images=images,
        captions=captions if any(captioned) else None,
        splits=_splits(images),
        ids=None,
        lines=rows + 1,
        rows=rows,
        notes=() if any(captioned) or unread else (no_captions(root),),
        findings=tuple(findings),
        pictures=PictureIndex(FolderStore(root, config.allow_outside), {name: name for name in images}, {}, str(root)),
    )


def captions_beside(config: DataConfig, names: Sequence[str]) -> list[Path | None]:
    """The file of captions beside each picture, None where there is none that may be read: a link may lead away."""
    beside = [_beside(name) for name in names]
    paths = [os.path.join(config.path, name) for name in beside]
    readable = [os.path.isfile(path) and stays_inside(config, name) for path, name in zip(paths, beside, strict=True)]
    return [Path(path) if may else None for path, may in zip(paths, readable, strict=True)]


def stays_inside(config: DataConfig, name: str) -> bool:
    """Whether a file of the folder, every link of it resolved, lies in the folder, or need not."""
    return config.allow_outside or contained(config.path, name) is not None


def _outside(config: DataConfig, names: Sequence[str], beside: Sequence[Path | None]) -> list[Finding]:
    away = [
        _beside(name)
        for name, path in zip(names, beside, strict=True)
        if path is None and os.path.isfile(os.path.join(config.path, _beside(name)))
    ]
    if not away:
        return []
    text = (
        f"{counted(len(away), 'file')} of captions (first {away[0]!r}) lead out of {config.path} and were not read;"
        " --allow-outside reads them"
    )
    return [Finding("captions outside", "all", len(away), text)]


def _beside(name: str) -> str:
    return f"{os.path.splitext(name)[0]}.txt"


def no_captions(path: Path) -> str:
    """What to do with pictures of which nothing is said."""
    if _in_rows(path):
        return (
            f"{path.name} holds pictures and no captions: add a column of them, or say which it is with"
            " --caption-column"
        )
    unread = _may_hold_captions(path)
    if not unread:
        return f"{path.name} holds pictures and no captions: name a table of pairs, and these with --images"
    packed = " (unpack what is compressed)" if any(name.endswith(".gz") for name in unread) else ""
    return (
        f"{path.name} holds pictures and {counted(len(unread), 'file')} that may have their captions"
        f" ({', '.join(unread[:3])}{' ...' if unread[3:] else ''}); give one of them as DATA, and the pictures with"
        f" --images{packed}"
    )


def _in_rows(path: Path) -> bool:
    """Whether the pictures stand in the rows of a table, or of the tables of a folder."""
    if not os.path.isdir(path):
        return path.suffix.lower() in TABLES
    return not list_tars(path) and not walk_pictures(path)


def _may_hold_captions(folder: Path) -> list[str]:
    """Tables and caption files in a folder of pictures that nobody named; COCO keeps its own in `annotations`."""
    if not os.path.isdir(folder):
        return []
    names = list(os.listdir(folder))
    if os.path.isdir(folder / "annotations"):
        names += [f"annotations/{name}" for name in os.listdir(folder / "annotations")]
    return sorted(
        name for name in names if name.lower().removesuffix(".gz").endswith(_CAPTION_FILES) and name[0] != "."
    )


def _splits(images: Sequence[str]) -> list[str] | None:
    """The first folders, where they are called train, val, test."""
    return splits_in_names([image.split(os.sep)[0] if os.sep in image else "" for image in images])
