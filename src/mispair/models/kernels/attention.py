"""Word-to-region attention of a block of pairs, forwards and backwards (SCAN / SGRAF; smooth 9).

A block is n images against k texts: regions V (n, R, D), words W (b, k, L, D) where b is 1 when all images meet
the same texts (a grid) and n when each image has its own (a list of pairs, k = 1). Everything here is plain
arithmetic without a graph; `vectors` puts it behind autograd.

The context c_t = sum_r beta_tr v_r is used at unit length. Its length comes from the regions' Gram matrix
(|c|^2 = beta' G beta), so the scaled context minus the word is one product and no pass over D is spent on norms.

The slow version that proves it: `scan_attention` in tests/model_oracles.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from mispair.models.kernels.unit_length import EPS, TINY

SLOPE = 0.1


@dataclass(frozen=True, slots=True)
class Attention:
    """What the words of a block see; rows are the block's words, T = k L."""

    weights: Tensor  # (n, T, R) beta, sums to 1 over real regions
    mixed: Tensor  # (n, T, R) beta G
    length: Tensor  # (n, T, 1) |c|
    scaled: Tensor  # (n, T, R) beta / (|c| + eps)


def dots(regions: Tensor, words: Tensor) -> Tensor:
    """v_r · w_t of a block: (n, k, L, R)."""
    n, r, d = regions.shape
    b, k, length, _ = words.shape
    if b == 1:
        # One product for all images; image-major afterwards, or every later step would walk across memory.
        flat = words.reshape(-1, d) @ regions.reshape(-1, d).T
        return flat.view(k, length, n, r).permute(2, 0, 1, 3).contiguous()
    return torch.bmm(words.reshape(n, -1, d), regions.mT).view(n, k, length, r)


def attend(raw: Tensor, gram: Tensor, region_mask: Tensor | None, smooth: float) -> Attention:
    """raw (n, k, L, R), gram (n, R, R), region_mask (n, R) -> weights over regions for every word.

    The normalisation runs over the words of one text, for each region; padded words must have raw = 0.
    """
    n, _, _, r = raw.shape
    act = leaky_relu(raw, SLOPE)
    norm = _words_norm(act)
    logits = act * (smooth / (norm + EPS))
    if region_mask is not None:
        logits = logits.masked_fill(~region_mask[:, None, None], float("-inf"))
    weights = logits.softmax(-1).reshape(n, -1, r)
    mixed = torch.bmm(weights, gram)
    length = (weights * mixed).sum(-1, keepdim=True).clamp_min_(0).sqrt_()
    return Attention(weights, mixed, length, weights / (length + EPS))


def differences(seen: Attention, regions: Tensor, words: Tensor) -> Tensor:
    """Unit context minus word, (n, T, D)."""
    n, _, d = regions.shape
    flat = words.reshape(words.shape[0], -1, d).expand(n, -1, d)
    return torch.baddbmm(flat, seen.scaled, regions, beta=-1)


def attend_backward(
    seen: Attention, raw: Tensor, grad: Tensor, regions: Tensor, words: Tensor, smooth: float
) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient of the unit contexts (n, T, D) to those of regions (n, R, D), Gram matrices (n, R, R) and words
    (b, T, D).

    The word's own part of `differences` is not included: it is minus `grad`.
    """
    n, r, d = regions.shape
    pull = torch.bmm(grad, regions.mT)  # (n, T, R)
    along = (seen.scaled * pull).sum(-1, keepdim=True) / seen.length.clamp_min(TINY)
    d_weights = (pull - seen.mixed * along) / (seen.length + EPS)
    d_regions = torch.bmm(seen.scaled.mT, grad)
    d_gram = torch.bmm((seen.weights * (-0.5 * along)).mT, seen.scaled)
    d_logits = seen.weights * (d_weights - (seen.weights * d_weights).sum(-1, keepdim=True))
    d_raw = _words_norm_backward(raw, d_logits.view(raw.shape), smooth)
    flat = words.reshape(words.shape[0], -1, d)
    if words.shape[0] == 1:
        d_regions += (d_raw.permute(0, 3, 1, 2).reshape(n * r, -1) @ flat[0]).view(n, r, d)
        return d_regions, d_gram, (d_raw.permute(1, 2, 0, 3).reshape(-1, n * r) @ regions.reshape(-1, d))[None]
    d_raw = d_raw.reshape(n, -1, r)
    return d_regions.baddbmm_(d_raw.mT, flat), d_gram, torch.bmm(d_raw, regions)


def _words_norm(act: Tensor) -> Tensor:
    """Length over the words of a text, (n, k, 1, R); `vector_norm` walks this axis twenty times slower on a CPU."""
    return (act * act).sum(2, keepdim=True).sqrt_()


def _words_norm_backward(raw: Tensor, grad: Tensor, smooth: float) -> Tensor:
    """Through smooth * a / (|a| + eps) over the word axis and the leaky rectifier, (n, k, L, R)."""
    act = leaky_relu(raw, SLOPE)
    norm = _words_norm(act)
    shrink = smooth / (norm + EPS)
    along = (act * grad).sum(2, keepdim=True) * shrink / (norm + EPS) / norm.clamp_min(TINY)
    inner = grad * shrink - act * along
    return torch.where(raw > 0, inner, SLOPE * inner)
