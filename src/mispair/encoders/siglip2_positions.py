"""Position embeddings of SigLIP 2 resized for all pictures of a batch at once, as a program without loops.

The library resizes them picture by picture, which no graph for batches of any size can hold. Bilinear resizing with
antialiasing is a product with two small matrices, one for rows and one for columns, whose cells have a closed form: a
triangle around the middle of the new cell. They differ for pictures a single patch wide, where torch's resizing on a
processor is not what it is for the same picture lying on its side. Letters: B pictures, P patches at most, S rows and
columns of the embeddings, D width.
What proves it: tests/encoders/test_siglip2_positions.py, against the library's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def resize_positions(positional_embeddings: Tensor, spatial_shapes: Tensor, max_length: Any) -> Tensor:
    """(S, S, D), rows and columns of each picture (B, 2), P -> (B, P, D); the first stands where no patch is."""
    size = positional_embeddings.shape[0]
    high, wide = spatial_shapes[:, :1], spatial_shapes[:, 1:]
    place = torch.arange(max_length, device=spatial_shapes.device)[None]
    place = torch.where(place < high * wide, place, 0)
    rows = _shares(torch.div(place, wide, rounding_mode="floor"), high, size)
    columns = _shares(place % wide, wide, size)
    both = (rows[..., :, None] * columns[..., None, :]).flatten(2)
    return both.to(positional_embeddings.dtype) @ positional_embeddings.flatten(0, 1)


def _shares(cell: Tensor, cells: Tensor, size: int) -> Tensor:
    """Which of `size` old cells a new cell (B, P) of `cells` (B, 1) is made of, and to which share: (B, P, S)."""
    scale = size / cells.float()
    middle = (cell.float() + 0.5) * scale
    old = torch.arange(size, device=cell.device) + 0.5
    reach = scale.clamp(min=1)[..., None]
    shares = (1 - (old - middle[..., None]).abs() / reach).clamp(min=0)
    return shares / shares.sum(-1, keepdim=True)


@contextmanager
def resized_together(network: nn.Module) -> Iterator[None]:
    """SigLIP 2 resizes by `resize_positions` while this lasts; other networks are left alone."""
    resizing = [part for part in network.modules() if hasattr(part, "resize_positional_embeddings")]
    for part in resizing:
        part.__dict__["resize_positional_embeddings"] = resize_positions
    try:
        yield
    finally:
        for part in resizing:
            del part.__dict__["resize_positional_embeddings"]
