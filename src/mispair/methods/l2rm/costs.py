"""Transport costs for rematching: what it costs to match an image with a caption, given their scores.

Letters: q images (rows), n captions (columns), scores (q, n).

A cost is a module with `forward(scores) -> cost`. One that learns also has `teach(scores, rows, cols) -> scalar`, the
loss that supervises it with cells (rows[k], cols[k]) known to match.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus


class TransportCost(nn.Module):
    """The base of the costs."""

    learns = False
    by_row = False  # whether `teach` reads nothing but the rows of the matching cells

    def teach(self, scores: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
        """The supervision of cells known to match, ()."""
        raise NotImplementedError


class FixedCost(TransportCost):
    """1 - score: nothing to learn."""

    def forward(self, scores: Tensor) -> Tensor:
        return 1 - scores


class PaperCost(TransportCost):
    """The published cost: one linear layer over caption positions, C = ReLU(S Wᵀ + b), started at 1 - S (L2RM Eq. 6).

    It is tied to the batch size, and its supervision, the sum of the cost of matching cells, has its minimum at zero
    cost everywhere; only a tiny learning rate keeps it away.
    """

    learns = True
    by_row = True  # the layer mixes captions within an image

    def __init__(self, captions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(-torch.eye(captions))
        self.bias = nn.Parameter(torch.ones(captions))

    def forward(self, scores: Tensor) -> Tensor:
        return torch.relu(scores @ self.weight.T + self.bias)

    def teach(self, scores: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
        cells: Tensor = self(scores[rows])[torch.arange(len(rows), device=rows.device), cols]
        return cells.sum()


class LearnedCost(TransportCost):
    """A small monotone network of a score and of how it stands out in its row and its column.

    Every weight on the way from the three inputs is positive, so a higher similarity never costs more. The inputs are
    the score and its z-values along both axes: shuffling images or captions shuffles the cost with them, and any
    batch size will do. It is taught to make the matching cell the cheapest of its row and of its column, an
    objective that cannot be met by a cost of zero.
    """

    learns = True

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.full((3, hidden), -1.0))
        self.shift = nn.Parameter(torch.linspace(-2, 2, hidden))
        self.outer = nn.Parameter(torch.full((hidden,), -1.0))
        self.scale = nn.Parameter(torch.tensor(0.5))  # of the plain score, so that it starts near 1 - S

    def forward(self, scores: Tensor) -> Tensor:
        inputs = torch.stack([scores, _z(scores, 1), _z(scores, 0)], -1)
        hidden = torch.tanh(inputs @ softplus(self.inner) + self.shift)
        liking = hidden @ softplus(self.outer) / self.outer.numel() + softplus(self.scale) * scores
        return softplus(1 - liking, beta=4)

    def teach(self, scores: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
        wanted: Tensor = -self(scores) / 0.1
        along = wanted.log_softmax(1)[rows, cols] + wanted.log_softmax(0)[rows, cols]
        return -along.mean()


def make_cost(kind: Literal["learned", "paper", "score", "cosine"], batch_size: int) -> TransportCost:
    """The named cost; score and cosine are the same function of different scores."""
    if kind == "learned":
        return LearnedCost()
    return PaperCost(batch_size) if kind == "paper" else FixedCost()


def _z(scores: Tensor, axis: int) -> Tensor:
    """How many standard deviations a score lies above the mean of its row (axis 1) or column (axis 0)."""
    centred = scores - scores.mean(axis, keepdim=True)
    return centred / (centred.square().mean(axis, keepdim=True).sqrt() + 1e-4)
