"""Dual: two towers and what is learned on top of them, or of the towers themselves (`tune`).

head   the towers are frozen and their vectors are the input. A small adapter per side starts at zero: where both towers
       share a space (CLIP, SigLIP), the untrained head ranks exactly as the pretrained model does. Where they do not,
       a linear map per side makes the common space first; `start` gives both maps before the first step.
lora   adapters of low rank inside the towers, which read pixels and pieces of texts.
full   the towers whole, or all but their lowest layers.

What proves it: tests/models/test_dual.py, against the cosines of the vectors themselves, and
tests/workflows/test_tuning.py, against the libraries' own outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor, nn
from torch.nn.functional import gelu

from mispair.errors import InputError
from mispair.models.base import ModelConfig
from mispair.models.layers import blanked, masked_mean, xavier
from mispair.models.one_vector import OneVectorBackbone, as_one_part
from mispair.models.sizes import InputSizes
from mispair.section import Section
from mispair.types import Encoded

_WIDEST_SCALE = 5.0  # a learned temperature stays above a fifth of the method's: CLIP's limit of 100 at 0.05
_HIDDEN = 512  # units of an adapter on frozen towers


class LoRAConfig(Section):
    """Adapters in the linear layers `targets` of both towers; none named: queries and values of attention."""

    rank: PositiveInt = 8
    alpha: PositiveInt = 16
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: tuple[str, ...] = ()


class DualConfig(ModelConfig):
    """`space`: joint where vectors of both sides can be compared as they are; auto: where both have the same width."""

    name: Literal["dual"] = "dual"
    tune: Literal["head", "lora", "full"] = "head"
    space: Literal["auto", "joint", "separate"] = "auto"
    # Of the maps of separate towers: by the given pairs as far as the others vouch for them, by all alike, or drawn.
    start: Literal["trusted", "given", "random"] = "trusted"
    embed: PositiveInt = 1024  # width of the common space of separate towers; joint ones keep theirs
    hidden: NonNegativeInt | None = (
        None  # units of the adapter of a side, 0 for none; unset: 512 on joint frozen towers
    )
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of those units
    drop_inputs: Annotated[float, Field(ge=0, lt=1)] = 0.0  # of the numbers the maps and adapters read
    # Learned: scores are scaled, which makes the method's temperature a start (losses with a softmax or a sigmoid).
    temperature: Literal["fixed", "learned"] = "fixed"
    bias: float | None = None  # learned from this start, beside the score: what a sigmoid loss needs (SigLIP: -0.5)
    # Of towers that learn:
    encoder: str | None = None  # whose towers; unset: that of the data
    lora: LoRAConfig = LoRAConfig()
    locked: NonNegativeInt = 0  # so many lower layers of each tower stay as they are
    tower_rate: Annotated[float, Field(gt=0)] = 1.0  # learning rate of the towers relative to the rest
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0  # ... and of each layer relative to the one above
    checkpointing: bool = False  # gradient checkpointing: less memory, a third more time


class Dual(OneVectorBackbone):
    """Cosine of two vectors."""

    Config = DualConfig
    config: DualConfig
    presets: ClassVar = {"paper": DualConfig, "small": lambda: DualConfig(embed=512)}

    def __init__(self, config: DualConfig, sizes: InputSizes) -> None:
        super().__init__(config, sizes)
        self.towers: Any = None
        if config.tune == "head":
            widths = self._vector_widths(sizes)
        else:
            self.towers = _open_towers(config, sizes)
            widths = self.towers.widths
        equal = widths[0] == widths[1]
        known = self.towers.inputs.joint if self.towers is not None else equal
        self.joint = config.space == "joint" or (config.space == "auto" and known)
        if self.joint and not equal:
            raise InputError(
                f"model.space=joint needs vectors of one width, got {widths[0]} and {widths[1]}; use separate"
            )
        hidden = config.hidden if config.hidden is not None else _HIDDEN if self.joint and self.towers is None else 0
        self.embed = widths[0] if self.joint else config.embed
        self.images = _Head(widths[0], self.embed, self.joint, hidden, config)
        self.texts = _Head(widths[1], self.embed, self.joint, hidden, config)
        self.starts_informed = self.joint or self.wants_start
        self.log_scale = nn.Parameter(torch.zeros(())) if config.temperature == "learned" else None
        self.bias = None if config.bias is None else nn.Parameter(torch.tensor(config.bias))
        self.unsaved = {name for name, p in self.named_parameters() if not p.requires_grad}

    @property
    def wants_start(self) -> bool:
        """Whether `start` should be called before the first step."""
        return self.images.basis is not None and self.towers is None

    @property
    def start_by(self) -> str:
        """Which pairs the maps start from (`start` of the configuration)."""
        return self.config.start

    @staticmethod
    def mean_vectors(values: Tensor, mask: Tensor) -> Tensor:
        """Parts (N, T, F), mask (N, T) -> their means (N, F), which is what the maps read."""
        return masked_mean(blanked(values, mask), mask)

    def start(self, images: tuple[Tensor, Tensor, Tensor], texts: tuple[Tensor, Tensor, Tensor]) -> None:
        """Per side a mean (F,), directions (F, K) and their map into the common space (K, D), K <= width."""
        for head, (mean, basis, weight) in ((self.images, images), (self.texts, texts)):
            head.start(mean, basis, weight)

    def rates(self) -> Mapping[str, float]:
        """Learning rate by name of parameter, relative to the run's; 1 where not named."""
        if self.towers is None:
            return {}
        config = self.config
        assert isinstance(config, DualConfig)
        return {f"towers.{name}": config.tower_rate * r for name, r in self.towers.rates(config.layer_decay).items()}

    def _vector_widths(self, sizes: InputSizes) -> tuple[int, int]:
        if sizes.text_width is None:
            raise InputError(
                "dual reads vectors of both sides, and these texts are words; encode them with --texts encoder, give"
                " their vectors as a second .npy, or use vse"
            )
        return sizes.image_width, sizes.text_width

    def _encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        vectors = self.mean_vectors(images, mask) if self.towers is None else self.towers.see(images[:, 0])
        return as_one_part(self.images(vectors), mask)

    def _encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        vectors = self.mean_vectors(texts, mask) if self.towers is None else self.towers.read(texts, mask)
        return as_one_part(self.texts(vectors), mask)

    def link(self, logits: Tensor) -> Tensor:
        """The cosine, scaled and shifted where that is learned."""
        if self.log_scale is not None:
            logits = logits * self.log_scale.clamp(max=math.log(_WIDEST_SCALE)).exp()
        return logits if self.bias is None else logits + self.bias

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """What learns: weights of towers that stay as they are come with the encoder and are not saved again."""
        state = super().state_dict(*args, **kwargs)
        return {key: value for key, value in state.items() if key not in self.unsaved} if self.unsaved else state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        if not self.unsaved:
            return super().load_state_dict(state_dict, strict=strict, assign=assign)
        super().check_state(state_dict, strict)
        return nn.Module.load_state_dict(self, state_dict, strict=False, assign=assign)


class _Head(nn.Module):
    """x -> Px + B gelu(Ax), with P the identity for joint towers and B zero at the start: (N, F) -> (N, D).

    Separate towers that start by the given pairs read x by its mean and `basis`, which stay as `start` set them.
    """

    mean: Tensor
    basis: Tensor | None

    def __init__(self, width: int, embed: int, joint: bool, hidden: int, config: DualConfig) -> None:
        super().__init__()
        self.register_buffer("mean", None)
        self.register_buffer("basis", None)
        if not joint and config.start != "random" and config.tune == "head":
            kept = min(width, embed)
            self.mean, self.basis = torch.zeros(width), nn.init.orthogonal_(torch.empty(width, kept))
            width = kept
        self.project = None if joint else xavier(width, embed)
        self.inner = self.outer = None
        if hidden:
            self.inner, self.outer = xavier(width, hidden), nn.Linear(hidden, embed)
            nn.init.zeros_(self.outer.weight)
            nn.init.zeros_(self.outer.bias)
        self.dropout, self.drop_inputs = nn.Dropout(config.dropout), nn.Dropout(config.drop_inputs)

    @torch.no_grad()
    def start(self, mean: Tensor, basis: Tensor, weight: Tensor) -> None:
        assert self.basis is not None
        assert self.project is not None
        self.mean.copy_(mean)
        self.basis.zero_()[:, : basis.shape[1]] = basis.to(self.basis)
        self.project.weight.zero_()[: weight.shape[1], : weight.shape[0]] = weight.T.to(self.project.weight)
        self.project.bias.zero_()

    def forward(self, vectors: Tensor) -> Tensor:
        if self.basis is not None:
            vectors = (vectors - self.mean) @ self.basis
        dropped: Tensor = self.drop_inputs(vectors)
        moved: Tensor = vectors if self.project is None else self.project(dropped)
        if self.inner is None or self.outer is None:
            return moved
        adapted: Tensor = moved + self.outer(self.dropout(gelu(self.inner(dropped))))
        return adapted


def _open_towers(config: DualConfig, sizes: InputSizes) -> Any:
    from mispair.encoders.tower_inputs import TowerInputs
    from mispair.encoders.towers import LoRA, Towers

    if config.encoder is None or sizes.vocabulary_size is None:
        raise InputError(
            f"model.tune={config.tune} trains the towers of an encoder, which read pictures and captions; give those"
            " (--images, --encoder), or train a head on the features: model.tune=head"
        )
    inputs = TowerInputs(config.encoder)
    read = (math.prod(inputs.shape), inputs.pieces)
    if read != (sizes.image_width, sizes.vocabulary_size):
        raise InputError(
            f"the towers of '{config.encoder}' read pictures of {read[0]:,} numbers and {read[1]:,} kinds of pieces,"
            f" those of this run are {sizes.image_width:,} and {sizes.vocabulary_size:,}; name the encoder it was made"
            " with"
        )
    values = config.lora
    lora = LoRA(values.rank, values.alpha, values.dropout, values.targets)
    assert config.tune != "head"
    return Towers(inputs, config.tune, locked=config.locked, lora=lora, checkpointing=config.checkpointing)
