"""The methods there are: those built in, and those other packages bring (entry points in `mispair.methods`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mispair.errors import InputError
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig
from mispair.methods.bicro import BiCro
from mispair.methods.crcl import CRCL
from mispair.methods.decl import DECL
from mispair.methods.gsc import GSC
from mispair.methods.in2r import IN2R
from mispair.methods.l2rm.method import L2RM
from mispair.methods.ncr import NCR
from mispair.methods.pc2 import PC2
from mispair.methods.plain import Plain
from mispair.methods.rcl import RCL
from mispair.protocols import Method
from mispair.registry import Registry, nearest
from mispair.retrieval_module import RetrievalModule

M = TypeVar("M", bound=type[MethodBase[Any]])

METHODS: Registry[MethodBase[Any]] = Registry(
    "method", MethodBase, MethodConfig, (Plain, L2RM, NCR, BiCro, DECL, RCL, GSC, CRCL, PC2, IN2R), {"about": About}
)


def register_method(cls: M) -> M:
    """Make a method known by the name in its `Config`; works as a decorator. Raises InputError if it cannot be one."""
    METHODS.register(cls)
    return cls


def method_names() -> list[str]:
    """Names of the methods, built-in ones first."""
    return METHODS.names()


def about_method(name: str) -> About:
    """What a person should know about the method of that name."""
    return METHODS.find(name).about


def method_presets() -> dict[str, Callable[[], MethodConfig]]:
    """What `--method` takes: each method by its name, and its named variants; without packages that fail."""
    return _presets(METHODS.everybody()[0])


def method_preset(name: str) -> MethodConfig:
    """The configuration `--method NAME` starts from. Raises InputError with the nearest name."""
    presets = _presets(METHODS.loaded())
    if name not in presets and name in METHODS.names():
        return METHODS.find(name).Config(name=name)
    if name not in presets:
        presets = method_presets()
    if name not in presets:
        raise InputError(f"there is no method {name!r}; {nearest(name, presets)}")
    return presets[name]()


def _presets(classes: dict[str, type[MethodBase[Any]]]) -> dict[str, Callable[[], MethodConfig]]:
    named: dict[str, Callable[[], MethodConfig]] = {}
    for name, cls in classes.items():
        named |= {name: cls.Config, **cls.presets}
    return named


def build_method(config: MethodConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> Method:
    """The method around as many fresh networks as it trains."""
    return METHODS.find(config.name)(config, make_network, batch_size)
