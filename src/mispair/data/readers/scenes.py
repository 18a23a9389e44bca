"""The generated world: named by the word scenes, drawn when it is opened."""

from __future__ import annotations

from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.scenes.build import make_scenes, split_sizes
from mispair.data.source import Source
from mispair.progress import Progress


class Scenes:
    """`mispair.data.scenes` as a data set."""

    def recognises(self, config: DataConfig) -> bool:
        return config.path == "scenes"

    def splits(self, config: DataConfig) -> list[str]:
        return list(split_sizes(config.scenes))

    def open(
        self, config: DataConfig, split: str, *, features: bool = True, progress: Progress | None = None
    ) -> Source:
        """Without `features` no picture is drawn: who belongs to whom is known before."""
        world = make_scenes(config.scenes, split)
        return Source(
            name="scenes",
            split=split,
            images=FeatureStore(world.features_telling(progress)) if features else None,
            image_of_text=world.image_of_text,
            captions=world.captions,
            image_ids=world.ids,
            world=world if features else None,
        )
