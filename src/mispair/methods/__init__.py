"""One paper per file. A method is added here: one entry each in MethodConfig, METHODS and PRESETS."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

from pydantic import Field
from torch import nn

from mispair.methods.about import About
from mispair.methods.bicro import BiCro, BiCroConfig
from mispair.methods.crcl import CRCL, CRCLConfig
from mispair.methods.decl import DECL, DECLConfig
from mispair.methods.gsc import GSC, GSCConfig
from mispair.methods.l2rm import L2RM, L2RMConfig
from mispair.methods.ncr import NCR, NCRConfig
from mispair.methods.plain import Plain, PlainConfig
from mispair.methods.rcl import RCL, RCLConfig
from mispair.protocols import Method
from mispair.section import Section

MethodConfig = Annotated[
    PlainConfig | L2RMConfig | NCRConfig | DECLConfig | BiCroConfig | RCLConfig | GSCConfig | CRCLConfig,
    Field(discriminator="name"),
]

# name -> constructor from its configuration, a maker of fresh networks, and the batch size
METHODS: dict[str, Callable[[Any, Callable[[], nn.Module], int], Method]] = {
    "plain": lambda config, make, batch_size: Plain(config, make()),
    "l2rm": lambda config, make, batch_size: L2RM(config, make(), batch_size),
    "ncr": lambda config, make, batch_size: NCR(config, make(), make(), batch_size),
    "bicro": lambda config, make, batch_size: BiCro(config, make(), make(), batch_size),
    "decl": lambda config, make, batch_size: DECL(config, make()),
    "rcl": lambda config, make, batch_size: RCL(config, make()),
    "gsc": lambda config, make, batch_size: GSC(config, make()),
    "crcl": lambda config, make, batch_size: CRCL(config, make),
}

# What `--method` takes: a method by name, or one of its published variants.
PRESETS: dict[str, Callable[[], Section]] = {
    "plain": PlainConfig,
    "l2rm": L2RMConfig,
    "l2rm-paper": L2RMConfig.paper,
    "l2rm-official": L2RMConfig.official,
    "ncr": NCRConfig,
    "bicro": BiCroConfig,
    "decl": DECLConfig,
    "rcl": RCLConfig,
    "gsc": GSCConfig,
    "crcl": CRCLConfig,
}


def build_method(config: MethodConfig, make_network: Callable[[], nn.Module], batch_size: int) -> Method:
    """The method around as many fresh networks as it trains."""
    return METHODS[config.name](config, make_network, batch_size)


def about(name: str) -> About:
    """The facts a method's file states as `ABOUT`; the file has the method's name."""
    facts = import_module(f"mispair.methods.{name}").ABOUT
    assert isinstance(facts, About)
    return facts
