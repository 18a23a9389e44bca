"""The pieces of the iterations, each against the equation it solves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from mispair.functional.sinkhorn import _everywhere, _fill, _level, _rebalance


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_the_dummy_takes_what_must_not_move(share, spread):
    generator = torch.Generator().manual_seed(0)
    reach = spread * torch.randn(3, 41, dtype=torch.float64, generator=generator)
    p = torch.rand(3, 41, dtype=torch.float64, generator=generator) + 0.1
    rho = share * p.sum(-1, keepdim=True)
    found = _level(reach, p, rho)
    assert found.shape == (3, 1)
    low, high = torch.full_like(found, -50), torch.full_like(found, 50)
    for _ in range(60):  # what moves falls with the level: bisect
        middle = (low + high) / 2
        moves_too_much = (p * torch.sigmoid(reach - middle)).sum(-1, keepdim=True) > rho
        low, high = torch.where(moves_too_much, middle, low), torch.where(moves_too_much, high, middle)
    width = reach.amax(-1, keepdim=True) - reach.amin(-1, keepdim=True)
    assert ((found - low).abs() < width / 16).all(), "within one cell of the bracket"


def test_rebalancing_moves_what_shall_move():
    generator = torch.Generator().manual_seed(0)
    real, slack, p = (torch.rand(2, 17, dtype=torch.float64, generator=generator) + 0.1 for _ in range(3))
    rho, t = 0.4 * p.sum(-1, keepdim=True), torch.ones(2, 1, dtype=torch.float64)
    for _ in range(4):
        t = _rebalance(real, slack, p, rho, t)
    assert torch.allclose((p * real / (real + t * slack)).sum(-1, keepdim=True), rho, rtol=1e-6)


def test_rows_are_filled_in_proportion_and_never_beyond():
    generator = torch.Generator().manual_seed(0)
    open_mass, p = (torch.rand(2, 17, dtype=torch.float64, generator=generator) for _ in range(2))
    for share in (0.1, 0.5, 0.99):
        rho = share * p.sum(-1, keepdim=True)
        held = torch.minimum(_fill(open_mass, p, rho) * open_mass, p)
        assert torch.allclose(held.sum(-1, keepdim=True), rho)


def test_an_accelerator_is_asked_every_eighth_time():
    """A look waits for the device; a processor is asked always."""

    def done(device, everywhere=True):
        return SimpleNamespace(device=SimpleNamespace(type=device), all=lambda: torch.tensor(everywhere))

    assert [look for look in range(1, 25) if _everywhere(done("cuda"), look)] == [8, 16, 24]
    assert all(_everywhere(done("cpu"), look) for look in range(1, 9))
    assert not any(_everywhere(done(device, False), 8) for device in ("cuda", "cpu"))
