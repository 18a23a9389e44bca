"""The robust losses of this package as one module, for training loops that are not ours.

Letters: n pairs of a process, N pairs of all processes together (n without gathering), D width.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from mispair.distributed import gather_rows
from mispair.errors import InputError
from mispair.functional.divergence import DIVERGENCES, Divergence, alignment_divergence

Kind = Literal["infonce", "infonce_rce", "sigmoid"]
_CERTAIN = 1e-7  # how near 0 and 1 the labels of the reverse cross entropy may come


class RobustContrastiveLoss(nn.Module):
    """A contrastive loss on embeddings that takes a weight for every pair and soft targets.

    Without weights and targets, `infonce` is the loss of CLIP and `sigmoid` that of SigLIP. `infonce_rce` is half the
    sum of InfoNCE and the reverse cross entropy, which is bounded and follows wrong pairs less (L2RM Eq. 3 and 5).

    Args:
        kind: "infonce", "infonce_rce" or "sigmoid".
        temperature: scores are divided by it.
        learn_temperature: make it a parameter (kept as its logarithm), and the bias of `sigmoid` too.
        bias: added to the logits of `sigmoid`; SigLIP starts at -10.
        divergence: how soft targets are compared with predictions, for the two kinds of InfoNCE: "cross_entropy" (soft
            InfoNCE), "sym_kl" (L2RM Eq. 10), "kl" or "js".
        gather: compare with the embeddings of all processes of `torch.distributed`, gradients included; gradients of
            parameters must then be averaged over processes, as `DistributedDataParallel` does.
        local_loss: with `gather`, a process computes the losses of its own pairs only: n x N logits instead of N x N,
            and the same gradients.

    Example:
        >>> loss = RobustContrastiveLoss("infonce_rce")
        >>> images, texts = torch.randn(4, 8), torch.randn(4, 8)
        >>> loss(images, texts, weights=torch.tensor([1.0, 1.0, 0.0, 0.5])).shape
        torch.Size([])
    """

    def __init__(
        self,
        kind: Kind = "infonce",
        temperature: float = 0.05,
        *,
        learn_temperature: bool = False,
        bias: float = -10.0,
        divergence: Divergence = "cross_entropy",
        gather: bool = False,
        local_loss: bool = False,
    ) -> None:
        super().__init__()
        if kind not in get_args(Kind):
            raise InputError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
        if divergence not in DIVERGENCES:
            raise InputError(f"divergence must be one of {', '.join(DIVERGENCES)}, got {divergence!r}")
        if not temperature > 0:
            raise InputError(f"temperature must be positive, got {temperature}")
        if local_loss and not gather:
            raise InputError("local_loss=True needs gather=True: without gathering every loss is local")
        if kind == "infonce_rce" and divergence != "cross_entropy":
            raise InputError(f"infonce_rce compares by cross entropy both ways, got divergence={divergence!r}")
        self.kind: Kind = kind
        self.divergence: Divergence = divergence
        self.gather, self.local_loss = gather, local_loss
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)), requires_grad=learn_temperature)
        self.bias = nn.Parameter(torch.tensor(float(bias)), requires_grad=learn_temperature and kind == "sigmoid")

    @property
    def temperature(self) -> Tensor:
        """The temperature as it is now, ()."""
        return self.log_temperature.exp()

    def forward(
        self,
        images: Tensor,
        texts: Tensor,
        *,
        weights: Tensor | None = None,
        targets: Tensor | None = None,
        reduction: Literal["mean", "none"] = "mean",
    ) -> Tensor:
        """The loss of pairs (images[i], texts[i]), the mean of both directions.

        Args:
            images: (n, D), brought to unit length here.
            texts: (n, D), likewise.
            weights: (n,), how much each pair counts; the mean is over pairs, not over weights. A pair of weight 0 is
                still a negative of the others.
            targets: (N, N), images are rows, non-negative; with `gather`, of the pairs of all processes in the order of
                their ranks. InfoNCE normalises its rows and columns, so that a transport plan can be given as it is.
                `sigmoid` reads each cell as a probability. By default the given pairs: the identity.
            reduction: "mean" for a scalar, "none" for one loss per pair: (N,), or (n,) with `local_loss`.

        Embeddings in half precision are compared in float32, under autocast too.
        Raises InputError for shapes that do not fit, and on a processor for weights and targets below 0 or NaN.
        """
        _check(images, texts, weights, targets, reduction)
        with torch.autocast(images.device.type, enabled=False):  # a cosine in bfloat16, over 0.05, is off by hundredths
            losses = self._losses(_at_least_single(images), _at_least_single(texts), weights, targets)
        return losses.mean() if reduction == "mean" else losses

    def _losses(self, images: Tensor, texts: Tensor, weights: Tensor | None, targets: Tensor | None) -> Tensor:
        """The loss of every pair, each as much as it counts."""
        images, texts = normalize(images, dim=-1), normalize(texts, dim=-1)
        own = slice(0, len(images))
        all_images, all_texts = images, texts
        if self.gather and _world() > 1:
            all_images, all_texts = gather_rows(images.contiguous()), gather_rows(texts.contiguous())
            start = torch.distributed.get_rank() * len(images)
            own = slice(start, start + len(images))
            if not self.local_loss:
                images, texts, own = all_images, all_texts, slice(0, len(all_images))
                weights = None if weights is None else gather_rows(weights.contiguous())
        total = len(all_images)
        if targets is None:
            targets = torch.eye(total, dtype=images.dtype, device=images.device)
        elif targets.shape != (total, total):
            raise InputError(f"targets must be ({total}, {total}), all images by all texts, got {tuple(targets.shape)}")
        targets = targets.to(images.dtype)
        by_image = self._queries(images @ all_texts.T, targets[own])
        by_text = self._queries(texts @ all_images.T, targets[:, own].T)
        losses = (by_image + by_text) / 2
        return losses if weights is None else losses * weights.to(losses)

    def _queries(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of each query, one a row: scores and targets (q, N) -> (q,)."""
        logits = scores / self.temperature
        if self.kind == "sigmoid":
            return binary_cross_entropy_with_logits(logits + self.bias, targets, reduction="none").sum(1)
        forward = alignment_divergence(logits, targets, 1.0, "i2t", self.divergence)
        if self.kind == "infonce":
            return forward
        shares = targets / targets.sum(1, keepdim=True).clamp_min(torch.finfo(targets.dtype).tiny)
        reverse = -(logits.softmax(1) * shares.clamp(_CERTAIN, 1 - _CERTAIN).log()).sum(1)
        return (forward + reverse) / 2

    def extra_repr(self) -> str:
        return f"{self.kind}, temperature={float(self.temperature.detach()):.4g}, divergence={self.divergence}"


def _check(images: Tensor, texts: Tensor, weights: Tensor | None, targets: Tensor | None, reduction: str) -> None:
    if images.ndim != 2 or images.shape != texts.shape or not len(images):
        raise InputError(f"images and texts must be (n, D) alike, got {tuple(images.shape)} and {tuple(texts.shape)}")
    if weights is not None and weights.shape != images.shape[:1]:  # (n, 1) would broadcast to (n, n)
        raise InputError(f"weights must be one per pair, shape ({len(images)},), got {tuple(weights.shape)}")
    if targets is not None and targets.ndim != 2:
        raise InputError(f"targets must be a matrix of images by texts, got shape {tuple(targets.shape)}")
    for name, given in (("weights", weights), ("targets", targets)):
        # Looking at the values would make the host wait for an accelerator.
        if given is not None and given.device.type == "cpu" and not bool(((given >= 0) & given.isfinite()).all()):
            raise InputError(f"{name} must be numbers of at least 0, got {_first_wrong(given)}")
    if reduction not in ("mean", "none"):
        raise InputError(f"reduction must be mean or none, got {reduction!r}")


def _at_least_single(embeddings: Tensor) -> Tensor:
    return embeddings.float() if embeddings.dtype in (torch.float16, torch.bfloat16) else embeddings


def _first_wrong(given: Tensor) -> float:
    return float(given.detach()[~((given >= 0) & given.isfinite())][0])


def _world() -> int:
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if distributed else 1
