"""The frozen values that travel between packages. Data only; the mathematics is in `mispair.functional`.

Letters: B pairs in a batch, N items, T parts of an item (regions, words, 1 for a whole), D width, R regions,
L words, F input width; images are rows (n), texts are columns (m).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True, slots=True)
class Encoded:
    """Items of one side after their encoder."""

    values: Tensor  # (N, T, D)
    mask: Tensor  # (N, T) bool, True where real

    def __len__(self) -> int:
        return self.values.shape[0]

    def take(self, index: Tensor | slice) -> Encoded:
        """The items at `index`, in that order."""
        return Encoded(self.values[index], self.mask[index])

    def joined(self, other: Encoded) -> Encoded:
        """These items, then those of `other`; the shorter ones are padded."""
        longest = max(self.values.shape[1], other.values.shape[1])
        parts = [
            (pad(e.values, (0, 0, 0, longest - e.values.shape[1])), pad(e.mask, (0, longest - e.mask.shape[1])))
            for e in (self, other)
        ]
        return Encoded(torch.cat([values for values, _ in parts]), torch.cat([mask for _, mask in parts]))

    def detached(self) -> Encoded:
        """The same items without their history."""
        return Encoded(self.values.detach(), self.mask)


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B given pairs. There is no truth here, on purpose: a method must not be able to read it.

    With several processes, features hold this process's share of the batch and `pair_ids` the whole of it.
    """

    images: Tensor  # (B, R, F) features of the first side
    image_mask: Tensor  # (B, R) bool, True where real
    texts: Tensor  # (B, L) word ids, or (B, L, F') features when the second side has no words
    text_mask: Tensor  # (B, L) bool, True where real
    pair_ids: Tensor  # (B,) position in the pair table; the only key for per-pair arrays

    def __len__(self) -> int:
        return self.pair_ids.shape[0]

    def pinned(self) -> PairBatch:
        """The same batch in memory that an accelerator copies from while others work."""
        return PairBatch(*(getattr(self, f.name).pin_memory() for f in fields(self)))

    def to(self, device: torch.device, non_blocking: bool = True) -> PairBatch:
        """The same batch on `device`."""
        return PairBatch(*(getattr(self, f.name).to(device, non_blocking=non_blocking) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Untrained:
    """Vectors that nothing was trained for, so that no pair had a part in them."""

    images: NDArray[np.float32]  # (I, F) by image
    texts: NDArray[np.float32]  # (N, D) by pair: of the text it shows
    joint: NDArray[np.float32] | None = None  # (I, D) the images in the space of the texts, where somebody knows it


@dataclass(frozen=True, slots=True)
class Split:
    """The training pairs divided into matched and mismatched, keyed by pair id."""

    p_mismatch: NDArray[np.float64]  # (N,) posterior that the given pair does not match
    mismatched: NDArray[np.bool_]  # (N,) the decision

    @property
    def matched_ids(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self.mismatched)

    @property
    def mismatched_ids(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.mismatched)


@dataclass(frozen=True, slots=True)
class Alignment:
    """A transport plan and how its solver ended.

    The three facts stay tensors of shape (...) until somebody reads them, so that solving on an accelerator
    does not wait for the device. Reading them gives plain numbers for one problem, tensors for a batch.
    """

    plan: Tensor  # (..., n, m)
    transported: Tensor  # (...)
    done: Tensor  # (...) bool
    rounds: Tensor  # (...) int64

    @property
    def mass(self) -> float | Tensor:
        """The mass the plan carries."""
        return float(self.transported) if self.transported.ndim == 0 else self.transported

    @property
    def converged(self) -> bool | Tensor:
        """Whether the stopping rule was met before the iterations ran out."""
        return bool(self.done) if self.done.ndim == 0 else self.done

    @property
    def iterations(self) -> int | Tensor:
        """Rounds used (one round updates both sides)."""
        return int(self.rounds) if self.rounds.ndim == 0 else self.rounds
