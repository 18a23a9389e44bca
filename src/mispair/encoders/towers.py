"""Towers: the networks of hub models as one module that learns, whole or by adapters of low rank (LoRA, by peft).

Letters: B items, L pieces of a text, F numbers of a prepared picture, D width.
What proves it: tests/workflows/test_tuning.py, against the libraries' own outputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mispair.encoders.tower_inputs import TowerInputs
from mispair.errors import InputError

Tune = Literal["lora", "full"]
_LAYER = re.compile(r"(?:^|\.)(?:layers|layer)\.(\d+)\.")
# What LoRA adapts where nobody says: the queries and values of attention, by the names libraries give them.
_USUAL = ("q_proj", "v_proj", "query", "value", "q_lin", "v_lin", "q", "v")


@dataclass(frozen=True)
class LoRA:
    """Adapters of rank `rank`, scaled by alpha / rank, in the linear layers `targets`; () for queries and values."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.0
    targets: Sequence[str] = ()


class Towers(nn.Module):
    """Pixels and pieces in, vectors out, as the encoder of that name makes them; where it is joint, one network.

    Args:
        inputs: which encoder, and how its inputs are prepared.
        tune: "full" or "lora".
        locked: so many lower layers of each tower stay as they are, with what lies below them.
        lora: the adapters.
        checkpointing: compute the inside of layers twice instead of keeping it: less memory, a third more time.
    """

    def __init__(
        self, inputs: TowerInputs, tune: Tune, *, locked: int = 0, lora: LoRA | None = None, checkpointing: bool = False
    ) -> None:
        super().__init__()
        self.inputs = inputs
        both = inputs.pictures is inputs.words
        first = inputs.pictures.load_network()
        networks = [first] if both else [first, inputs.words.load_network()]
        for network in networks:
            _learn(network, locked)
            if checkpointing:
                network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if tune == "lora":
            networks = [_adapted(network, lora or LoRA(), inputs.name, locked) for network in networks]
        self.networks = nn.ModuleList(networks)

    @property
    def widths(self) -> tuple[int, int]:
        """D of pictures and of texts."""
        return self.inputs.pictures.images["vector"][0], self.inputs.words.texts["vector"][0]

    def see(self, pixels: Tensor) -> Tensor:
        """Prepared pictures (B, F), each laid out flat -> (B, D)."""
        seen = self.inputs.pictures.see(_bare(self.networks[0]), pixels.reshape(-1, *self.inputs.shape))
        vectors: Tensor = seen.pooler_output
        return vectors

    def read(self, pieces: Tensor, mask: Tensor) -> Tensor:
        """Ids of pieces (B, L), mask (B, L), real ones first -> (B, D)."""
        words = with_marks(pieces, mask, *self.inputs.marks, self.inputs.padding)
        encoder = self.inputs.words
        if encoder.fills_with_padding:
            missing = encoder.most_tokens - words["input_ids"].shape[1]
            filled = nn.functional.pad(words["input_ids"], (0, missing), value=self.inputs.padding)
            if encoder.tokenizer.padding_side == "left":
                places = torch.arange(filled.shape[1], device=filled.device) + words["attention_mask"].sum(1)[:, None]
                filled = filled.gather(1, places % filled.shape[1])
            words["input_ids"] = filled
        return self.read_words(words)

    def read_words(self, words: Mapping[str, Tensor]) -> Tensor:
        """What the tokenizer makes of texts, by its names, (B, L) each -> (B, D)."""
        return self.inputs.words.read(_bare(self.networks[-1]), words)[0]

    def rates(self, decay: float) -> dict[str, float]:
        """The learning rate of each parameter relative to the uppermost layer's: `decay` times less a layer below."""
        depths = {name: _depth(name) for name, parameter in self.named_parameters() if parameter.requires_grad}
        top: dict[tuple[str, bool], int] = {}
        for name, depth in depths.items():
            if depth is not None:
                side = _side(name)
                top[side] = max(top.get(side, 0), depth)
        relative = {}
        for name, depth in depths.items():
            highest = top.get(_side(name), 0)
            below = highest + 1 if "embed" in name and depth is None else 0 if depth is None else highest - depth
            relative[name] = decay**below
        return relative

    def merged(self) -> list[Any]:
        """The networks as their library has them: adapters added to the weights they adapt. These are not copies."""
        networks: list[Any] = list(self.networks)
        merged = [n.merge_and_unload() if hasattr(n, "merge_and_unload") else n for n in networks]
        return [network.eval() for network in merged]


def with_marks(pieces: Tensor, mask: Tensor, before: list[int], after: list[int], padding: int) -> dict[str, Tensor]:
    """Pieces (B, L) between the marks of both ends: input_ids and attention_mask (B, L + marks)."""
    count, length = pieces.shape
    width = len(before) + length + len(after)
    ends = mask.sum(1) + len(before)
    ids = pieces.new_full((count, width), padding)
    ids[:, : len(before)] = pieces.new_tensor(before)
    ids[:, len(before) : len(before) + length] = torch.where(mask, pieces, padding)
    rows = torch.arange(count, device=pieces.device)
    for k, mark in enumerate(after):
        ids[rows, ends + k] = mark
    real = torch.arange(width, device=pieces.device) < (ends + len(after))[:, None]
    return {"input_ids": ids, "attention_mask": real.long()}


def _learn(network: Any, locked: int) -> None:
    """Everything learns but the lowest layers and what lies below them."""
    network.requires_grad_(True)
    if not locked:
        return
    layers = {depth for name, _ in network.named_parameters() if (depth := _depth(name)) is not None}
    if locked > len(layers):
        raise InputError(f"model.locked={locked} locks more layers than the towers have, {len(layers)}; lower it")
    for name, parameter in network.named_parameters():
        depth = _depth(name)
        if (depth is None and "embed" in name) or (depth is not None and depth < locked):
            parameter.requires_grad_(False)


def _adapted(network: Any, lora: LoRA, name: str, locked: int) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise InputError("tune=lora needs the extra 'tune': pip install 'mispair[tune]'") from None
    linear = {path: path.rsplit(".", 1)[-1] for path, part in network.named_modules() if isinstance(part, nn.Linear)}
    wanted = list(lora.targets) or [kind for kind in _USUAL if kind in linear.values()]
    for target in wanted:
        if not any(path == target or path.endswith(f".{target}") for path in linear):
            there = ", ".join(sorted(set(linear.values())))
            raise InputError(f"model.lora.targets: the encoder '{name}' has no linear layer '{target}'; it has {there}")
    chosen = [
        path
        for path in linear
        if any(path == target or path.endswith(f".{target}") for target in wanted) and (_depth(path) or 0) >= locked
    ]
    values = LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=chosen, bias="none"
    )
    return get_peft_model(network, values)


def _bare(network: Any) -> Any:
    """The library's model, whose layers hold the adapters, without the wrapper around it."""
    return network.base_model.model if hasattr(network, "peft_config") else network


def _depth(name: str) -> int | None:
    match = _LAYER.search(f"{name}.")
    return int(match[1]) if match else None


def _side(name: str) -> tuple[str, bool]:
    """Which tower a parameter of `networks` belongs to."""
    return name.split(".")[1], "vision" in name
