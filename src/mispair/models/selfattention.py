"""Self-attended global vectors of an image and of a text (SGRAF, section 3.1: VisualSA and TextSA).

The slow versions that prove it: `visual_global`, `visual_global_ragged` and `text_global` in tests/model_oracles.py.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from mispair.models.kernels.unit_length import l2
from mispair.models.layers import Dropout, masked_mean, masked_softmax, xavier


class SlotNorm(nn.Module):
    """Batch normalisation of (N, R, D) with one channel per region slot, or one channel for all, over real parts.

    `slots` given: the published BatchNorm1d(36); slot r is normalised over the images that have a region there, so
    with nothing masked it is that layer exactly. `slots=None` (the region count varies, a slot has no meaning):
    one channel shared by all real regions.
    """

    weight: Tensor
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, slots: int | None, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.slots, self.eps, self.momentum = slots, eps, momentum
        channels = slots or 1
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.slots == x.shape[1] and mask.device.type == "cpu" and bool(mask.all()):
            return self._full(x)
        used = slice(0, x.shape[1]) if self.slots else slice(None)  # a batch may fill the first slots only
        if self.training:
            mean, var = self._statistics(x, mask, used)
        else:
            mean, var = self.running_mean[used], self.running_var[used]
        scale = self.weight[used] * (var + self.eps).rsqrt()
        return x * scale[:, None] + (self.bias[used] - mean * scale)[:, None]

    def _full(self, x: Tensor) -> Tensor:
        """Nothing masked: torch's own layer, which passes over the batch fewer times."""
        self.num_batches_tracked += int(self.training)
        running = self.running_mean, self.running_var
        return batch_norm(x, *running, self.weight, self.bias, self.training, self.momentum, self.eps)

    def _statistics(self, x: Tensor, mask: Tensor, used: slice) -> tuple[Tensor, Tensor]:
        real = mask.to(x.dtype)
        over = (0,) if self.slots else (0, 1)
        count = (real.sum(over) * x.shape[2]).reshape(-1)
        divisor = count.clamp_min(1)
        mean = (x.sum(2) * real).sum(over).reshape(-1) / divisor
        var = ((x - mean[:, None]).square().sum(2) * real).sum(over).reshape(-1) / divisor
        with torch.no_grad():
            # A slot that no image of the batch fills keeps what it knew.
            momentum = self.momentum * (count > 0).to(x.dtype)
            unbiased = var * count / (count - 1).clamp_min(1)
            self.running_mean[used] += momentum * (mean - self.running_mean[used])
            self.running_var[used] += momentum * (unbiased - self.running_var[used])
            self.num_batches_tracked += 1
        return mean, var


class ImageAttention(nn.Module):
    """Regions weighted by their agreement with the mean region: (N, R, D), (N, R) -> unit vectors (N, D)."""

    def __init__(self, embed: int, slots: int | None, dropout: float) -> None:
        super().__init__()
        self.local = xavier(embed, embed)
        self.overall = xavier(embed, embed)
        self.common = xavier(embed, 1, bias=False)  # softmax does not see a bias
        self.local_norm = SlotNorm(slots)
        self.overall_norm = nn.BatchNorm1d(embed)
        self.dropout = Dropout(dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        local = self.dropout(self.local_norm(self.local(values), mask).tanh())
        overall = self.dropout(self.overall_norm(self.overall(masked_mean(values, mask))).tanh())
        return _weighted(values, mask, local, overall, self.common)


class TextAttention(nn.Module):
    """The same for words, without batch normalisation: (N, L, D), (N, L) -> unit vectors (N, D)."""

    def __init__(self, embed: int, dropout: float) -> None:
        super().__init__()
        self.local = xavier(embed, embed)
        self.overall = xavier(embed, embed)
        self.common = xavier(embed, 1, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        # Where the mask can be looked at without waiting, real words only: a batch is about half padding.
        return self.packed(values, mask) if mask.device.type == "cpu" else self.padded(values, mask)

    def padded(self, values: Tensor, mask: Tensor) -> Tensor:
        """Every position computed, the padding masked out."""
        local = self.dropout(self.local(values).tanh())
        overall = self.dropout(self.overall(masked_mean(values, mask)).tanh())
        return _weighted(values, mask, local, overall, self.common)

    def packed(self, values: Tensor, mask: Tensor) -> Tensor:
        """Only real words computed; the same vectors."""
        real = mask.flatten().nonzero()[:, 0]
        local = self.dropout(self.local(values.flatten(0, 1).index_select(0, real)).tanh())
        overall = self.dropout(self.overall(masked_mean(values, mask)).tanh())
        keys = (overall * self.common.weight).index_select(0, real // mask.shape[1])
        logits = torch.full_like(mask, float("-inf"), dtype=values.dtype).masked_scatter(mask, (local * keys).sum(-1))
        return l2(torch.bmm(logits.softmax(-1)[:, None], values)[:, 0])


def _weighted(values: Tensor, mask: Tensor, local: Tensor, overall: Tensor, common: nn.Linear) -> Tensor:
    """l2(sum_t softmax_t(w · (local_t * overall)) value_t); w moves to the global side, one product per item."""
    logits = torch.bmm(local, (overall * common.weight)[..., None])[..., 0]
    return l2(torch.bmm(masked_softmax(logits, mask)[:, None], values)[:, 0])
