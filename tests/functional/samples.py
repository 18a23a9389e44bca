"""Random scores, and the sizes properties are checked at."""

import torch
from hypothesis import strategies as st

PRIMES = st.sampled_from([2, 3, 5, 7, 11, 13])


def scores(n, m=None, seed=0, scale=1.0):
    """(n, m) in [0, scale)."""
    return draw(n, m or n, seed=seed) * scale


def draw(*shape, seed=0):
    """Uniform numbers in [0, 1), double precision."""
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
