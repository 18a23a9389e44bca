"""What every method carries: its configuration, facts and presets, one constructor, and what others may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mispair.functional.mixture_families import Family
from mispair.methods.about import About
from mispair.protocols import Rematcher, Run
from mispair.retrieval_module import RetrievalModule
from mispair.section import Section
from mispair.types import Encoded


class MethodConfig(Section):
    """Values of one method. A method that warms up has the field `warmup_epochs`."""

    name: str

    @property
    def warmup(self) -> int:
        """Epochs before the method does what it is for; 0 without a warm-up."""
        return int(getattr(self, "warmup_epochs", 0))

    @property
    def mixture_family(self) -> Family:
        """The mixture that the page of a run fits to the recorded `signal`: the one the method split by."""
        return "beta"

    @property
    def signal_name(self) -> str:
        """What the recorded `signal` is a loss of, for the heading of its figure."""
        return "per pair"


C = TypeVar("C", bound=MethodConfig)


class MethodBase(Generic[C]):
    """The part of a method that is the same for most of them; see `mispair.protocols.Method` for the contract.

    A subclass sets `Config`, `about` and `presets` and writes `epoch`. Every method is made in the same way: from its
    configuration, a function that makes a fresh network, and the batch size.
    """

    Config: ClassVar[type[MethodConfig]]
    about: ClassVar[About]
    presets: ClassVar[Mapping[str, Callable[[], MethodConfig]]] = {}  # named variants, beside the defaults
    network_names: ClassVar[tuple[str, ...]] = ("net",)
    takes_known: ClassVar[bool] = False  # whether it tells pairs apart, and heeds what `Run.known` says of them

    def __init__(self, config: C, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        self.config, self.make_network, self.batch_size = config, make_network, batch_size
        self.networks: Mapping[str, RetrievalModule] = {name: make_network() for name in self.network_names}
        self.modules: Mapping[str, nn.Module] = dict(self.networks)
        self.rate_scale: Mapping[str, float] = {}
        self.teacher = 0.0

    @property
    def net(self) -> RetrievalModule:
        """The only network, or the first."""
        return self.networks[self.network_names[0]]

    @property
    def device(self) -> torch.device:
        """Where the networks live: what a step looks up by pair id lies there too, or every step waits for a copy."""
        return next(self.net.parameters()).device

    def epoch(self, epoch: int, run: Run) -> None:
        raise NotImplementedError

    def rematcher(self) -> Rematcher | None:
        return None

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        pass


def weighed(run: Run, losses: Tensor, ids: Tensor) -> Tensor:
    """Losses (n,) of the pairs `ids` (n,), each as much as its pair counts; as they are where no weights are given."""
    return losses if run.weights is None else losses * run.weights[ids]


def scores_of(net: RetrievalModule, images: Encoded, texts: Encoded, *, sparse: bool = False) -> Tensor:
    """Scores of every image against every text, (n, m) in full precision; `sparse` for hardest negatives."""
    return net.link(net.similarity(images, texts, sparse=sparse)).float()


def mean_vectors(items: Encoded) -> Tensor:
    """One unit vector per item, the direction of the mean of its real parts, (N, T, D) -> (N, D)."""
    weight = items.mask.to(items.values.dtype)
    return normalize(torch.bmm(weight[:, None], items.values)[:, 0], dim=-1)
