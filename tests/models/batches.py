"""Small ragged batches and moved statistics for the model tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from mispair.models import InputSizes, build_model, model_preset

WIDTH, VOCABULARY, TEXT_WIDTH, SLOTS = 11, 29, 5, 6


def tiny(
    name: str, *, slots: int | None = SLOTS, words: bool | None = None, double: bool = True, **changes: object
) -> nn.Module:
    """A model of a few dozen units with moved batch statistics and biases, in float64 unless told.

    Its texts are words, unless told or the model reads vectors alone.
    """
    torch.manual_seed(3)
    words = reads_words(name) if words is None else words
    small = {"embed": 20} | ({"sim": 12} if name in ("sgr", "saf") else {})
    small |= ({"word_dim": 9} if reads_words(name) else {"hidden": 7, "temperature": "learned", "bias": -0.5}) | changes
    if name in ("sgr", "saf"):
        small.setdefault("dropout", 0.0)
    if name in ("sgr", "saf", "imram"):
        small.setdefault("stand_in", None)  # the loops know nothing of it; test_stand_in.py does
    config = model_preset(name, "small").model_copy(update=small)
    sizes = InputSizes(
        image_width=WIDTH,
        vocabulary_size=VOCABULARY if words else None,
        text_width=None if words else TEXT_WIDTH,
        regions=slots,
    )
    model = build_model(config, sizes)
    for key, value in model.state_dict().items():
        if key.endswith("running_mean"):
            value.normal_(std=0.3)
        elif key.endswith("running_var"):
            value.uniform_(0.5, 2.0)
        elif key.endswith("bias"):
            value.uniform_(-0.2, 0.2)  # a zero bias would hide a forgotten one
        elif key.endswith("outer.weight") and not value.any():
            value.normal_(std=0.3)  # and so would an adapter that has not begun
    return model.double() if double else model


def reads_words(name: str) -> bool:
    """Whether the backbone takes word ids; otherwise it needs vectors on both sides."""
    return name != "dual"


def texts(name: str, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """The text side the backbone takes: word ids, or features."""
    return words(lengths) if reads_words(name) else sequences(lengths)


def images(counts: list[int], seed: int = 1) -> tuple[Tensor, Tensor]:
    """Features (N, max, F) and mask; what is masked holds NaN, which nobody may read."""
    return _ragged([torch.randn(c, WIDTH, generator=_rng(seed + i)) for i, c in enumerate(counts)])


def words(lengths: list[int], seed: int = 100) -> tuple[Tensor, Tensor]:
    """Word ids (N, max) and mask; padding holds a legal id that is not 0."""
    ids = torch.full((len(lengths), max(lengths)), VOCABULARY - 1)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    for j, length in enumerate(lengths):
        ids[j, :length] = torch.randint(0, VOCABULARY, (length,), generator=_rng(seed + j))
        mask[j, :length] = True
    return ids, mask


def sequences(lengths: list[int], seed: int = 200) -> tuple[Tensor, Tensor]:
    """Text-side features (N, max, F') and mask."""
    return _ragged([torch.randn(c, TEXT_WIDTH, generator=_rng(seed + i)) for i, c in enumerate(lengths)])


def unpadded(values: Tensor, mask: Tensor) -> list[Tensor]:
    return [v[m] for v, m in zip(values, mask, strict=True)]


def _ragged(items: list[Tensor]) -> tuple[Tensor, Tensor]:
    widest = max(len(item) for item in items)
    values = torch.full((len(items), widest, items[0].shape[1]), float("nan"), dtype=torch.float64)
    mask = torch.zeros(len(items), widest, dtype=torch.bool)
    for i, item in enumerate(items):
        values[i, : len(item)] = item
        mask[i, : len(item)] = True
    return values, mask


def _rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
