"""Two arrays: both lose the rows that leave; the second shows what belongs to the first."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import WrittenPairs
from mispair.auditing.fixing.writers.feature_files import write_rows
from mispair.auditing.fixing.writers.precomp import write_identity
from mispair.auditing.fixing.writers.protocol import save_array
from mispair.data.config import DataConfig
from mispair.data.files.image_of import ENDING as IMAGE_OF


class ArraysWriter:
    """Two .npy files, or a folder of them."""

    weights = "weights"

    def home(self, config: DataConfig) -> Path | None:
        path = Path(config.path)
        if path.suffix.lower() != ".npy":
            return path
        return path.parent if Path(config.second or "").parent == path.parent else None

    def files(self, config: DataConfig) -> list[str]:
        path = Path(config.path)
        if path.suffix.lower() != ".npy":
            return sorted(file.name for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        second = Path(config.second or "")
        own = [name for one in (path, second) for name in (one.name, f"{one.stem}_lens.npy")]
        return [name for name in (*own, f"{second.stem}{IMAGE_OF}") if (path.parent / name).is_file()]

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        images, texts = data.source.images, data.source.text_features
        assert images is not None
        assert texts is not None
        assert images.path is not None
        assert texts.path is not None
        rows = write_identity(pairs.images, out / f"{texts.path.stem}{IMAGE_OF}")
        write_rows(images, rows, out / images.path.name)
        write_rows(texts, pairs.texts, out / texts.path.name)
        if pairs.weights is not None:
            prefix = f"{data.split}_" if texts.path.name.startswith(f"{data.split}_") else ""
            save_array(out / f"{prefix}weights.npy", pairs.weights.astype(np.float32))
        folder = Path(data.config.path)
        if folder.is_dir():
            for name in self.files(data.config):
                other = not name.startswith((images.path.stem, texts.path.stem))
                if other and texts.path.name.startswith(f"{data.split}_"):
                    shutil.copyfile(folder / name, out / name)

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        path = Path(config.path)
        if path.suffix.lower() != ".npy":
            return [str(out)]
        return [str(out / path.name), str(out / Path(config.second or "").name)]
