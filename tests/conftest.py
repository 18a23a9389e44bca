"""Shared settings of the tests: one thread, one property-test profile."""

import torch
from hypothesis import HealthCheck, settings

# Small tensors everywhere: two spinning thread pools cost more than they give.
torch.set_num_threads(1)

settings.register_profile("house", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
