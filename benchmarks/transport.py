"""Partial transport against the released iteration run to the same error, and a batch against single calls."""

from __future__ import annotations

import numpy as np
import torch
from tests.oracles import released_sinkhorn

from benchmarks.timing import Case
from mispair.functional.transport import partial_transport

N, MASS = 128, 0.1
FORBIDDEN = torch.eye(N, dtype=torch.bool)


def batch_cost(kind: str, seed: int = 0) -> np.ndarray:
    """Cost of a batch: early in training (all alike), or trained (cosine distances with true partners inside)."""
    rng = np.random.default_rng(seed)
    if kind == "early":
        return 0.5 + 0.01 * rng.standard_normal((N, N))
    images = rng.standard_normal((N, 16))
    texts = images[rng.permutation(N)] + 0.8 * rng.standard_normal((N, 16))
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    return 1 - images @ texts.T


def cases() -> list[Case]:
    found = []
    for entropy in (0.01, 0.07):
        for kind in ("early", "trained"):
            cost = batch_cost(kind)
            tensor = torch.from_numpy(cost)
            found.append(
                Case(
                    f"transport 128x128, masked, mass 0.1, entropy {entropy}, {kind} scores",
                    "released log-domain loop to marginal error 1e-6",
                    10,
                    lambda t=tensor, e=entropy: partial_transport(t, MASS, e, FORBIDDEN),
                    lambda c=cost, e=entropy: released_sinkhorn(
                        c, MASS, e, FORBIDDEN.numpy(), stop="marginals", max_iter=100_000
                    ),
                    check=lambda t=tensor, e=entropy: _quality(t, e),
                )
            )
    for entropy in (0.01, 0.07):
        stack = torch.from_numpy(np.stack([batch_cost("trained", seed) for seed in range(16)]))
        found.append(
            Case(
                f"16 transports of 128x128 at once, entropy {entropy}",
                "16 single calls",
                2,
                lambda s=stack, e=entropy: partial_transport(s, MASS, e, FORBIDDEN),
                lambda s=stack, e=entropy: [partial_transport(c, MASS, e, FORBIDDEN) for c in s],
            )
        )
    return found


def _quality(cost: torch.Tensor, entropy: float) -> str:
    alignment = partial_transport(cost, MASS, entropy, FORBIDDEN)
    assert alignment.converged
    return f"mass {alignment.mass:.7f} in {alignment.iterations} rounds"
