"""SAF: similarity attention filtration (Diao et al., AAAI 2021), the other half of SGRAF.

The slow versions that prove it: `scores` with `saf_head`, and `saf_batch_scores` for statistics of the batch, in
tests/model_oracles.py.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from mispair.distributed import SharedColumns
from mispair.models.finegrained import FineGrained, FineGrainedConfig, Nodes, node_mask
from mispair.models.kernels.caption_groups import Group, in_order
from mispair.models.kernels.unit_length import EPS
from mispair.models.layers import xavier
from mispair.models.sizes import InputSizes

NormStatistics = Literal["per_caption", "batch"]


class SAFConfig(FineGrainedConfig):
    """`bn`: whose statistics normalise the filter while training, each caption's own or the batch's."""

    name: Literal["saf"] = "saf"
    bn: NormStatistics = "per_caption"


class FilterNorm(nn.Module):
    """BatchNorm1d(1) of the filter logits with the statistics handed in, so that pairs may come in groups."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))
        self.register_buffer("running_mean", torch.zeros(1))
        self.register_buffer("running_var", torch.ones(1))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return (x - mean) * ((var + self.eps).rsqrt() * self.weight) + self.bias

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Fold in one update per caption, in order: mean, biased var and count (m,). A loop in closed form."""
        m = len(mean)
        ages = torch.arange(m - 1, -1, -1, device=mean.device, dtype=mean.dtype)
        share = self.momentum * (1 - self.momentum) ** ages
        unbiased = var * count / (count - 1)
        for running, new in ((self.running_mean, mean), (self.running_var, unbiased)):
            running.mul_((1 - self.momentum) ** m).add_((share * new).sum())
        self.num_batches_tracked += m


class SAF(FineGrained):
    """Raw logits of the filtered mean of the similarity vectors; the published score is their sigmoid."""

    Config = SAFConfig
    presets: ClassVar = {"paper": SAFConfig, "small": lambda: SAFConfig(embed=256, sim=64)}

    def __init__(self, config: SAFConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes)
        self.bn = config.bn
        self.filter = xavier(config.sim, 1)
        self.filter_norm = FilterNorm()
        self.out = xavier(config.sim, 1)

    def _coupled(self) -> bool:
        return self.training

    def _score(
        self, groups: Nodes, plan: list[Group] | None = None, shared: SharedColumns | None = None
    ) -> list[Tensor]:
        if not self.training:
            norm = self.filter_norm
            return [
                self._filtered(nodes, mask, self._raw(nodes), norm.running_mean, norm.running_var)
                for mask, nodes in groups
            ]
        assert plan is not None

        def in_batch(sums: list[tuple[Tensor, Tensor, Tensor]]) -> list[Tensor]:
            """The moments of all captions, those other processes have computed too, in their order in the batch."""
            parts = [in_order(list(part), plan, dim=0) for part in zip(*sums, strict=True)]
            return parts if shared is None else [shared.whole(part) for part in parts]

        if self.bn == "per_caption":
            # Group by group to the end: the backward then goes back group by group too, and holds one's gradients.
            logits, sums = [], []
            for mask, nodes in groups:
                raw = self._raw(nodes)
                sums.append(_moments(raw, mask))
                logits.append(self._filtered(nodes, mask, raw, *(own[:, None] for own in sums[-1][:2])))
            self.filter_norm.track(*in_batch(sums))
            return logits
        kept = [(mask, nodes, self._raw(nodes)) for mask, nodes in groups]
        sums = [_moments(raw, mask) for mask, _, raw in kept]
        mean, var, count = _pooled(*in_batch(sums))
        self.filter_norm.track(mean, var, count)
        return [self._filtered(nodes, mask, raw, mean, var) for mask, nodes, raw in kept]

    def _raw(self, nodes: Tensor) -> Tensor:
        """Filter logits (n, k, N)."""
        return (nodes @ self.filter.weight[0].to(nodes.dtype)).to(self.filter.bias.dtype) + self.filter.bias

    def _filtered(self, nodes: Tensor, mask: Tensor | None, raw: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        gate = self.filter_norm(raw, mean, var).sigmoid()
        if mask is not None:
            gate = gate * node_mask(mask)
        gate = gate / (gate.sum(-1, keepdim=True) + EPS)
        n, k, count, s = nodes.shape
        mixed = torch.bmm(gate.to(nodes.dtype).view(-1, 1, count), nodes.view(-1, count, s)).view(n, k, s)
        mixed = mixed.to(gate.dtype)
        # out(l2(mixed)): scaled after the product, no second copy of `mixed` is kept for the backward.
        length = torch.linalg.vector_norm(mixed, dim=-1)
        logits: Tensor = (mixed @ self.out.weight[0]) / (length + EPS) + self.out.bias
        return logits


def _moments(raw: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, biased variance and count of each caption's filter logits over all images and nodes, (k,) each."""
    n, k, nodes = raw.shape
    if mask is None:
        var, mean = torch.var_mean(raw, dim=(0, 2), correction=0)
        return mean, var, torch.full_like(mean, n * nodes)
    real = node_mask(mask).to(raw.dtype).expand(n, k, nodes)
    count = real.sum((0, 2))
    mean = (raw * real).sum((0, 2)) / count
    var = ((raw - mean[:, None]).square() * real).sum((0, 2)) / count
    return mean, var, count


def _pooled(mean: Tensor, var: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The moments of all captions together, (1,) each, from those of each."""
    total = count.sum(0, keepdim=True)
    overall = (mean * count).sum(0, keepdim=True) / total
    spread = ((var + (mean - overall).square()) * count).sum(0, keepdim=True) / total
    return overall, spread, total
