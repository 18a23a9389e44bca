"""A cosine that learns to rank like the full model, at no extra pass: the first stage of two-stage scoring.

Pooled vectors of a model trained on pair-level scores are poor stand-ins for those scores: nothing taught them to
be. So two linear maps of the pooled vectors learn from the logits of every training batch (distillation: softmax
over rows and over columns). Nothing else notices: the logits pass through unchanged, the maps read detached vectors,
and their gradients come scaled down so that they weigh nothing in a clipped norm. An optimizer that divides by the
gradient's own size (Adam) does not see the scale; plain SGD would leave the maps where they are. While the model
still moves the maps lag behind; `fit_stand_in` brings them up to date when it is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mispair.errors import InputError
from mispair.evaluation_mode import evaluation_mode
from mispair.models.kernels.autograd import differentiable
from mispair.models.kernels.unit_length import l2
from mispair.models.layers import xavier
from mispair.types import Encoded

SHARP = 4.0  # the teacher: logits in standard deviations of their batch, times this
TEMPERATURE = 0.05
SCALE = 1e-3


class StandIn(nn.Module):
    """Maps of both sides' pooled vectors (N, P) to unit vectors (N, W) whose inner product stands in for the score."""

    def __init__(self, pooled: int, width: int) -> None:
        super().__init__()
        self.image = xavier(pooled, width)
        self.text = xavier(pooled, width)

    def images(self, pooled: Tensor) -> Tensor:
        return l2(self.image(pooled))

    def texts(self, pooled: Tensor) -> Tensor:
        return l2(self.text(pooled))

    def cosines(self, images: Tensor, texts: Tensor) -> Tensor:
        """Of every image with every text, (n, m), from pooled vectors, which get no gradient."""
        return self.images(images.detach()) @ self.texts(texts.detach()).T

    def follow(self, logits: Tensor, cosines: Tensor, scored: Tensor | None = None) -> Tensor:
        """The logits (n, m) as they are; a backward through them also teaches the maps behind the cosines.

        scored (n, m) bool: the cells whose logits come from the full model, where not all do.
        """
        return differentiable(_Follow, logits, cosines / TEMPERATURE, scored)


class Taught(Protocol):
    """A model that teaches its stand-in: vectors that imitate its scores at the price of a product."""

    stand_in: StandIn | None

    def pooled_images(self, images: Encoded) -> Tensor: ...
    def pooled_texts(self, texts: Encoded) -> Tensor: ...
    def similarity(self, images: Encoded, texts: Encoded) -> Tensor: ...


def fit_stand_in(
    model: Taught, batches: Iterable[tuple[Encoded, Encoded]], rounds: int = 50, rate: float = 1e-3
) -> None:
    """Fit the stand-in of a finished model to its evaluation-mode logits on a few batches of given pairs.

    Ten batches of 128 training pairs are enough (docs/backbones.md). Only the stand-in changes; nothing is drawn.
    """
    if model.stand_in is None:
        raise InputError("the model has no stand-in to fit: its configuration says stand_in: null")
    maps = model.stand_in
    with evaluation_mode(model):
        lessons = [(model.pooled_images(i), model.pooled_texts(t), model.similarity(i, t)) for i, t in batches]
    optimizer = torch.optim.Adam(maps.parameters(), lr=rate)
    with torch.enable_grad():
        for _ in range(rounds):
            for images, texts, logits in lessons:
                student = maps.images(images) @ maps.texts(texts).T / TEMPERATURE
                optimizer.zero_grad()
                torch.autograd.backward(student, lesson(logits, student.detach()))
                optimizer.step()
    optimizer.zero_grad()


class _Follow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, student: Tensor, scored: Tensor | None) -> Tensor:
        ctx.save_for_backward(logits, student, scored)
        return logits.view_as(logits)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        logits, student, scored = ctx.saved_tensors
        return grad, lesson(logits, student, scored) * SCALE, None


def lesson(logits: Tensor, student: Tensor, scored: Tensor | None = None) -> Tensor:
    """Gradient of KL(teacher, student), the mean over rows plus that over columns, in the student's logits (n, m).

    scored (n, m) bool: the divergence is among these cells, at least one in each row and column.
    """
    if scored is None:
        teacher = (logits - logits.mean()) / (logits.std(correction=0) + 1e-8) * SHARP
    else:
        count = scored.sum()
        apart = logits - torch.where(scored, logits, 0.0).sum() / count
        spread = (torch.where(scored, apart, 0.0).square().sum() / count).sqrt()
        teacher = (apart / (spread + 1e-8) * SHARP).masked_fill(~scored, -torch.inf)
        student = student.masked_fill(~scored, -torch.inf)
    total = torch.zeros_like(student)
    for axis in (0, 1):
        total += (student.softmax(axis) - teacher.to(student.dtype).softmax(axis)) / student.shape[1 - axis]
    return total
