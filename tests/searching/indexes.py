"""Small indexes of random vectors."""

import numpy as np
import pyarrow as pa

from mispair.searching.index import Manifest
from mispair.searching.write import write_index

D = 12


def unit(values):
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def vectors(count, seed):
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(count, D)))


def make(folder, images, texts, image_of=None, kind="exact", model="m1"):
    count = len(images)
    image_of = np.arange(count) if image_of is None else image_of
    table = pa.table(
        {
            "image": pa.array(image_of, pa.int64()),
            "image_path": [f"{k}.png" for k in image_of],
            "caption": [f"caption {k}" for k in range(count)],
            "split": ["train"] * count,
        }
    )
    manifest = Manifest(model=model, source="run", data="pairs.csv", pairs=count, width=D, kind=kind)
    blocks = {"images": np.array_split(images, 3), "texts": [texts]}
    write_index(folder, manifest, blocks, table, lambda *_: None)
    return folder
