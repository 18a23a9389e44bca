"""A small run to index and to search."""

import mispair as mp
from mispair.data import DataConfig, ScenesConfig


def train(folder, model="vse", seed=0):
    data = DataConfig(path="scenes", scenes=ScenesConfig(pictures=60))
    return mp.train(
        data, method="plain", model=model, out=folder, epochs=2, batch_size=32, noise=0.3, quiet=True, seed=seed,
        options={"method.loss": "infonce"},
    )  # fmt: skip
