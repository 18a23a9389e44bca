"""The embedded world, put together: scenes, captions, pictures and region features of one split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mispair.data.config import ScenesConfig
from mispair.data.scenes.grammar import Claim, claim, word
from mispair.data.scenes.world import SPLITS, Scene, dice, sample
from mispair.errors import InputError
from mispair.memory import refuse_beyond_memory
from mispair.progress import Progress

CAPTIONS_PER_PICTURE = 5
_PURPOSE_SCENE, _PURPOSE_PIXELS, _PURPOSE_REGIONS = 0, 1, 2
_BLOCK = 128  # pictures in memory as floats at a time
_BYTES = 7000  # a picture's scene, claims, captions and features


@dataclass(frozen=True, eq=False)
class SceneSplit:
    """n pictures and 5n captions; everything follows from the configuration and the name of the split."""

    config: ScenesConfig
    split: str
    scenes: list[Scene]
    claims: list[Claim]  # of each caption
    captions: list[str]

    def __len__(self) -> int:
        return len(self.scenes)

    @property
    def ids(self) -> list[str]:
        """File names of the pictures."""
        return [f"{self.split}_{k:06d}.png" for k in range(len(self))]

    @property
    def image_of_text(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), CAPTIONS_PER_PICTURE)

    def picture(self, k: int) -> NDArray[np.uint8]:
        """Picture `k`, drawn on demand, (96, 96, 3)."""
        from mispair.data.scenes.draw import render

        return render(self.scenes[k], dice(self.config.seed, self.split, k, _PURPOSE_PIXELS))

    def png(self, k: int) -> bytes:
        """Picture `k` as a PNG file."""
        from mispair.data.scenes.draw import to_png

        return to_png(self.picture(k))

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """(n, 6, 96) region features, computed from the pixels when first asked for."""
        return self.compute_features()

    def features_telling(self, progress: Progress | None) -> NDArray[np.float32]:
        """`features`, with word of how far they are when they are not there yet."""
        if "features" not in self.__dict__:
            self.__dict__["features"] = self.compute_features(progress)
        return self.features

    def compute_features(self, progress: Progress | None = None) -> NDArray[np.float32]:
        from mispair.data.scenes.boxes import REGIONS
        from mispair.data.scenes.regions import WIDTH, describe

        features = np.empty((len(self), REGIONS, WIDTH), np.float32)
        for start in range(0, len(self), _BLOCK):
            rows = range(start, min(start + _BLOCK, len(self)))
            pictures = np.stack([self.picture(k) for k in rows])
            rngs = [dice(self.config.seed, self.split, k, _PURPOSE_REGIONS).rng for k in rows]
            features[rows.start : rows.stop] = describe(pictures, rngs, self.config.feature_noise)
            if progress:
                progress(rows.stop, len(self))
        return features

    def truth(self) -> NDArray[np.bool_]:
        """(n, 5n): which captions are true of which pictures, not only of their own."""
        from mispair.data.scenes.truth import true_pairs

        cells = len(self) * len(self.captions)
        refuse_beyond_memory(cells, f"the truth of {cells:,} pairs of a picture and a caption", "use a smaller world")
        return true_pairs(self.scenes, self.claims)


def split_sizes(config: ScenesConfig) -> dict[str, int]:
    """Pictures of each split."""
    dev = max(1, round(config.pictures * config.dev_share))
    test = max(1, round(config.pictures * config.test_share))
    return {"train": config.pictures - dev - test, "dev": dev, "test": test}


@lru_cache(maxsize=6)
def make_scenes(config: ScenesConfig, split: str) -> SceneSplit:
    """One split of the embedded world: scenes and captions now, pictures and features when asked for."""
    if split not in SPLITS:
        raise InputError(f"scenes has no split '{split}'; expected one of {', '.join(SPLITS)}")
    count = split_sizes(config)[split]
    refuse_beyond_memory(count * _BYTES, f"a generated world of {count:,} pictures", "lower data.scenes.pictures")
    scenes: list[Scene] = []
    claims: list[Claim] = []
    captions: list[str] = []
    seen: set[str] = set()
    for k in range(count):
        draw = dice(config.seed, split, k, _PURPOSE_SCENE)
        scene = sample(draw)
        scenes.append(scene)
        for _ in range(CAPTIONS_PER_PICTURE):
            for _ in range(20):  # say something nobody has said yet; a very large world runs out of such captions
                said = claim(scene, draw)
                text = word(said, draw)
                if text.lower() not in seen:
                    break
            seen.add(text.lower())
            claims.append(said)
            captions.append(text)
    return SceneSplit(config, split, scenes, claims, captions)
