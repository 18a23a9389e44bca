"""Pool a set of vectors into one: the mean, or the learned weights over sorted values of VSE-infinity (GPO)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mispair.models.branches import BiGRU
from mispair.models.layers import masked_mean


class MeanPool(nn.Module):
    """The mean of the real parts, (N, T, D) -> (N, D)."""

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return masked_mean(values, mask)


class GeneralizedPool(nn.Module):
    """Generalised pooling operator (Chen et al., CVPR 2021, section 3.2).

    Each feature is sorted over the parts of an item; the k-th largest gets weight theta_k, which a small GRU reads
    off the position codes of a set of that size. Mean, max and k-max pooling are special weights.
    """

    def __init__(self, width: int = 32, temperature: float = 0.1) -> None:
        super().__init__()
        self.width, self.temperature = width, temperature
        self.gru = BiGRU(width, width)
        self.weigh = nn.Linear(width, 1, bias=False)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """(N, T, D), (N, T) -> (N, D)."""
        weights = self.weights(values.shape[1])[mask.sum(1) - 1]  # (N, T), zero beyond an item's size
        ordered = values.masked_fill(~mask[..., None], float("-inf")).sort(1, descending=True).values
        ordered = ordered.masked_fill(ordered == float("-inf"), 0.0)
        return torch.bmm(weights[:, None].to(ordered.dtype), ordered)[:, 0]

    def weights(self, largest: int) -> Tensor:
        """theta for every set size up to `largest`: row n-1 holds the n weights of a set of n, (T, T).

        All sizes at once: there are few, and looking up which ones occur would make an accelerator wait.
        """
        real = torch.ones(largest, largest, dtype=torch.bool, device=self.weigh.weight.device).tril()
        codes = _position_codes(largest, self.width, real.device).to(self.weigh.weight.dtype).expand(largest, -1, -1)
        logits: Tensor = self.weigh(self.gru(codes.masked_fill(~real[..., None], 0.0), real))[..., 0] / self.temperature
        return logits.masked_fill(~real, float("-inf")).softmax(-1)


def _position_codes(count: int, width: int, device: torch.device) -> Tensor:
    """Sinusoidal codes of positions 0 .. count-1, sine at even and cosine at odd places, (count, width)."""
    position = torch.arange(count, device=device, dtype=torch.float32)[:, None]
    rate = 10000.0 ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    angle = position * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class FeatureNorm(nn.BatchNorm1d):
    """Batch normalisation per feature over the real parts only: (N, T, D), (N, T) -> (N, T, D)."""

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        mean, var = self.running_mean, self.running_var
        if self.training:
            real = mask.to(values.dtype)[..., None]
            count = real.sum()
            mean = (values * real).sum((0, 1)) / count
            var = ((values - mean).square() * real).sum((0, 1)) / count
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1).clamp_min(1), self.momentum)
                self.num_batches_tracked += 1
        return (values - mean) * ((var + self.eps).rsqrt() * self.weight) + self.bias
