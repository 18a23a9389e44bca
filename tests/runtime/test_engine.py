"""What happens between a loss and a changed parameter, where a slip would train on quietly."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from mispair.errors import InputError
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.runtime.engine import Engine, EngineConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import tiny_data


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


def _engine(**values):
    engine = Engine(EngineConfig(device="cpu", **values))
    torch.manual_seed(0)
    modules = {"net": nn.Linear(3, 1, bias=False), "cost": nn.Linear(3, 1, bias=False)}
    engine.adopt(modules, {"cost": 0.1})
    return engine, modules


@pytest.mark.parametrize(("optimizer", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_every_module_has_the_optimizer_that_was_asked_for(optimizer, kind):
    engine, modules = _engine(optimizer=optimizer, weight_decay=0.25)
    assert set(engine.optimizers) == set(modules)
    for name, found in engine.optimizers.items():
        assert type(found) is kind
        assert found.param_groups[0]["weight_decay"] == 0.25
        assert found.param_groups[0]["fused"] is True
        assert [id(p) for p in found.param_groups[0]["params"]] == [id(p) for p in modules[name].parameters()]


def test_rates_are_relative_to_the_run():
    engine, _ = _engine()
    engine.set_learning_rate(0.5)
    assert {name: o.param_groups[0]["lr"] for name, o in engine.optimizers.items()} == {"net": 0.5, "cost": 0.05}


def test_a_step_changes_one_module_and_is_counted():
    engine, modules = _engine()
    engine.set_learning_rate(0.1)
    before = {name: module.weight.clone() for name, module in modules.items()}
    x = torch.ones(2, 3)
    engine.minimize("net", modules["net"](x).sum() + modules["cost"](x).sum())
    assert torch.allclose(modules["net"].weight, before["net"] - 0.1, atol=1e-5)  # Adam's first step is the rate
    assert torch.equal(modules["cost"].weight, before["cost"])
    assert engine.steps == 1


def test_gradients_are_clipped_to_a_norm():
    engine, modules = _engine(clip=0.5)
    weight = modules["net"].weight
    engine.minimize("net", 100 * modules["net"](torch.ones(2, 3)).sum())
    assert weight.grad.norm().item() == pytest.approx(0.5, rel=1e-4)
    engine.minimize("net", 1e-3 * modules["net"](torch.ones(2, 3)).sum())
    assert weight.grad.tolist() == [pytest.approx([2e-3] * 3)]  # and what was there before is forgotten


@pytest.mark.parametrize(("precision", "expected"), [("fp32", []), ("bf16", ["cpu"])])
def test_the_backward_pass_of_bfloat16_alone_goes_the_safe_way(monkeypatch, precision, expected):
    entered = []

    @contextmanager
    def safe(device):
        entered.append(device)
        yield

    monkeypatch.setattr("mispair.runtime.engine.safe_products", safe)
    engine, modules = _engine(precision=precision)
    engine.minimize("net", modules["net"](torch.ones(2, 3)).sum())
    assert entered == expected


def test_a_restart_keeps_the_rate_and_forgets_the_rest():
    engine, modules = _engine()
    engine.set_learning_rate(0.1)
    engine.minimize("net", modules["net"](torch.ones(2, 3)).sum())
    assert engine.optimizers["net"].state
    fresh = nn.Linear(3, 1, bias=False)
    engine.restart("net", fresh)
    assert torch.equal(modules["net"].weight, fresh.weight)
    assert engine.optimizers["net"].param_groups[0]["lr"] == 0.1
    assert not engine.optimizers["net"].state
    assert engine.optimizers["net"].param_groups[0]["params"][0] is modules["net"].weight


def test_what_was_encoded_is_counted_by_sides():
    engine, _ = _engine()
    data = tiny_data(pictures=24)
    net = build_model(VSEConfig(embed=8, word_dim=8, words="bag"), input_sizes(data))
    batch = data.batch(np.arange(6))
    engine.encode(net, batch)
    assert (engine.learned, engine.judged) == (6.0, 0.0)
    with torch.no_grad():
        engine.encode_texts(net, batch)
    assert (engine.learned, engine.judged) == (6.0, 3.0)
    engine.encode_images(net, batch)
    assert (engine.learned, engine.judged) == (9.0, 3.0)


def test_state_round_trip():
    engine, modules = _engine()
    engine.set_learning_rate(0.1)
    for _ in range(3):
        engine.minimize("net", modules["net"](torch.ones(2, 3)).sum())
    engine.learned, engine.judged = 12.0, 5.0
    other, _ = _engine()
    other.restore(engine.state())
    assert (other.steps, other.learned, other.judged) == (3, 12.0, 5.0)
    assert other.optimizers["net"].state_dict()["state"][0]["step"] == 3
    assert other.leads


def test_devices_that_are_not_there_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert Engine(EngineConfig(device="auto")).device.type == "cpu"
    for device in ("cuda", "mps"):
        with pytest.raises(InputError, match=f"engine.device={device} is not available here"):
            Engine(EngineConfig(device=device))
    with pytest.raises(InputError, match="fp16 needs a CUDA device, this is cpu"):
        Engine(EngineConfig(device="cpu", precision="fp16"))


def test_precision_is_what_was_asked_for_and_only_inside():
    x = torch.ones(2, 3)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        engine, modules = _engine(precision=precision)
        with engine.arithmetic():
            assert modules["net"](x).dtype == dtype
        assert modules["net"](x).dtype == torch.float32
