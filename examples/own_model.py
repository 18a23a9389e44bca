"""A network of your own: train it by any method, save it, load it again, and judge the pairs with it.

It keeps `RetrievalModule`: encode both sides, score every image against every text, one vector per item for shortlists.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

import mispair as mp
from mispair.models import InputSizes
from mispair.retrieval_module import RetrievalModule
from mispair.types import Encoded


class MeanOfParts(RetrievalModule):
    """The mean of projected regions against the mean of word vectors, by their cosine."""

    def __init__(self, sizes: InputSizes, width: int = 128) -> None:
        super().__init__()
        assert sizes.vocabulary_size is not None, "made for captions"
        self.regions = nn.Sequential(nn.Linear(sizes.image_width, width), nn.ReLU(), nn.Linear(width, width))
        self.words = nn.Embedding(sizes.vocabulary_size, width)
        nn.init.normal_(self.words.weight, std=0.1)

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        return Encoded(self.regions(images), mask)

    def encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        return Encoded(self.words(texts), mask)

    def pool_images(self, images: Encoded) -> Tensor:
        weight = images.mask.unsqueeze(-1)
        return normalize((images.values * weight).sum(1) / weight.sum(1), dim=1)

    pool_texts = pool_images

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        return self.pool_images(images) @ self.pool_texts(texts).T


def main(folder: Path, pictures: int = 400, epochs: int = 8) -> None:
    run = mp.train(
        "scenes",
        model=MeanOfParts,
        method="l2rm",
        noise=0.4,
        epochs=epochs,
        out=folder / "run",
        options={"data.scenes.pictures": pictures, "method.warmup_epochs": 2, "train.lr": 0.01},
        quiet=True,
    )
    print(f"test rSum {run.metrics['test']['rsum']:.1f}")
    again = mp.load(folder / "run", model=MeanOfParts)  # the weights are ours to keep, the class is yours
    same = [torch.equal(a, b) for a, b in zip(run.models[0].parameters(), again.models[0].parameters(), strict=True)]
    print(f"loaded again, the same weights: {all(same)}")
    verdicts = mp.audit(again, folds=0)
    print(f"{len(verdicts)} pairs judged, {verdicts.facts.issues} of them mismatched")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
