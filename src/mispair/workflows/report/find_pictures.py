"""Pictures by image id, for a page or a site: drawn, held by the data, beside it, or in a folder a person named.

No name leads out of the folder in which it is looked up, unless a person lets it: a page is made to be sent, and the
names come from a stranger's table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mispair.data import DataConfig
from mispair.data.files.picture_folder import OUTSIDE
from mispair.data.picture_store import PictureIndex
from mispair.data.readers.dispatch import open_pairing
from mispair.data.readers.pictures_of_table import find_pictures
from mispair.data.scenes.build import make_scenes
from mispair.errors import InputError
from mispair.pictures.decode import Broken
from mispair.report.thumbnails import thumbnail


class PicturesById:
    """The pictures of some images, as files and as thumbnails."""

    def __init__(
        self,
        config: DataConfig,
        split: str,
        ids: Sequence[str],
        *,
        folder: Path | None = None,
        near: Sequence[Path] = (),
        allow_outside: bool = False,
    ) -> None:
        """Look for the pictures of `ids`.

        Args:
            config, split: the data they belong to.
            folder: where a person says they are; looked at first.
            near: further folders to look in, such as the run's.
            allow_outside: whether a name may lead out of the folder in which it is looked up.
        """
        self.wanted = list(dict.fromkeys(ids))
        self.places: list[str] = []  # where was looked
        self.outside = 0  # pictures that were left out because they lie elsewhere
        self._read: dict[str, tuple[Any, Any]] = {}  # id -> store, place
        self._made: dict[tuple[str, int], str] = {}
        allowed = config.model_copy(update={"allow_outside": allow_outside})  # never because a file says so
        left, outside = set(self.wanted), set[str]()
        for index in self._indexes(allowed, split, folder, near):
            here = left & index.places.keys()
            self._read |= {name: (index.store, index.places[name]) for name in here}
            left -= here
            outside |= {name for name in left if index.missing.get(name) == OUTSIDE}
            if not left:
                break
        self.outside = len(outside & left)

    @property
    def present(self) -> bool:
        return bool(self._read)

    def said(self) -> str:
        """How many were found, where was looked, and what was left out, in a sentence or two."""
        looked = ", ".join(dict.fromkeys(self.places)) or "nowhere: the audit names no data"
        if not self._read:
            said = f"none of {len(self.wanted):,} was found; looked in {looked}; name their folder with --pictures"
        else:
            said = f"{len(self._read):,} of {len(self.wanted):,} found; looked in {looked}"
        if self.outside:
            said += f". Left out: {self.outside:,} outside these folders (--allow-outside shows them)"
        return said

    @property
    def complete(self) -> bool:
        return len(self._read) == len(self.wanted)

    def get(self, image_id: str, side: int) -> str | None:
        """A data URI, "" where the picture cannot be shown, None where the data has no pictures."""
        if not self.present:
            return None
        if (image_id, side) not in self._made:
            self._made[image_id, side] = self._make(image_id, side)
        return self._made[image_id, side]

    def read(self, image_id: str) -> bytes | None:
        """The file of a picture as it lies there; None where there is none, or it cannot be read."""
        if image_id not in self._read:
            return None
        store, place = self._read[image_id]
        data = store.read(place)
        return None if isinstance(data, Broken) else data

    def _make(self, image_id: str, side: int) -> str:
        data = self.read(image_id)
        return "" if data is None else thumbnail(data, side)

    def _indexes(
        self, config: DataConfig, split: str, folder: Path | None, near: Sequence[Path]
    ) -> Iterator[PictureIndex]:
        """Where the pictures may be, the likeliest first; nothing is looked up before it is asked for."""
        if folder is not None:
            self.places.append(str(folder))
            named = config.model_copy(update={"images": str(folder)})
            yield find_pictures(named, folder, self.wanted) or PictureIndex(_Nothing(), {})
        if config.path == "scenes":
            self.places.append("the generated scenes")
            yield _drawn(config, split)
            return
        if config.path:
            path = Path(config.path)
            home = path if os.path.isdir(path) else path.parent
            if config.images is not None and os.path.lexists(config.images):
                self.places.append(config.images)
                yield _beside(config, home, self.wanted)
            self.places.append(str(home))
            yield _beside(config.model_copy(update={"images": None}), home, self.wanted)
            yield _held(config, split)
        for place in near:
            self.places.append(str(place))
            yield _beside(config.model_copy(update={"images": str(place)}), place, self.wanted)


def _beside(config: DataConfig, home: Path, names: Sequence[str]) -> PictureIndex:
    """In the folder that `config.images` names, or in `home` and its subfolders of the usual names."""
    try:
        known = config.images is not None or os.path.isdir(home)
        index = find_pictures(config, home / "pairs", names) if known else None
    except (InputError, OSError):
        index = None
    return index or PictureIndex(_Nothing(), {})


def _held(config: DataConfig, split: str) -> PictureIndex:
    """What the data holds itself: a column of bytes, members of a tar."""
    try:
        source = open_pairing(config, split)
    except (InputError, OSError):
        return PictureIndex(_Nothing(), {})
    if source.pictures is None or source.image_ids is None:
        return PictureIndex(_Nothing(), {})
    places = dict(zip(source.image_ids, source.pictures.places, strict=True))
    missing = {name: place.reason for name, place in places.items() if isinstance(place, Broken)}
    there = {name: place for name, place in places.items() if name not in missing}
    return PictureIndex(source.pictures.store, there, missing, config.path)


def _drawn(config: DataConfig, split: str) -> PictureIndex:
    world = make_scenes(config.scenes, split)
    return PictureIndex(_DrawnScenes(world), {name: row for row, name in enumerate(world.ids)})


class _DrawnScenes:
    """Generated scenes, drawn when asked for."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def read(self, place: int) -> bytes | Broken:
        data: bytes = self.world.png(place)
        return data


class _Nothing:
    def read(self, place: Any) -> bytes | Broken:
        return Broken("missing")
