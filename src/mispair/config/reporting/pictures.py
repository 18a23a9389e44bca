"""Which picture belongs to an image id: drawn, beside the data, or in a folder a person named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mispair.data import DataConfig
from mispair.data.scenes.build import make_scenes
from mispair.report.thumbnails import thumbnail

_ENDINGS = ("", ".jpg", ".jpeg", ".png", ".webp")
_BESIDE = ("", "images", "Images", "pictures")


class Pictures:
    """Thumbnails by image id. A data set without any picture has none; a broken picture is "" (a grey tile)."""

    def __init__(self, config: DataConfig, split: str, ids: Sequence[str], folder: Path | None = None) -> None:
        self._world = make_scenes(config.scenes, split) if config.path == "scenes" and folder is None else None
        self._rows = {name: k for k, name in enumerate(self._world.ids)} if self._world is not None else {}
        self._folders = [folder] if folder is not None else _folders(config)
        self._made: dict[tuple[str, int], str] = {}
        self.present = self._world is not None or any(self._file(name) is not None for name in ids)

    def get(self, image_id: str, side: int) -> str | None:
        """A data URI, "" where the picture cannot be shown, None where the data has no pictures."""
        if not self.present:
            return None
        if (image_id, side) not in self._made:
            self._made[image_id, side] = self._make(image_id, side)
        return self._made[image_id, side]

    def _make(self, image_id: str, side: int) -> str:
        if self._world is not None:
            row = self._rows.get(image_id)
            return "" if row is None else thumbnail(self._world.png(row), side)
        file = self._file(image_id)
        return "" if file is None else thumbnail(file, side)

    def _file(self, image_id: str) -> Path | None:
        """Never fetched, only looked up: an id may be an address, or anything else."""
        if "\0" in image_id or "://" in image_id or not image_id or len(image_id) > 1000:
            return None
        for folder in self._folders:
            for ending in _ENDINGS:
                path = folder / f"{image_id}{ending}"
                if os.path.isfile(path):
                    return path
        return None


def _folders(config: DataConfig) -> list[Path]:
    if not config.path:  # embeddings that came from nowhere in particular
        return []
    path = Path(config.path)
    home = path if os.path.isdir(path) else path.parent
    return [home / name for name in _BESIDE]
