"""Which captions are computed together: groups of equal length, so that no product is spent on padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Group:
    """k captions computed in one go, each cut to `length` words."""

    columns: Tensor  # (k,) their places in the batch
    length: int
    mask: Tensor | None  # (k, length) bool, or None when every word is real


def by_length(mask: Tensor, words: int) -> list[Group]:
    """Groups of equal caption length with about `words` words each; mask (m, L), real words first.

    On an accelerator reading the lengths would wait for the device, so captions stay in their order and keep their
    padding, which the mask hides: the same functions, more arithmetic.
    """
    if mask.device.type != "cpu":
        return padded(mask, words)
    lengths = mask.sum(1)
    order = torch.argsort(lengths, stable=True)
    groups: list[Group] = []
    for length, run in _runs(lengths[order].tolist()):
        per_group = max(1, words // length)
        columns = order[run]
        # Equal shares: a full group and a remainder of one would waste the second.
        shares = -(-len(columns) // per_group)
        groups += [Group(part, length, None) for part in columns.tensor_split(shares)]
    return groups


def padded(mask: Tensor, words: int) -> list[Group]:
    """The same without looking at the lengths: consecutive captions at the width they have."""
    count, length = mask.shape
    per_group = max(1, words // length)
    columns = torch.arange(count, device=mask.device)
    return [Group(part, length, mask[part]) for part in torch.split(columns, per_group)]


def in_order(logits: list[Tensor], plan: list[Group], dim: int) -> Tensor:
    """Put the groups' results back where their captions were."""
    order = torch.cat([group.columns for group in plan])
    return torch.cat(logits, dim).index_select(dim, torch.argsort(order))


def _runs(lengths: list[int]) -> list[tuple[int, slice]]:
    """Stretches of equal values in a sorted list."""
    runs: list[tuple[int, slice]] = []
    start = 0
    for end in range(1, len(lengths) + 1):
        if end == len(lengths) or lengths[end] != lengths[start]:
            runs.append((lengths[start], slice(start, end)))
            start = end
    return runs
