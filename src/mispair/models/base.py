"""What every backbone has in common: input checks with one-sentence errors, and loading a state that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from mispair.errors import InputError
from mispair.models.sizes import InputSizes
from mispair.retrieval_module import RetrievalModule
from mispair.section import Section
from mispair.types import Encoded


class ModelConfig(Section):
    """Values of one backbone."""

    name: str


class Backbone(RetrievalModule):
    """Checks around `_encode_images` and `_encode_texts`; a subclass scores.

    A subclass sets `Config` and `presets` (names of sizes: "paper" as published, "small" for two cores, ...). Every
    backbone is made in the same way: from its configuration and the sizes of its inputs.
    """

    Config: ClassVar[type[ModelConfig]]
    presets: ClassVar[Mapping[str, Callable[[], ModelConfig]]] = {}
    embed: int  # D, set by the subclass

    def __init__(self, config: ModelConfig, sizes: InputSizes) -> None:
        super().__init__()
        self.config, self.sizes = config, sizes

    @property
    def width(self) -> int:
        return self.embed

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        """images (N, R, F), mask (N, R) -> Encoded (N, T, D)."""
        self._check_features("images", images, mask, self.sizes.image_width)
        if self.sizes.regions is not None and images.shape[1] > self.sizes.regions:
            raise InputError(
                f"the model was built for at most {self.sizes.regions} regions per image, got {images.shape[1]}"
            )
        return self._encode_images(images, mask)

    def encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        """texts (N, L) word ids or (N, L, F') features, mask (N, L) -> Encoded (N, T, D)."""
        if self.sizes.text_width is not None:
            self._check_features("texts", texts, mask, self.sizes.text_width)
        else:
            self._check_words(texts, mask, self.sizes.vocabulary_size or 0)
        if texts.device.type == "cpu" and bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise InputError("a text mask must hold the real parts first and the padding after them")
        return self._encode_texts(texts, mask)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As in torch, but a state of another model or preset is refused in one sentence."""
        self.check_state(state_dict, strict)
        return super().load_state_dict(state_dict, strict=strict, assign=assign)

    def check_state(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Raise InputError for a state that is not one of this model's."""
        own = self.state_dict()
        what = f"{self.config.name} with {self._shape()}"
        for key, value in state_dict.items():
            if key in own and own[key].shape != value.shape:
                raise InputError(
                    f"the state does not fit {what}: {key} is {tuple(value.shape)}, expected {tuple(own[key].shape)}"
                )
        odd = sorted(own.keys() ^ state_dict.keys())
        if strict and odd:
            where = "missing from" if odd[0] in own else "unknown in"
            raise InputError(f"the state does not fit {what}: {odd[0]} is {where} it ({len(odd)} such entries)")

    def _encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        raise NotImplementedError

    def _encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        raise NotImplementedError

    def _shape(self) -> str:
        sizes = {**self.config.model_dump(include={"embed", "sim"}), **self.sizes.model_dump(exclude_none=True)}
        return ", ".join(f"{key} {value}" for key, value in sizes.items())

    def _check_features(self, side: str, values: Tensor, mask: Tensor, width: int) -> None:
        if values.ndim != 3 or values.shape[2] != width:
            raise InputError(f"{side} must have shape (items, parts, {width}), got {tuple(values.shape)}")
        _check_mask(side, values, mask)

    def _check_words(self, words: Tensor, mask: Tensor, vocabulary: int) -> None:
        if words.ndim != 2 or words.is_floating_point():
            raise InputError(f"texts must be word ids of shape (items, words), got {words.dtype} {tuple(words.shape)}")
        _check_mask("texts", words, mask)
        # Looking at the values would make the host wait for an accelerator.
        if words.device.type == "cpu" and words.numel() and not 0 <= int(words.min()) <= int(words.max()) < vocabulary:
            outside = int(words.max()) if int(words.min()) >= 0 else int(words.min())
            raise InputError(f"word ids must lie in 0..{vocabulary - 1}, got {outside}")


def _check_mask(side: str, values: Tensor, mask: Tensor) -> None:
    if mask.shape != values.shape[:2] or mask.dtype != torch.bool:
        expected = tuple(values.shape[:2])
        raise InputError(f"the mask of {side} must be bool of shape {expected}, got {mask.dtype} {tuple(mask.shape)}")
    if mask.device.type == "cpu" and not bool(mask.any(1).all()):
        empty = int((~mask.any(1)).nonzero()[0])
        raise InputError(f"every item of {side} needs at least one real part, item {empty} of the batch has none")


def check_encoded(images: Encoded, texts: Encoded, embed: int) -> None:
    """Both sides must come from this model's encoders."""
    for side, encoded in (("images", images), ("texts", texts)):
        if encoded.values.ndim != 3 or encoded.values.shape[2] != embed:
            raise InputError(f"encoded {side} must have width {embed}, got {tuple(encoded.values.shape)}")
