"""What happens between a loss and a changed parameter, where a slip would train on quietly."""

import torch
from torch import nn

from mispair.runtime.engine import Engine, EngineConfig


def test_a_second_forward_in_one_step_sees_the_changed_weights_in_mixed_precision():
    torch.manual_seed(0)
    engine, layer, x = Engine(EngineConfig(device="cpu", precision="bf16")), nn.Linear(64, 64), torch.randn(8, 64)
    engine.adopt({"net": layer}, {})
    engine.set_learning_rate(0.1)
    with engine.arithmetic():
        before = layer(x)
        with torch.autocast("cpu", enabled=False):
            engine.minimize("net", before.float().square().mean())
        after = layer(x)
    with engine.arithmetic():
        fresh = layer(x)
    assert torch.equal(after, fresh)
    assert not torch.equal(after, before)
