"""Who makes the networks of a run: the model its configuration names, or a network of the user's own."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from mispair.config.schema import RunConfig
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.models import InputSizes, build_model
from mispair.models.dual import DualConfig
from mispair.models.own import OwnConfig
from mispair.retrieval_module import RetrievalModule
from mispair.section import Section
from mispair.types import Encoded

# A network that keeps `mispair.protocols.RetrievalModel`, or a function (a class) that makes one from the input sizes.
Network = nn.Module | Callable[[InputSizes], nn.Module]

_PROMISED = ("encode_images", "encode_texts", "similarity", "paired", "link", "pool_images", "pool_texts")


def network_maker(
    config: RunConfig, sizes: InputSizes, network: Network | None = None
) -> Callable[[], RetrievalModule]:
    """A function that makes one fresh network each time it is called."""
    own = config.model if isinstance(config.model, OwnConfig) else None
    if network is None:
        if own is not None:
            raise InputError(
                f"this run has a network of its own ({own.describes or 'unnamed'}); give it from Python: "
                "mispair.load(run, model=...), or mispair.train(resume=run, model=...)"
            )
        model = config.model
        if isinstance(model, DualConfig) and model.encoder is None:
            model = model.model_copy(update={"encoder": config.data.encoder})
        return lambda: build_model(model, sizes)
    if own is None:
        raise InputError(f"the configuration names the model {config.model.name}; leave the network out")
    if isinstance(network, nn.Module):
        return OneNetwork(_as_retrieval_module(network))
    make = network
    return lambda: _as_retrieval_module(make(sizes))


def tower_fingerprint(encoder: str) -> str:
    """Of weights and preparation of an encoder, which towers that learn start from."""
    return open_encoder(encoder, device="cpu", precision="float32").fingerprint


def try_towers(config: RunConfig) -> None:
    """Make the towers of a run once: what is wrong with them is said before all of its pictures are decoded."""
    from mispair.encoders.tower_inputs import TowerInputs

    assert config.data.encoder is not None
    inputs = TowerInputs(config.data.encoder)
    network_maker(config, InputSizes(image_width=math.prod(inputs.shape), vocabulary_size=inputs.pieces))()


class OneNetwork:
    """A network given as it is: there is one. Once training has begun, a copy of how it started can be had."""

    def __init__(self, network: RetrievalModule) -> None:
        self._network: RetrievalModule | None = network
        self._start = copy.deepcopy(network)
        self.training = False

    def __call__(self) -> RetrievalModule:
        if self._network is not None:
            network, self._network = self._network, None
            return network
        if not self.training:  # two that teach each other must not start alike
            raise InputError("this method trains several networks: give a function that makes one, or the class itself")
        return copy.deepcopy(self._start)


class _Wrapped(RetrievalModule):
    """A network that keeps `RetrievalModel` without deriving from our base."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def encode_images(self, images: Tensor, mask: Tensor) -> Encoded:
        encoded: Encoded = self.inner.encode_images(images, mask)
        return encoded

    def encode_texts(self, texts: Tensor, mask: Tensor) -> Encoded:
        encoded: Encoded = self.inner.encode_texts(texts, mask)
        return encoded

    def similarity(self, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
        logits: Tensor = self.inner.similarity(images, texts, sparse=sparse)
        return logits

    def paired(self, images: Encoded, texts: Encoded, rows: Tensor, cols: Tensor) -> Tensor:
        logits: Tensor = self.inner.paired(images, texts, rows, cols)
        return logits

    def link(self, logits: Tensor) -> Tensor:
        scores: Tensor = self.inner.link(logits)
        return scores

    def pool_images(self, images: Encoded) -> Tensor:
        vectors: Tensor = self.inner.pool_images(images)
        return vectors

    def pool_texts(self, texts: Encoded) -> Tensor:
        vectors: Tensor = self.inner.pool_texts(texts)
        return vectors


def as_network(model: object) -> Network | None:
    """`model` where it is a network or makes one; None where it is a name or a configuration."""
    if isinstance(model, nn.Module) or (callable(model) and not isinstance(model, (str, Section))):
        return model
    return None


def describe(network: Network) -> str:
    """The name to remember a network by."""
    kind = type(network) if isinstance(network, nn.Module) else network
    return str(getattr(kind, "__qualname__", type(kind).__qualname__))


def _as_retrieval_module(network: object) -> RetrievalModule:
    if isinstance(network, RetrievalModule):
        return network
    if not isinstance(network, nn.Module):
        raise InputError(f"model must make a torch.nn.Module, got {type(network).__name__}")
    lacking = [name for name in _PROMISED if not callable(getattr(network, name, None))]
    if lacking:
        raise InputError(
            f"{type(network).__name__} lacks {', '.join(lacking)}; a model keeps mispair.protocols.RetrievalModel, "
            "best by deriving from mispair.retrieval_module.RetrievalModule"
        )
    return _Wrapped(network)
