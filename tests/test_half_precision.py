"""bfloat16 where its units are announced and deadly."""

import subprocess
from pathlib import Path

import pytest
import torch

from mispair import half_precision
from mispair.half_precision import bfloat16, products_die, safe_products


@pytest.fixture
def processor(monkeypatch):
    """A processor that announces `flags`; the product tried on it ends with `code`."""
    tried = []

    def be(flags: str, code: int) -> list[object]:
        products_die.cache_clear()
        monkeypatch.setattr(Path, "read_text", lambda self: flags)
        ended = subprocess.CompletedProcess([], code)
        monkeypatch.setattr(half_precision.subprocess, "run", lambda *a, **k: tried.append(a) or ended)
        return tried

    yield be
    products_die.cache_clear()


@pytest.mark.parametrize(
    ("flags", "code", "dies"), [("avx2", -4, False), ("amx_tile", -4, True), ("amx_tile", 0, False)]
)
def test_only_what_is_announced_is_tried_and_only_death_counts(processor, flags, code, dies):
    tried = processor(flags, code)
    assert products_die() is dies
    assert products_die() is dies
    assert len(tried) == (flags == "amx_tile")  # once, however often it is asked


def test_a_deadly_way_is_left_inside_and_taken_again_outside(processor):
    processor("amx_tile", -4)
    usual = torch.backends.mkldnn.enabled
    with safe_products("cpu"):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled == usual
    with safe_products("cuda"):  # has units of its own
        assert torch.backends.mkldnn.enabled == usual


def test_products_are_bfloat16_on_this_machine():
    with bfloat16("cpu"):
        assert torch.nn.functional.linear(torch.ones(2, 3, 8), torch.ones(4, 8)).dtype == torch.bfloat16
