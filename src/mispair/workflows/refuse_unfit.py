"""Whether a configuration can be trained on this data and machine at all: asked before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import torch

from mispair.config.schema import RunConfig
from mispair.data import PairData
from mispair.data.source import FEWEST
from mispair.errors import InputError
from mispair.memory import refuse_beyond_memory
from mispair.methods import about_method, method_preset
from mispair.models import InputSizes, build_model, model_preset
from mispair.models.own import OwnConfig
from mispair.models.sgr import SGRConfig
from mispair.runtime.run_folder import CONFIG

TUNES = ("head", "lora", "full")
_USUAL = 4096  # sizes up to this fit anywhere; counting weights takes a second the first time
_USUAL_SIZE = 20_000  # of a finished run, words included
_COPIES = 4  # of every weight while training: itself, its gradient, and the two moments of Adam


def refuse_unknown(method: object, model: object, tune: str | None) -> None:
    """Raise InputError for names that mean nothing: asked before hours of encoding, not after them."""
    if isinstance(method, str):
        method_preset(method)
    if isinstance(model, str):
        name, _, size = model.partition(":")
        model_preset(name, size or "small")
        if tune is not None and name != "dual":
            raise InputError(f"--tune is for the model dual, and --model says {name}; leave one of them out")
    if tune not in (None, *TUNES):
        raise InputError(f"--tune is one of {', '.join(TUNES)}, got {tune!r}")


def refuse_unfit(config: RunConfig, data: PairData, sizes: InputSizes, device: torch.device) -> None:
    """Raise InputError for too few pairs, pairs that all count nothing, a shortlist that comes too late, or networks
    that do not fit into memory."""
    _refuse_late(config)
    if len(data) < FEWEST:
        raise InputError(
            f"{data.name} has {len(data)} pairs to train on; matched and mismatched ones cannot be told apart in fewer "
            f"than {FEWEST}"
        )
    if data.table.weights is not None and not data.table.weights.any():
        raise InputError(
            f"the weights {config.data.weights!r} of all {len(data)} training pairs are 0, so nothing would be learned;"
            " give some pairs a weight above 0, or leave --weights out"
        )
    values = config.model.model_dump().values()
    if isinstance(config.model, OwnConfig) or max((v for v in values if type(v) is int), default=0) <= _USUAL:
        return
    weights = count_weights(config, sizes)
    networks = about_method(config.method.name).networks
    if device.type == "cpu":
        refuse_beyond_memory(
            weights * networks * _COPIES * 4,
            f"training {networks if networks > 1 else 'a'} {config.model.name} of {weights:,} weights",
            "choose a smaller model: --model vse:small, or lower model.embed",
        )


def _refuse_late(config: RunConfig) -> None:
    """Epochs that compare means leave some to the full model, and a method does not judge by it while it is new."""
    if not isinstance(config.model, SGRConfig) or not config.model.shortlist:
        return
    after, epochs, warmup = config.model.shortlist_after, config.train.epochs, config.method.warmup
    if after >= epochs:
        raise InputError(
            f"model.shortlist_after={after} leaves nothing of train.epochs={epochs} to the full model; lower the one or"
            " raise the other"
        )
    if 0 < warmup <= after:
        raise InputError(
            f"method.warmup_epochs={warmup} ends before the full model has learned anything, since it begins after"
            f" model.shortlist_after={after} epochs; raise the one or lower the other"
        )


def refuse_oversized(config: RunConfig, sizes: InputSizes, held: int, file: Path) -> None:
    """Raise InputError where the networks of a run, made as its files say, would be far larger than the `held` weights
    in `file`: damage to a number could fill the memory."""
    asked = [*config.model.model_dump().values(), *sizes.model_dump().values()]
    if isinstance(config.model, OwnConfig) or max((v for v in asked if type(v) is int), default=0) <= _USUAL_SIZE:
        return
    try:
        weights = count_weights(config, sizes)
    except InputError:  # more than can be counted
        weights = None
    if weights is None or weights > 2 * held + _USUAL_SIZE:
        shown = "far more" if weights is None else f"{weights:,}"
        raise InputError(
            f"{file} holds {held:,} weights, where a {config.model.name} of the sizes that it and {CONFIG} name has"
            f" {shown}; train again or copy the run anew"
        )


def count_weights(config: RunConfig, sizes: InputSizes) -> int:
    """Of one network, made where nothing is allocated; the generators are left as they were."""
    before = torch.get_rng_state()
    try:
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in build_model(config.model, sizes).parameters())
    except InputError:
        raise
    except (RuntimeError, OverflowError, TypeError, ValueError):  # more than torch can count
        raise InputError(
            f"a {config.model.name} of these sizes is too large for any memory; lower model.embed"
        ) from None
    finally:
        torch.set_rng_state(before)
