"""How far the model's matching probabilities are from a refined alignment.

Letters: n images (rows), m captions (columns); scores (n, m); plan (n, m), non-negative; Π the plan normalised along
a row (i2t) or a column (t2i); P the softmax of scores / τ along the same axis.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from mispair.errors import InputError

Divergence = Literal["sym_kl", "kl", "cross_entropy", "js"]
DIVERGENCES = ("sym_kl", "kl", "cross_entropy", "js")


def alignment_divergence(
    scores: Tensor,
    plan: Tensor,
    temperature: float,
    direction: Literal["i2t", "t2i"],
    kind: Divergence = "sym_kl",
    floor: float = 1e-10,
) -> Tensor:
    """Divergence between plan and prediction for every query: (n, m) -> (n,) for i2t, (m,) for t2i.

    sym_kl: ½ KL(Π‖P) + ½ KL(P‖Π) (half of L2RM Eq. 10); kl: KL(Π‖P); cross_entropy: -Σ Π log P (soft InfoNCE);
    js: Jensen-Shannon, between 0 and ln 2. The plan is raised to `floor` before it is normalised: a row that carries
    nothing then asks for the uniform distribution, which is the label smoothing of L2RM Appendix C.3.
    """
    if scores.ndim != 2 or scores.shape != plan.shape:
        raise InputError(f"scores and plan must be alike (n, m), got {tuple(scores.shape)} and {tuple(plan.shape)}")
    if not temperature > 0 or not floor > 0:
        raise InputError(f"temperature and floor must be positive, got {temperature} and {floor}")
    if direction not in ("i2t", "t2i"):
        raise InputError(f"direction must be i2t or t2i, got {direction!r}")
    axis = 1 if direction == "i2t" else 0
    log_p = (scores / temperature).log_softmax(axis)
    target = plan.clamp(min=floor)
    target = target / target.sum(axis, keepdim=True)
    log_target = target.log()
    if kind == "sym_kl":
        return 0.5 * ((target - log_p.exp()) * (log_target - log_p)).sum(axis)
    if kind == "kl":
        return (target * (log_target - log_p)).sum(axis)
    if kind == "cross_entropy":
        return -(target * log_p).sum(axis)
    if kind != "js":
        raise InputError(f"kind must be one of {', '.join(DIVERGENCES)}, got {kind!r}")
    log_middle = torch.logaddexp(log_target, log_p) - math.log(2)
    return 0.5 * (target * (log_target - log_middle) + log_p.exp() * (log_p - log_middle)).sum(axis)


def rematching_loss(
    scores: Tensor, plan: Tensor, temperature: float = 0.05, kind: Divergence = "sym_kl", floor: float = 1e-10
) -> tuple[Tensor, Tensor]:
    """Loss of every image and of every text against a refined alignment, (n, m) -> (n,), (m,) (L2RM Eq. 10-11).

    The caller reduces each and adds them. `plan` is a transport plan, or any soft targets of shape (n, m).
    """
    by_image = alignment_divergence(scores, plan, temperature, "i2t", kind, floor)
    return by_image, alignment_divergence(scores, plan, temperature, "t2i", kind, floor)
