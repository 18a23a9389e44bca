"""A small run to index and to search."""

import mispair as mp
from mispair.data import DataConfig, ScenesConfig

# A network of words and regions takes its time by its width, which no search depends on.
NARROW = {"model.embed": 32, "model.sim": 16, "model.word_dim": 16}


def train(folder, model="vse", seed=0):
    data = DataConfig(path="scenes", scenes=ScenesConfig(pictures=60))
    return mp.train(
        data, method="plain", model=model, out=folder, epochs=2, batch_size=32, noise=0.3, quiet=True, seed=seed,
        options={"method.loss": "infonce", **({} if model == "vse" else NARROW)},
    )  # fmt: skip
