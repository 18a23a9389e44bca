"""One direction of iterative matching: queries attend to contexts K times and remember (IMRAM, section 3.2-3.3).

Contexts are the batch: a context items of Tc parts; s x b query items of Tq parts each, s = 1 when all contexts meet
the same queries and a when each has its own (b = 1). Two facts make it cheap and change nothing: the context
c = beta C enters the memory only through a linear map, so C is mapped once per item and beta mixes the result; and
its cosine needs only dot products and |c|^2 = beta G beta', so c itself is never formed.

The slow version that proves it: `imram_direction` in tests/model_oracles.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from mispair.models.kernels.attention import SLOPE, dots
from mispair.models.kernels.unit_length import EPS, l2


@dataclass(frozen=True, slots=True)
class MatchingSettings:
    """How often queries attend to contexts, how sharply, and whether they are brought to unit length each time."""

    steps: int
    smooth: float
    norm: bool


@dataclass(frozen=True, slots=True)
class Contexts:
    """The side that is attended to: a items of Tc parts, their Gram matrices and their half of the gate map."""

    values: Tensor  # (a, Tc, D)
    gram: Tensor  # (a, Tc, Tc)
    mapped: Tensor  # (a, Tc, 2D) through the context half of the gate map
    mask: Tensor  # (a, Tc)


@dataclass(frozen=True, slots=True)
class Queries:
    """The side that attends: s groups of b items of Tq parts, and their half of the gate map."""

    values: Tensor  # (s, b, Tq, D)
    mapped: Tensor  # (s, b, Tq, 2D) through the query half of the gate map, for the first look
    mask: Tensor  # (s, b, Tq)


def iterate(contexts: Contexts, queries: Queries, w_query: Tensor, bias: Tensor, settings: MatchingSettings) -> Tensor:
    """Sum over all looks of the mean cosine between queries and what they see, (a, b).

    w_query (2D, D) and bias (2D,) are the query half of the gate map: gate first, candidate second.
    """
    a, tc, d = contexts.values.shape
    s, b, tq, _ = queries.values.shape
    first = dots(contexts.values, queries.values)  # (a, b, Tq, Tc)
    real = queries.mask.expand(a, b, tq)
    length = torch.linalg.vector_norm(queries.values, dim=-1).expand(a, b, tq)
    total = first.new_zeros(a, b)
    raw, state = first, queries.values.reshape(s, b * tq, d)
    for step in range(settings.steps):
        weights = _attend(raw, contexts.mask, real, settings.smooth)
        flat = weights.view(a, b * tq, tc)
        seen = (flat * torch.bmm(flat, contexts.gram)).sum(-1).clamp_min(1e-16).sqrt().view(a, b, tq)
        cosine = (weights * first).sum(-1) / (length * seen).clamp_min(EPS)
        total = total + (cosine * real).sum(-1) / real.sum(-1)
        if step + 1 == settings.steps:
            break  # what would be remembered is read by nobody
        half = queries.mapped.reshape(s, b * tq, 2 * d) if step == 0 else state @ w_query.T
        gate, candidate = torch.split(torch.baddbmm(half + bias, flat, contexts.mapped), d, -1)
        gate, candidate = gate.sigmoid(), candidate.tanh()
        state = candidate + gate * (state - candidate)
        state = l2(state) if settings.norm else state
        raw = torch.bmm(state, contexts.values.mT).view(a, b, tq, tc)
    return total


def _attend(raw: Tensor, context_mask: Tensor, query_mask: Tensor, smooth: float) -> Tensor:
    """Normalise over the queries of an item for each context part, then softmax over context parts."""
    act = leaky_relu(raw, SLOPE) * query_mask[..., None]
    logits = l2(act, dim=2) * smooth
    return logits.masked_fill(~context_mask[:, None, None], float("-inf")).softmax(-1)
