"""The iterations behind `partial_transport`: three ways to the potentials of a plan exp(f_i + g_j - C_ij / λ).

Each takes log_kernel = -C / λ (b, n, m) with -inf where forbidden (`extended` a `Kernel`, which may hold the allowed
cells only), rho (b,), p (b, n), q (b, m), and gives f (b, n), g (b, m), done (b,), rounds (b,). For one problem all of
them come without the b. Nothing here waits for a device
but the look whether all problems are done, rarely on an accelerator; problems that are done stand still.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from mispair.device_to_host import to_host

_ROUNDS = 8  # per block; potentials are absorbed, and convergence is looked at, once per block
TINY = 1e-300  # stands for a mass of 0 while iterating, so that no logarithm or quotient is undefined
_ASK_EVERY = 8  # an accelerator is asked after every so many blocks or rounds whether it is done
_HUGE = 1e150  # a scaling factor this large is absorbed at the end of its block and grows on in the next

Solution = tuple[Tensor, Tensor, Tensor, Tensor]
_State = tuple[Tensor, ...]  # potentials, each (b, .): what a block starts from and leaves
_Apply = Callable[[Tensor], Tensor]


class Kernel(Protocol):
    """What the rounds ask of exp(log_kernel), however it is kept."""

    def reach_of_rows(self) -> Tensor:
        """(b, n): the logarithm of each row's sum."""

    def reach_of_cols(self, f: Tensor) -> Tensor:
        """(b, m): the logarithm of each column's sum, its rows multiplied by exp(f), f (b, n)."""

    def absorb(self, f: Tensor, g: Tensor) -> tuple[_Apply, _Apply]:
        """The plan of these potentials as two products: with v (b, m) to (b, n), its transpose with a (b, n)."""


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """Every cell, log_kernel (b, n, m)."""

    log_kernel: Tensor

    def reach_of_rows(self) -> Tensor:
        return torch.logsumexp(self.log_kernel, -1)

    def reach_of_cols(self, f: Tensor) -> Tensor:
        return torch.logsumexp(self.log_kernel + f.unsqueeze(-1), -2)

    def absorb(self, f: Tensor, g: Tensor) -> tuple[_Apply, _Apply]:
        k, kt = _absorb(self.log_kernel, f, g)
        return lambda v: _apply(k, kt, v), lambda a: _apply(kt, k, a)


def extended(kernel: Kernel, rho: Tensor, p: Tensor, q: Tensor, tol: float, max_iter: int) -> Solution:
    """Sinkhorn on the extended problem of Appendix A, without writing the dummies into the matrix.

    The dummy cost ξ only shifts the two dummy potentials, so it is 0 here; the corner, which the appendix makes
    expensive (2ξ + A), is left out, so that the mass is exactly ρ. What remains of the dummies is one number each:
    σ for the dummy row, τ for the dummy column. Three things make this fast: τ is solved for together with the rows
    and σ with the columns (alternating over all four blocks crawls, because all slack flows through the dummies),
    rounds are two matrix-vector products (potentials are absorbed once per block, so nothing overflows), and later
    blocks over-relax by the rate seen.
    """
    rho = rho.unsqueeze(-1)
    counted = torch.where(p > 0, p, math.inf)  # an empty row has no error
    p, q = p.clamp(min=TINY), q.clamp(min=TINY)
    reach = kernel.reach_of_rows()
    tau = _level(reach, p, rho)
    f = p.log() - torch.logaddexp(reach, tau)
    reach = kernel.reach_of_cols(f)
    sigma = _level(reach, q, rho)
    g = q.log() - torch.logaddexp(reach, sigma)

    def block(state: _State, over: Tensor | None) -> tuple[_State, Tensor]:
        f, g, tau, sigma = state
        to_rows, to_cols = kernel.absorb(f, g)
        row_slack, col_slack = torch.exp(f + tau), torch.exp(g + sigma)
        a, v, t, s = torch.ones_like(p), torch.ones_like(q), torch.ones_like(tau), torch.ones_like(sigma)
        for index in range(_ROUNDS):
            last = index == _ROUNDS - 1
            real = to_rows(v)
            if last or index % 4 == 0:  # as good as every round, and half the price
                t = _rebalance(real, row_slack, p, rho, t)
            step = (p / torch.addcmul(real, row_slack, t)).clamp_(max=_HUGE)
            a = step if last or over is None else step * (step / a) ** over
            real = to_cols(a)
            if last or index % 4 == 0:
                s = _rebalance(real, col_slack, q, rho, s)
            step = (q / torch.addcmul(real, col_slack, s)).clamp_(max=_HUGE)
            v = step if last or over is None else step * (step / v) ** over
        # The columns are exact now; the rows and the mass carry the error.
        row_error = ((a * torch.addcmul(to_rows(v), row_slack, t) - p).abs() / counted).amax(-1)
        mass_error = ((v * real).sum(-1, keepdim=True) / rho - 1).abs().squeeze(-1)
        moved = (f + a.log(), g + v.log(), tau + t.log(), sigma + s.log())
        return moved, torch.maximum(row_error, mass_error)

    (f, g, *_), done, rounds = _iterate((f, g, tau, sigma), block, tol, max_iter)
    return f, g, done, rounds


def plan_only(log_kernel: Tensor, rho: Tensor, p: Tensor, q: Tensor, tol: float, max_iter: int) -> Solution:
    """Block ascent on the dual of Eq. 9: plan = exp(f_i + g_j + h - C_ij / λ), where f, g <= 0 bind full masses.

    The rows (f) and the mass (h) are solved for together, then the columns (g) and the mass.
    """
    rho = rho.unsqueeze(-1)
    filled, counted = (p > 0).to(p), torch.where(p > 0, p, math.inf)  # an empty row has no error
    p, q = p.clamp(min=TINY), q.clamp(min=TINY)
    h = rho.log() - torch.logsumexp(log_kernel, (-1, -2)).unsqueeze(-1)

    def block(state: _State, over: Tensor | None) -> tuple[_State, Tensor]:
        f, g, h = state
        k, kt = _absorb(log_kernel, f, g + h)
        a_max, v_max = torch.exp(-f).clamp_(max=_HUGE), torch.exp(-g).clamp_(max=_HUGE)
        v = torch.ones_like(q)
        for _ in range(_ROUNDS):
            real = _apply(k, kt, v)
            s = _fill(real * a_max, p, rho)
            a = torch.minimum(a_max, p / (s * real))
            real = _apply(kt, k, a)
            s = _fill(real * v_max, q, rho)
            v = torch.minimum(v_max, q / (s * real))
        # The columns are exact now. A full row must be met, another must only not be exceeded; the mass is short
        # when cells that are needed still round to 0, which later blocks mend.
        mass_error = (((s * v) * real).sum(-1, keepdim=True) / rho - 1).abs().squeeze(-1)
        rows = s * a * _apply(k, kt, v) / counted - filled
        error = torch.where(a < a_max, rows.abs(), rows.clamp(min=0)).amax(-1)
        moved = ((f + a.log()).clamp(max=0), (g + v.log()).clamp(max=0), h + s.log())
        return moved, torch.maximum(error, mass_error)

    (f, g, h), done, rounds = _iterate((torch.zeros_like(p), torch.zeros_like(q), h), block, tol, max_iter)
    return f, g + h, done, rounds


def published(
    c: Tensor, rho: Tensor, entropy: float, p: Tensor, q: Tensor, barred: Tensor | None, max_iter: int
) -> Solution:
    """The iteration as released: log domain, dummies at cost 100 max C, stopped when the row potential rests."""
    n, m = c.shape[-2:]
    c = c.clamp(min=1e-10)
    top = c.amax((-1, -2))
    extended = torch.nn.functional.pad(c if barred is None else c.masked_fill(barred, math.inf), (0, 1, 0, 1))
    extended[..., n, :] = extended[..., :, m] = 100 * top.unsqueeze(-1)
    extended[..., n, m] = 201 * top
    log_p = torch.cat([p, (q.sum(-1) - rho).unsqueeze(-1)], -1).log()
    log_q = torch.cat([q, (p.sum(-1) - rho).unsqueeze(-1)], -1).log()
    u, v = torch.zeros_like(log_p), torch.zeros_like(log_q)
    done, rounds = torch.zeros_like(rho, dtype=torch.bool), torch.zeros_like(rho, dtype=torch.int64)
    for index in range(max_iter):
        start = (u.unsqueeze(-1) + v.unsqueeze(-2) - extended) / entropy
        new_u = u + entropy * (log_p - torch.logsumexp(start, -1))
        start = (new_u.unsqueeze(-1) + v.unsqueeze(-2) - extended) / entropy
        new_v = v + entropy * (log_q - torch.logsumexp(start, -2))
        resting = torch.linalg.vector_norm(new_u - u, dim=-1) < 1e-3
        keep = done.unsqueeze(-1)
        u, v = torch.where(keep, u, new_u), torch.where(keep, v, new_v)
        rounds = torch.where(done, rounds, rounds + 1)
        done = done | resting
        if _everywhere(done, index + 1):
            break
    return u[..., :n] / entropy, v[..., :m] / entropy, done, rounds


def _iterate(
    state: _State, block: Callable[[_State, Tensor | None], tuple[_State, Tensor]], tol: float, max_iter: int
) -> tuple[_State, Tensor, Tensor]:
    """Run blocks until the error is small; problems that are done stand still while the others go on."""
    over: Tensor | None = None  # over-relaxation exponent per problem, (b, 1); None: not yet
    error = torch.full_like(state[0][..., 0], math.inf)
    done = torch.zeros_like(error, dtype=torch.bool)
    rounds = torch.zeros_like(error, dtype=torch.int64)
    for index in range(math.ceil(max_iter / _ROUNDS)):
        new_state, new_error = block(state, over)
        keep = done.unsqueeze(-1)
        state = tuple(torch.where(keep, old, new) for old, new in zip(state, new_state, strict=True))
        rounds = rounds + _ROUNDS * ~done
        done = done | (new_error <= tol)
        if _everywhere(done, index + 1):
            break
        if index > 0:
            over = _relaxation((new_error / error) ** (1 / _ROUNDS), over)
        error = new_error
    return state, done, rounds.clamp(max=max_iter)


def _relaxation(rate: Tensor, over: Tensor | None) -> Tensor:
    """The exponent ω - 1 of the next block, (b, 1), from the error's rate μ per round in this one; 0 is plain.

    Successive over-relaxation with ω converges at the μ of (μ + ω - 1)² = ω² η μ, where η is the rate of plain rounds,
    as long as ω is too small; the best is ω = 2 / (1 + sqrt(1 - η)). A block in which the error grew halves the step.
    """
    over = torch.zeros_like(rate) if over is None else over.squeeze(-1)
    falling = rate < 1  # False for NaN too
    rate = torch.where(falling, rate, 0.5).clamp(min=1e-6)
    plain = ((rate + over) ** 2 / ((1 + over) ** 2 * rate)).clamp(max=1)
    best = (2 / (1 + (1 - plain).sqrt()) - 1).clamp(max=0.97)
    too_small = rate > over + 0.02
    return torch.where(falling, torch.where(too_small, torch.maximum(best, over), over), over / 2).unsqueeze(-1)


def _level(reach: Tensor, p: Tensor, rho: Tensor) -> Tensor:
    """The dummy's log weight τ (b, 1) at which exactly ρ goes to real partners: sum_i p_i σ(reach_i - τ) = ρ.

    reach (b, n) is each row's log kernel sum, rho (b, 1). The left side falls in τ: bracket, then one Newton
    step; the rounds correct the rest.
    """
    rest = (p.sum(-1, keepdim=True) - rho).clamp(min=TINY)  # nothing left over: τ far below every reach
    odds = (rest / rho).log()
    seen = torch.isfinite(reach)
    low = reach.masked_fill(~seen, math.inf).amin(-1, keepdim=True) + odds
    width = reach.masked_fill(~seen, -math.inf).amax(-1, keepdim=True) + odds - low
    grid = torch.linspace(0, 1, 17, dtype=p.dtype, device=p.device)
    moved = torch.sigmoid(reach.unsqueeze(-1) - (low + width * grid).unsqueeze(-2)).mul_(p.unsqueeze(-1)).sum(-2)
    cell = (moved >= rho).sum(-1, keepdim=True).clamp_(1, 16) - 1
    width = width / 16
    low = low + width * cell
    share = torch.sigmoid(reach - low)
    moved = p * share
    slope = (moved - moved * share).sum(-1, keepdim=True) + TINY
    return (low + (moved.sum(-1, keepdim=True) - rho) / slope).clamp(low, low + width)


def _rebalance(real: Tensor, slack: Tensor, p: Tensor, rho: Tensor, t: Tensor) -> Tensor:
    """The factor t (b, 1) on the dummy at which rows, once exact, move ρ: sum_i p_i real_i / (real_i + t slack_i) = ρ.

    One Newton step on 1 / moved, which is nearly linear in t, from the t of the last round.
    """
    full = torch.addcmul(real, slack, t)
    moved = p * real / full
    total = moved.sum(-1, keepdim=True)
    fall = (moved * slack / full).sum(-1, keepdim=True) + TINY
    return torch.maximum(t + total * (total / rho - 1) / fall, 0.05 * t)


def _fill(open_mass: Tensor, p: Tensor, rho: Tensor) -> Tensor:
    """The factor s (b, 1) at which rows filled in proportion, but never beyond p, hold ρ: sum_i min(s open_i, p_i) = ρ.

    open_mass (b, n), rho (b, 1). The left side is piecewise linear in s: sort the rows by where they become full.
    """
    full_at, order = (p / open_mass.clamp(min=TINY)).sort(-1)
    p, open_mass = p.gather(-1, order), open_mass.gather(-1, order)
    before = p.cumsum(-1) - p  # what the rows that are full earlier hold
    rest = open_mass.flip(-1).cumsum(-1).flip(-1).clamp(min=TINY)  # the rows not yet full, this one included
    reached = ((before + full_at * rest) < rho).sum(-1, keepdim=True).clamp(max=p.shape[-1] - 1)
    return ((rho - before.gather(-1, reached)) / rest.gather(-1, reached)).clamp(TINY, _HUGE)


def _absorb(log_kernel: Tensor, f: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """The present plan and its transpose; scaling factors start at 1 from here."""
    k = torch.exp(log_kernel + f.unsqueeze(-1) + g.unsqueeze(-2))
    return k, k.mT


def _apply(k: Tensor, kt: Tensor, v: Tensor) -> Tensor:
    """k (b, n, m) times v (b, m), given both k and its transpose kt.

    A batch multiplies from the left: on a CPU that is five times faster than a batched matrix times a column.
    """
    return torch.mv(k, v) if k.ndim == 2 else torch.bmm(v.unsqueeze(-2), kt).squeeze(-2)


def _everywhere(done: Tensor, asked: int) -> bool:
    """Whether all problems are done. An accelerator is asked now and then: asking waits, but so would idle rounds."""
    return (done.device.type == "cpu" or asked % _ASK_EVERY == 0) and bool(to_host(done.all()))
