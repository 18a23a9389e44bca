"""The values of the methods' configurations: published defaults, and the first value on either side of every border."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mispair.methods.bicro import BiCroConfig
from mispair.methods.crcl import CRCLConfig
from mispair.methods.decl import DECLConfig
from mispair.methods.gsc import GSCConfig
from mispair.methods.in2r import IN2RConfig
from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.ncr import NCRConfig
from mispair.methods.pc2 import PC2Config
from mispair.methods.plain import PlainConfig
from mispair.methods.rcl import RCLConfig

TINY = 1e-6


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (BiCroConfig, {"warmup_share": 0.3, "label_above": 0.5, "margin": 0.2}),
        (CRCLConfig, {"temperature": 0.05, "negative_weight": 5.0, "memory": 0.8, "floor": 0.1}),
        (DECLConfig, {"temperature": 0.1, "kl_weight": 0.1, "ranking_weight": 0.8, "margin": 0.2}),
        (GSCConfig, {"temperature": 0.07, "structure_weight": 0.01, "renewal": 0.7}),
        (IN2RConfig, {"intra_margin": 0.3, "queue": 65_536, "temperature": 0.05, "prototype_weight": 0.5}),
        (PC2Config, {"warmup_share": 0.5, "classes": 128, "entropy_weight": 1.0}),
        (PlainConfig, {"loss": "triplet", "margin": 0.2, "warmup_epochs": 0}),
        (RCLConfig, {"loss": "log", "temperature": 0.05, "ratio": 1.0, "q": 0.5}),
    ],
)
def test_defaults_are_the_published_constants(config, published):
    found = config().model_dump()
    assert {name: found[name] for name in published} == published


@pytest.mark.parametrize(
    ("config", "field", "inside", "outside"),
    [
        (BiCroConfig, "warmup_share", 1.0, 1.0 + TINY),
        (BiCroConfig, "warmup_share", TINY, 0.0),
        (CRCLConfig, "warmup_epochs", 1, 0),
        (CRCLConfig, "temperature", TINY, 0.0),
        (CRCLConfig, "negative_weight", 0.0, -TINY),
        (CRCLConfig, "memory", 1.0 - TINY, 1.0),
        (CRCLConfig, "floor", 0.0, -TINY),
        (DECLConfig, "warmup_epochs", 0, -1),
        (DECLConfig, "hardest", 1, 0),
        (GSCConfig, "renewal", 1.0, 1.0 + TINY),
        (IN2RConfig, "warmup_epochs", 1, 0),
        (IN2RConfig, "queue", 1, 0),
        (IN2RConfig, "temperature", TINY, 0.0),
        (L2RMConfig, "warmup_epochs", 1, 0),
        (L2RMConfig, "temperature", TINY, 0.0),
        (L2RMConfig, "rematch_weight", 0.0, -TINY),
        (NCRConfig, "warmup_epochs", 1, 0),
        (NCRConfig, "margin", TINY, 0.0),
        (PC2Config, "warmup_share", 1.0, 1.0 + TINY),
        (PC2Config, "classes", 2, 1),
        (PlainConfig, "warmup_epochs", 0, -1),
        (RCLConfig, "ratio", 1.0, 1.0 + TINY),
        (RCLConfig, "q", 1.0, 1.0 + TINY),
    ],
)
def test_a_value_beyond_the_border_is_refused(config, field, inside, outside):
    assert getattr(config(**{field: inside}), field) == inside
    with pytest.raises(ValidationError, match=field):
        config(**{field: outside})
