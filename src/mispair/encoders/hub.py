"""Encoders by `transformers` alone: CLIP, SigLIP, SigLIP 2, DINOv2 and sentence encoders. torchvision is not needed.

Letters: B items, G cells a side, P patches, D width of a vector, H width inside the network.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mispair.encoders.library_errors import explained
from mispair.encoders.protocol import EncoderOutput
from mispair.encoders.sentences import Pooling, read_pooling
from mispair.encoders.weights import PICTURE_FAMILIES, Weights
from mispair.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

_DUAL = ("clip", "siglip", "siglip2")
_LONGEST = 64  # times its short side, of a picture of which the middle will be taken


class HubEncoder:
    """A model in a folder of weights. The network is loaded when first used; what it makes is known before.

    `cells`: cells a side of "cells", averaged from the patches. `precision`: "float32", or "bfloat16" for weights and
    arithmetic of half the size, "auto" for bfloat16 where an accelerator has it.
    """

    def __init__(
        self, name: str, weights: Weights, *, device: str = "cpu", cells: int = 6, precision: str = "auto"
    ) -> None:
        self.name, self.revision, self.weights, self._device = name, weights.revision, weights, device
        self.family, self._cells = weights.family, cells
        self._precision = _resolve(precision, device)
        self.joint = self.family in _DUAL
        self.side = 0
        self.images: Mapping[str, tuple[int, ...]] = {}
        self.texts: Mapping[str, tuple[int, ...]] = {}
        with explained(name):
            self._config = self._load("AutoConfig")
            if self.family in PICTURE_FAMILIES:
                self._describe_images()
            if self.family not in ("dinov2", "dinov2_with_registers"):
                self._describe_texts()
        about = f"{weights.fingerprint()}\0{self._precision}\0version 1"
        self.fingerprint = hashlib.sha256(about.encode()).hexdigest()

    def prepare(self, picture: Image) -> NDArray[np.float32]:
        """As the model's own processor does: (3, S, S), or for SigLIP 2 of any shape patches (P, values + 3)."""
        cropped = getattr(self.processor, "do_center_crop", False)
        made = self.processor(images=_middle(picture) if cropped else picture, return_tensors="np")
        pixels: NDArray[np.float32] = np.asarray(made["pixel_values"][0], np.float32)
        if self.family != "siglip2":
            return pixels
        # Its patches (P, values), which of them are real, and their rows and columns travel as one array.
        mask = np.asarray(made["pixel_attention_mask"][0], np.float32)[:, None]
        grid = np.broadcast_to(np.asarray(made["spatial_shapes"][0], np.float32), (len(pixels), 2))
        return np.concatenate([pixels, mask, grid], 1)

    def encode_images(self, prepared: NDArray[Any], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        import torch

        with explained(self.name, "encode pictures"), torch.inference_mode(), self._products():
            pixels = torch.from_numpy(np.ascontiguousarray(prepared)).to(self._device)
            pooled, patches, grids = self._see(pixels)
            made: dict[str, EncoderOutput] = {}
            if "vector" in outputs:
                made["vector"] = EncoderOutput(_array(pooled))
            if "cells" in outputs:
                made["cells"] = EncoderOutput(_array(self._average(patches, grids)))
        return made

    def encode_texts(self, texts: Sequence[str], outputs: Sequence[str]) -> dict[str, EncoderOutput]:
        import torch

        siglip = self.fills_with_padding
        made: dict[str, EncoderOutput] = {}
        with explained(self.name, "encode texts"), torch.inference_mode(), self._products():
            words = self.tokenizer(
                self.cleaned(texts), padding="max_length" if siglip else True, truncation=True,
                max_length=self.most_tokens, return_tensors="pt",
            ).to(self._device)  # fmt: skip
            vectors, tokens = self.read(self._model, dict(words))
            if "vector" in outputs:
                made["vector"] = EncoderOutput(_array(vectors))
            if "tokens" in outputs:
                made["tokens"] = self._tokens(tokens, words["attention_mask"])
        return made

    def in_text_space(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self.joint:
            raise InputError(f"the encoder '{self.name}' has no space for both sides; a joint one is 'basic'")
        return vectors

    @property
    def fills_with_padding(self) -> bool:
        """Whether texts are filled up to `most_tokens` and read padding and all, as SigLIP's are."""
        return self.family in ("siglip", "siglip2")

    def cleaned(self, texts: Sequence[str]) -> list[str]:
        """Texts as the tokenizer wants them: no half characters, and lower case where it was trained so."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return [text.lower() for text in clean] if self.fills_with_padding else clean

    def load_network(self) -> Any:
        """The model anew, in full precision, on the processor: what learns from it changes nothing here."""
        import torch

        with explained(self.name):
            return self._load("AutoModel", use_safetensors=True, dtype=torch.float32)

    def see(self, model: Any, pixels: Tensor) -> Any:
        """What `model`, ours or one loaded from it, makes of prepared pictures (B, ...)."""
        if self.family == "siglip2":
            values, mask, grid = pixels[..., :-3], pixels[..., -3].long(), pixels[:, 0, -2:].long()
            return model.get_image_features(
                pixel_values=values.to(model.dtype), pixel_attention_mask=mask, spatial_shapes=grid
            )
        pixels = pixels.to(model.dtype)
        return model.get_image_features(pixel_values=pixels) if self.joint else model(pixel_values=pixels)

    def read(self, model: Any, words: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Vectors (B, D) and tokens (B, R, H) that `model` makes of what a tokenizer gave."""
        if self.joint:
            wanted = ("input_ids",) if self.fills_with_padding else ("input_ids", "attention_mask")
            said = model.get_text_features(**{key: words[key] for key in wanted if key in words})
            return said.pooler_output, said.last_hidden_state
        tokens = model(**words).last_hidden_state
        return self.pooling.apply(tokens, words["attention_mask"]), tokens

    def _see(self, pixels: Tensor) -> tuple[Tensor, Tensor, list[tuple[int, int]]]:
        """Vectors (B, D), patches (B, P, H), and the rows and columns the patches of each picture form."""
        seen = self.see(self._model, pixels)
        if self.family == "siglip2":
            grid = pixels[:, 0, -2:].long()
            return seen.pooler_output, seen.last_hidden_state, [(int(r), int(c)) for r, c in grid.tolist()]
        patches = seen.last_hidden_state[:, self._extra_tokens :]
        size = self._vision.patch_size
        grid_of_all = (pixels.shape[-2] // size, pixels.shape[-1] // size)
        return seen.pooler_output, patches, [grid_of_all] * len(pixels)

    def _average(self, patches: Tensor, grids: list[tuple[int, int]]) -> Tensor:
        """Patches (B, P, H) -> (B, G * G, H), the mean of those each cell covers."""
        import torch
        from torch.nn.functional import adaptive_avg_pool2d

        rows = []
        for picture, (high, wide) in zip(patches, grids, strict=True):
            square = picture[: high * wide].T.reshape(-1, high, wide).float()
            rows.append(adaptive_avg_pool2d(square, self._cells).flatten(1).T)
        return torch.stack(rows)

    def _tokens(self, tokens: Tensor, mask: Tensor) -> EncoderOutput:
        values = np.zeros((len(tokens), *self.texts["tokens"]), np.float32)
        lengths = mask.sum(1).clamp(min=1).cpu().numpy().astype(np.int64)
        made = _array(tokens)
        for row, length in enumerate(lengths):
            values[row, :length] = made[row, :length]
        return EncoderOutput(values, lengths)

    def _describe_images(self) -> None:
        self.side, grid = self._picture_size()
        if not 1 <= self._cells <= grid:
            raise InputError(f"the encoder '{self.name}' has 1 to {grid} cells a side, got {self._cells}")
        width = self._config.projection_dim if self.family == "clip" else self._vision.hidden_size
        self.images = {"vector": (width,), "cells": (self._cells**2, self._vision.hidden_size)}

    def _picture_size(self) -> tuple[int, int]:
        """The side pictures are resized to, and the patches a side."""
        patch = self._vision.patch_size
        if self.family == "siglip2":
            patches = math.isqrt(self.processor.max_num_patches)
            return patches * patch, patches
        sizes = [dict(getattr(self.processor, key, None) or {}) for key in ("crop_size", "size")]
        cropped, resized = (max(size.values(), default=0) for size in sizes)
        return resized or cropped, (cropped or resized) // patch

    def _describe_texts(self) -> None:
        config = self.text_config
        if self.family == "clip":
            width = self._config.projection_dim
        elif self.joint:
            width = getattr(config, "projection_size", None) or config.hidden_size
        else:
            width = self._hidden(config)
            self.pooling: Pooling = read_pooling(self.weights.folder, self.name)
        limit = int(config.max_position_embeddings)
        if not self.joint:  # positions of these count from the padding, which takes some
            limit = min(limit - 2, 512) if self.family in ("roberta", "xlm-roberta", "mpnet") else min(limit, 512)
            limit = min(limit, self.pooling.most_tokens or limit)
        self.most_tokens = limit
        self.texts = {"vector": (width,)}
        if self.family not in ("siglip", "siglip2"):  # these cannot tell padding from words
            self.texts = {**self.texts, "tokens": (limit, self._hidden(config))}

    @staticmethod
    def _hidden(config: Any) -> int:
        return int(getattr(config, "hidden_size", None) or config.dim)

    @property
    def text_config(self) -> Any:
        return getattr(self._config, "text_config", self._config)

    @property
    def _vision(self) -> Any:
        return getattr(self._config, "vision_config", self._config)

    @property
    def _extra_tokens(self) -> int:
        """Tokens before the patches: the class token and registers."""
        return 0 if self.family == "siglip" else 1 + int(getattr(self._config, "num_register_tokens", 0))

    @cached_property
    def _dtype(self) -> Any:
        import torch

        return torch.bfloat16 if self._precision == "bfloat16" else torch.float32

    def _products(self) -> AbstractContextManager[None]:
        from mispair.half_precision import safe_products

        return safe_products(self._device) if self._precision == "bfloat16" else nullcontext()

    @cached_property
    def _model(self) -> Any:
        with explained(self.name):
            model = self._load("AutoModel", use_safetensors=True, dtype=self._dtype)
        return model.to(self._device).requires_grad_(False).eval()

    @cached_property
    def processor(self) -> Any:
        with explained(self.name):
            return self._load("AutoImageProcessor", backend="pil")

    @cached_property
    def tokenizer(self) -> Any:
        with explained(self.name):
            return self._load("AutoTokenizer")

    def _load(self, kind: str, **options: Any) -> Any:
        import transformers

        maker = getattr(transformers, kind)
        return maker.from_pretrained(
            str(self.weights.folder), local_files_only=True, trust_remote_code=False, **options
        )


def _middle(picture: Image) -> Image:
    """The middle of a strip: processors enlarge all of it before they crop, 30,000 pixels by one to 14 GB."""
    width, height = picture.size
    most = _LONGEST * min(width, height)
    if max(width, height) <= most:
        return picture
    left, top = max(0, (width - most) // 2), max(0, (height - most) // 2)
    return picture.crop((left, top, width - left, height - top))  # as much on both sides, so the middle stays


def _resolve(precision: str, device: str) -> str:
    import torch

    if precision not in ("auto", "float32", "bfloat16"):
        raise InputError(f"precision must be auto, float32 or bfloat16, got '{precision}'")
    if precision != "auto":
        return precision
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float32"


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return np.asarray(tensor.float().cpu().numpy())
