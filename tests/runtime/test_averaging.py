"""The mean of a network's steps: by hand, in place and back again, and through an engine."""

import torch
from torch import nn

from mispair.runtime.averaging import WeightAverage
from mispair.runtime.engine import Engine, EngineConfig


def test_the_mean_by_hand():
    layer = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.0)
    average = WeightAverage(layer, 0.5)
    expected = 0.0
    for step, value in enumerate((1.0, 3.0, 2.0, 8.0), 1):
        with torch.no_grad():
            layer.weight.fill_(value)
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    with average.in_place():
        assert layer.weight.item() == torch.tensor(expected).item()
    assert layer.weight.item() == 8.0


def test_an_engine_judges_by_the_mean_and_trains_from_the_last(tmp_path):
    torch.manual_seed(0)
    layer, other = nn.Linear(3, 2), nn.Linear(2, 1)
    engine = Engine(EngineConfig(device="cpu"))
    engine.adopt({"net": layer, "cost": other}, {}, ["net"], 0.9)
    engine.set_learning_rate(0.1)
    for _ in range(5):
        engine.minimize("net", layer(torch.ones(4, 3)).square().sum())
    last = layer.weight.detach().clone()
    with engine.averaged():
        mean = layer.weight.detach().clone()
    assert not torch.equal(mean, last)
    assert torch.equal(layer.weight, last)

    again, fresh = Engine(EngineConfig(device="cpu")), nn.Linear(3, 2)
    fresh.load_state_dict(layer.state_dict())
    again.adopt({"net": fresh, "cost": nn.Linear(2, 1)}, {}, ["net"], 0.9)
    again.restore(engine.state())
    with again.averaged():
        assert torch.equal(fresh.weight, mean)

    engine.restart("net", nn.Linear(3, 2))
    with engine.averaged():
        assert not torch.equal(layer.weight, mean)
