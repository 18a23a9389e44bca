"""The networks of the best epoch, read back from a run folder."""

from __future__ import annotations

import json
from collections.abc import Callable

import torch
from pydantic import ValidationError
from torch import Tensor

from mispair.config.schema import RunConfig
from mispair.errors import InputError
from mispair.models import InputSizes
from mispair.protocols import RetrievalModel
from mispair.retrieval_module import RetrievalModule
from mispair.runtime.checkpoint import load_model
from mispair.runtime.run_folder import RunFolder
from mispair.workflows.assemble import Training
from mispair.workflows.networks import Network, OneNetwork, network_maker, tower_fingerprint
from mispair.workflows.refuse_unfit import refuse_oversized


def best_models(training: Training) -> list[RetrievalModel]:
    """The networks of the best epoch of a training that has ended, on its device."""
    states, _ = load_model(training.folder.model_file)
    return _filled(training.make, states, training.folder, training.trainer.engine.device)


def load_models(
    folder: RunFolder, config: RunConfig, network: Network | None = None, device: torch.device | None = None
) -> tuple[list[RetrievalModel], dict[str, str]]:
    """The networks that score, in evaluation mode, and what their file says of itself."""
    states, about = load_model(folder.model_file)
    try:
        sizes = InputSizes.model_validate(json.loads(about["sizes"]))
    except (ValueError, KeyError, RecursionError, ValidationError):
        raise InputError(
            f"{folder.model_file} does not say what it was made for; train again or copy it anew"
        ) from None
    if (
        "towers" in about
        and config.data.encoder is not None
        and about["towers"] != tower_fingerprint(config.data.encoder)
    ):
        raise InputError(
            f"{folder.model_file} was trained on other towers than '{config.data.encoder}' has now: its weights or"
            " preparation changed since; bring back those of that time (data.encoder with @ and the revision)"
        )
    held = max(sum(value.numel() for value in state.values()) for state in states.values())
    refuse_oversized(config, sizes, held, folder.model_file)
    maker = network_maker(config, sizes, network)
    if isinstance(maker, OneNetwork):
        maker.training = True
    return _filled(maker, states, folder, device or torch.device("cpu")), about


def _filled(
    make: Callable[[], RetrievalModule], states: dict[str, dict[str, Tensor]], folder: RunFolder, device: torch.device
) -> list[RetrievalModel]:
    models: list[RetrievalModel] = []
    for state in states.values():
        model = make()
        try:
            model.load_state_dict(state)
        except InputError as error:
            raise InputError(f"{folder.model_file}: {error}") from None
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise InputError(f"{folder.model_file} does not fit {type(model).__name__}: {reason}") from None
        models.append(model.to(device).eval())
    return models
