"""Where the pictures of a table are: in the folder or tars somebody named, or beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mispair.data.config import DataConfig
from mispair.data.files.picture_folder import index_folder
from mispair.data.files.picture_tar import index_tars
from mispair.data.files.tar_names import is_tar_pattern, list_tars, tars_named
from mispair.data.picture_store import PictureIndex
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing

_BESIDE = (
    "", "images", "Images", "pictures", "photos", "imgs", "train2017", "val2017", "train2014", "val2014",
    "flickr30k-images", "flickr30k_images", "Flicker8k_Dataset", "Flickr8k_Dataset",
)  # fmt: skip
_ANNOTATIONS = "annotations"  # COCO has its pictures beside the folder of its captions
_PROBED = 20  # names tried before a folder is taken for the one with the pictures


def find_pictures(config: DataConfig, path: Path, names: Sequence[str]) -> PictureIndex | None:
    """The pictures of `names`, which stand in `path`.

    `config.images` is a folder, a tar, a pattern of tars or a folder of them. Where it is not given, the table's own
    folder, its subfolders of the usual names and the tars in it are tried, and of a folder `annotations` what lies
    beside it; None where nothing is found.

    Raises:
        InputError: `config.images` does not exist, or is something else.
    """
    if config.images is not None:
        return _named(Path(config.images), names, config.allow_outside)
    home = home_of_pictures(path)
    sample = list(dict.fromkeys(names))[:_PROBED]
    found = _beside(home, sample, config.allow_outside)
    above, name = os.path.split(os.path.abspath(home))
    if found is None and name == _ANNOTATIONS:  # a folder for each split: all of them lie below the one above
        found = _beside(Path(above), sample, config.allow_outside) and Path(above)
    if found is not None:
        return index_folder(found, names, config.allow_outside)
    tars = list_tars(home)
    if tars:
        index = index_tars(tars, names)
        return index if index.places else None
    return None


def _beside(home: Path, sample: Sequence[str], allow_outside: bool) -> Path | None:
    """The first folder of a usual name that has one of these pictures."""
    folders = (home / name for name in _BESIDE)
    there = (folder for folder in folders if os.path.isdir(folder) and _any_there(folder, sample, allow_outside))
    return next(there, None)


def home_of_pictures(path: Path) -> Path:
    """Where the pictures of a list are looked for when nobody says it: in the list's folder."""
    return path if os.path.isdir(path) else path.parent


def _named(where: Path, names: Sequence[str], allow_outside: bool) -> PictureIndex:
    if os.path.isdir(where):
        tars = list_tars(where)
        packed = index_tars(tars, names) if tars else None
        if packed is not None and not packed.missing:
            return packed
        loose = index_folder(where, names, allow_outside)  # an archive may have been left beside what came out of it
        return loose if packed is None or len(loose.places) > len(packed.places) else packed
    if where.suffix.lower() == ".tar" and (os.path.lexists(where) or is_tar_pattern(str(where))):
        return index_tars(tars_named(where), names)
    if is_missing(where):
        raise InputError(f"{does_not_exist(where)}; expected the folder or tar of the pictures (--images)")
    raise InputError(f"{where} is neither a folder nor a .tar; expected where the pictures are (--images)")


def _any_there(folder: Path, sample: Sequence[str], allow_outside: bool) -> bool:
    """Names as they stand only: looking below every folder of a home directory would take for ever."""
    return any(
        os.path.isfile(folder / name) for name in sample if "\0" not in name and "://" not in name[:12]
    ) and bool(index_folder(folder, sample, allow_outside).places)
