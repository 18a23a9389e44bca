"""Rows become tensors: padding and masks, in one layout.

Letters: B rows, R regions, F width, L words or steps of the second side.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.data.features import FeatureStore
from mispair.data.prepared_pictures import PreparedPictures
from mispair.data.vocabulary import TokenStore

Rows = NDArray[np.int64] | Tensor


def as_rows(rows: Rows) -> NDArray[np.int64]:
    """A tensor or an array of row numbers as a flat int64 array."""
    flat: NDArray[np.int64] = rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
    assert flat.ndim == 1, flat.shape
    assert flat.dtype.kind in "iu", f"row numbers are integers, got {flat.dtype}"
    return flat.astype(np.int64, copy=False)


def gather(store: FeatureStore | PreparedPictures | TokenStore, rows: Rows) -> tuple[Tensor, Tensor]:
    """Features (B, R, F) float32 or word ids (B, L) int64, and their mask."""
    values, mask = store.take(as_rows(rows))
    return torch.from_numpy(values), torch.from_numpy(mask)
