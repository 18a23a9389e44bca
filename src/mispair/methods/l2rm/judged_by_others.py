"""Judging every pair by the other pairs: a regression from frozen image features that leaves the pair itself out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.functional.known_null import posterior_mismatched
from mispair.functional.leave_one_out import disagreement_with_others
from mispair.functional.loss_split import trust_at_least, with_known
from mispair.protocols import Run
from mispair.types import Encoded, PairBatch, Split

WIDEST = 512  # vectors wider than this are projected at random before the regression
FEATURES, TEXTS = "features", "described"  # columns of a survey too large to save


class _AsTheyCame:
    """An encoder that learns nothing: the mean of an image's regions."""

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        weight = mask.float()
        means = torch.bmm(weight[:, None], images.float()) / weight.sum(1).clamp(min=1)[:, None, None]
        return Encoded(means, mask.new_ones(len(mask), 1))


AS_THEY_CAME: Any = _AsTheyCame()


class OthersSplit:
    """The text of every image predicted from all other images (`held_out`), with a memory of past epochs.

    A pair is as suspicious as its text is unlike the prediction. Pairs mismatched on purpose show how unlike texts of
    other images are, and a probability is made of the comparison.
    """

    def __init__(self, history: float, matched_below: float, at_least: int) -> None:
        self.history, self.matched_below, self.at_least = history, matched_below, at_least
        self.given: NDArray[np.float64] | None = None  # (N,) running mean of the disagreement
        self.repaired: NDArray[np.float64] | None = None  # (N,) the same of pairs mismatched on purpose
        self.trust: NDArray[np.float64] | None = None  # (N,) 1 - p of the last epoch

    def survey(self, run: Run, batch: PairBatch, texts: Tensor) -> dict[str, Tensor]:
        """By pair: image features as they came, one vector each, and text vectors (B, D); at most `WIDEST` wide."""
        means = run.encode_images(AS_THEY_CAME, batch).values[:, 0]
        return {FEATURES: _narrowed(means), TEXTS: _narrowed(texts.float())}

    def divide(self, run: Run, columns: Mapping[str, NDArray[Any]]) -> Split:
        """From the columns of a survey the split."""
        trust = np.ones(run.pairs) if self.trust is None else self.trust

        def judge() -> dict[str, NDArray[Any]]:
            rng = np.random.default_rng(0)  # the same pairs mismatched on purpose in every epoch: they have a history
            judged = disagreement_with_others(columns[FEATURES], columns[TEXTS], run.image_of, trust, rng)
            return {"given": judged.given, "repaired": judged.repaired}

        disagreement = run.once(judge)
        self.given, self.repaired = (
            now if before is None else self.history * before + (1 - self.history) * now
            for now, before in ((disagreement["given"], self.given), (disagreement["repaired"], self.repaired))
        )
        p = posterior_mismatched(self.given, self.repaired)
        split = Split(p, trust_at_least(p > self.matched_below, self.given, self.at_least))
        split = with_known(split, run.known, self.at_least)
        self.trust = 1 - split.p_mismatch
        return split

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """What the split was made of, by pair: larger is more suspicious."""
        assert self.given is not None, "divide comes first"
        assert self.repaired is not None
        return {"signal": self.given, "repaired": self.repaired}

    def state(self) -> dict[str, Tensor]:
        arrays = {"given": self.given, "repaired": self.repaired, "trust": self.trust}
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if array is not None}

    def restore(self, state: dict[str, Tensor]) -> None:
        kept = {name: tensor.numpy() for name, tensor in state.items()}
        self.given, self.repaired, self.trust = kept.get("given"), kept.get("repaired"), kept.get("trust")


def _narrowed(vectors: Tensor) -> Tensor:
    """(B, F) -> (B, at most WIDEST): the same random projection for all batches of a width."""
    width = vectors.shape[1]
    if width <= WIDEST:
        return vectors
    drawn = torch.randn(width, WIDEST, generator=torch.Generator().manual_seed(width))
    narrow: Tensor = vectors @ (drawn / WIDEST**0.5).to(vectors.device)
    return narrow
