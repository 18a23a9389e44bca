"""Encoder: what turns pictures and texts into numbers, whoever made it.

Letters: B items, D width of a vector, R cells of a picture or tokens of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image


class EncoderOutput(NamedTuple):
    """What a batch became. `lengths` (B,): how many of the R rows of an item are real; None where all are."""

    values: NDArray[np.float32]  # (B, D) for "vector", (B, R, D) for "cells" and "tokens"
    lengths: NDArray[np.int64] | None = None


class Encoder(Protocol):
    """Pictures in, vectors or cells out; texts in, vectors or token sequences out.

    `images` and `texts` say what there is and in which shape: {"vector": (1280,), "cells": (36, 1280)}; empty where
    the encoder does not know that side.
    """

    @property
    def name(self) -> str:
        """What a person calls it: basic, clip-b32."""

    @property
    def joint(self) -> bool:
        """True where `in_text_space` of picture vectors may be compared with text vectors."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of weights, preprocessing and revision: equal fingerprints, equal numbers."""

    @property
    def images(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of one picture by output."""

    @property
    def texts(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of one text by output."""

    @property
    def side(self) -> int:
        """Pictures need not be decoded larger than this (shorter side, pixels)."""

    def prepare(self, picture: Image) -> NDArray[Any]:
        """An upright RGB picture as the network's input. Called from several threads at once."""

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        """prepared (B, ...) -> one `EncoderOutput` for each of `outputs`."""

    def encode_texts(self, texts: Sequence[str], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        """B texts -> one `EncoderOutput` for each of `outputs`."""

    def in_text_space(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Picture vectors (B, D) -> (B, width of a text vector); only where `joint`."""


@dataclass(frozen=True, slots=True)
class EncoderAbout:
    """What `mispair encoders` says of an encoder, without loading it."""

    name: str
    good_for: str
    joint: bool | None  # None where it would have to be loaded to know
    megabytes: int
    licence: str
    source: str  # where the weights come from
    here: bool  # whether they are on this machine
    remedy: str = ""  # what to type where they are not
