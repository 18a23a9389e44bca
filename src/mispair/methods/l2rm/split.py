"""Which pairs are mismatched: a mixture fitted to their losses, averaged over epochs (Sec. 4.1, Eq. 4)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.functional.contrastive_losses import info_nce
from mispair.functional.image_groups import shrink_to_groups
from mispair.functional.loss_split import split_losses
from mispair.functional.mixture import MixtureFit
from mispair.functional.ranking_losses import triplet
from mispair.methods.l2rm.config import L2RMConfig
from mispair.types import Split


class LossSplit:
    """The loss the mixture is fitted to, its memory of past epochs, and the division that follows."""

    def __init__(self, config: L2RMConfig, batch_size: int) -> None:
        self.config, self.batch_size = config, batch_size
        self.losses: NDArray[np.float64] | None = None  # (N,) running mean over epochs

    def loss(self, scores: Tensor) -> Tensor:
        """The loss of every pair of a batch that is fitted (Eq. 4), (n, n) -> (n,)."""
        kind = self.config.split.signal
        if kind == "infonce":
            return info_nce(scores, self.config.temperature)
        return triplet(scores, self.config.margin, "mean" if kind == "triplet_mean" else "hardest")

    def divide(
        self, losses: NDArray[np.float64], image_of: NDArray[np.int64]
    ) -> tuple[Split, MixtureFit, NDArray[np.float64]]:
        """From this epoch's losses (N,) the split (Eq. 4), the fitted mixture and the signal (N,) it was fitted to.

        Unless siblings are never used, the losses of pairs that show one image are drawn towards their mean.
        """
        config = self.config.split
        keep = config.history if self.losses is not None else 0.0
        self.losses = losses if self.losses is None else keep * self.losses + (1 - keep) * losses
        alone = self.config.siblings.when == "never"
        signal = self.losses if alone else shrink_to_groups(self.losses, image_of)
        split, fit = split_losses(signal, config.mixture, self.batch_size, config.matched_below, config.when_unimodal)
        return split, fit, signal

    def state(self) -> dict[str, Tensor]:
        return {} if self.losses is None else {"losses": torch.from_numpy(self.losses.copy())}

    def restore(self, state: dict[str, Tensor]) -> None:
        self.losses = state["losses"].numpy() if "losses" in state else None
