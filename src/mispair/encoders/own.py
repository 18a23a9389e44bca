"""Encoders made of parts: your own functions, or the pictures of one encoder with the texts of another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mispair.encoders.protocol import Encoder, EncoderOutput
from mispair.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image


class FunctionEncoder:
    """Your functions as an encoder of vectors.

    Args:
        name: what it is called in the cache and in tables.
        version: change it whenever the functions give other numbers; the cache goes by it.
        images: (B, side, side, 3) uint8, upright RGB pictures squashed to `side` -> (B, D).
        texts: B strings -> (B, D).
        joint: whether both sides are one space, such as CLIP's.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        images: Callable[[NDArray[np.uint8]], Any] | None = None,
        texts: Callable[[list[str]], Any] | None = None,
        joint: bool = False,
        side: int = 224,
    ) -> None:
        if images is None and texts is None:
            raise InputError(f"the encoder '{name}' has no function; give images=, texts= or both")
        if joint and (images is None or texts is None):
            raise InputError(f"the encoder '{name}' cannot be joint with one side; give images= and texts=")
        self.name, self.joint, self.side = name, joint, side
        self._images, self._texts = images, texts
        self.images: Mapping[str, tuple[int, ...]] = {}
        self.texts: Mapping[str, tuple[int, ...]] = {}
        if images is not None:
            self.images = {
                "vector": self._vectors(images(np.zeros((1, side, side, 3), np.uint8)), 1, "images").shape[1:]
            }
        if texts is not None:
            self.texts = {"vector": self._vectors(texts(["a"]), 1, "texts").shape[1:]}
        if joint and self.images != self.texts:
            raise InputError(
                f"the encoder '{name}' says it is joint, but its widths are {self.images} and {self.texts}"
            )
        self.fingerprint = hashlib.sha256(f"{name}\0{version}\0{side}".encode()).hexdigest()

    def prepare(self, picture: Image) -> NDArray[np.uint8]:
        from PIL.Image import Resampling

        return np.array(picture.resize((self.side, self.side), Resampling.BICUBIC))

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        assert self._images is not None
        return {"vector": EncoderOutput(self._vectors(self._images(prepared), len(prepared), "images"))}

    def encode_texts(self, texts: Sequence[str], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        assert self._texts is not None
        return {"vector": EncoderOutput(self._vectors(self._texts(list(texts)), len(texts), "texts"))}

    def in_text_space(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return vectors

    def _vectors(self, made: Any, count: int, side: str) -> NDArray[np.float32]:
        if hasattr(made, "detach"):  # a tensor, wherever it lies
            made = made.detach().cpu().float().numpy()
        array = np.asarray(made, np.float32)
        if array.ndim != 2 or len(array) != count:
            raise InputError(
                f"the function for {side} of the encoder '{self.name}' returned {array.shape} for {count} items; "
                f"expected ({count}, width)"
            )
        return array


class TwoEncoders:
    """Pictures by one encoder, texts by another: `dinov2-small+basic`. Never joint."""

    joint = False

    def __init__(self, pictures: Encoder, words: Encoder) -> None:
        for encoder, shapes, side in ((pictures, pictures.images, "pictures"), (words, words.texts, "texts")):
            if not shapes:
                raise InputError(f"the encoder '{encoder.name}' does not encode {side}; in A+B, A encodes pictures")
        self.pictures, self.words = pictures, words
        self.name = f"{pictures.name}+{words.name}"
        self.images, self.texts, self.side = pictures.images, words.texts, pictures.side
        self.fingerprint = hashlib.sha256(f"{pictures.fingerprint}+{words.fingerprint}".encode()).hexdigest()

    def prepare(self, picture: Image) -> NDArray[Any]:
        return self.pictures.prepare(picture)

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        return self.pictures.encode_images(prepared, outputs)

    def encode_texts(self, texts: Sequence[str], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        return self.words.encode_texts(texts, outputs)

    def in_text_space(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        raise InputError(f"the encoder '{self.name}' has no space for both sides; a joint one is 'basic'")
