"""A batch encoded in chunks is the batch: the same encodings, gradients and draws, and nothing kept in between."""

import pytest
import torch

from mispair.errors import InputError
from mispair.models import build_model, model_preset
from mispair.runtime.engine import Engine, EngineConfig
from mispair.workflows.assemble import input_sizes
from mispair.workflows.train import train
from tests.synthetic import tiny_config, tiny_data


def gradients(model, chunk, batch, use):
    engine = Engine(EngineConfig(device="cpu", chunk=chunk))
    engine.adopt({"net": model, "other": torch.nn.Linear(1, 1)}, {})
    torch.manual_seed(5)
    with engine.arithmetic():
        images, texts = engine.encode(model, batch)
        loss = use(model, images, texts)
    if chunk:
        engine.minimize("other", engine.modules["other"](torch.ones(1, 1)).sum())  # takes nothing from the first
    engine.minimize("net", loss)
    engine.end_step()
    return {key: value.grad for key, value in model.named_parameters() if value.grad is not None}


def scored(model, images, texts):
    return (model.link(model.similarity(images, texts)) * torch.linspace(-1, 1, len(texts))).square().sum()


@pytest.mark.parametrize(("name", "changes"), [("vse", {"words": "gru"}), ("sgr", {"sim": 8}), ("imram", {})])
def test_chunks_have_the_gradients_of_the_batch(name, changes):
    data = tiny_data(pictures=24)
    config = model_preset(name, "small").model_copy(update={"embed": 16, "word_dim": 8, "dropout": 0.0, **changes})
    models = [build_model(config, input_sizes(data)).train() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    batch = data.batch(range(10))
    whole, parts = (gradients(model, chunk, batch, scored) for model, chunk in zip(models, (None, 3), strict=True))
    assert whole.keys() == parts.keys()
    for key, value in whole.items():
        assert (value - parts[key]).abs().max() <= 1e-5 * max(1.0, float(value.abs().max())), key


def test_the_second_pass_draws_what_the_first_drew():
    """With dropout: the encodings that get a gradient are those that are encoded again."""
    data = tiny_data(pictures=24)
    config = model_preset("vse", "small").model_copy(update={"embed": 16, "word_dim": 8, "dropout": 0.5})
    model, seen = build_model(config, input_sizes(data)).train(), []
    encode = model.encode_texts
    model.encode_texts = lambda *given: seen.append(encode(*given).values) or encode_as(seen[-1], given)

    def encode_as(values, given):
        from mispair.types import Encoded

        return Encoded(values, given[1].new_ones(len(values), 1))

    gradients(model, 4, data.batch(range(10)), scored)
    assert len(seen) == 6
    for first, second in zip(seen[:3], seen[3:], strict=True):
        assert torch.equal(first, second)
        assert second.requires_grad
        assert not first.requires_grad


@pytest.mark.parametrize("method", ["l2rm", "ncr"])
def test_a_training_in_chunks_has_the_losses_of_one_without(tmp_path, method):
    sets = ("data.noise.rate=0.5", f"method.name={method}", "method.warmup_epochs=1", "train.epochs=3", "train.lr=1e-4")
    logged = []
    for chunk in ("null", "7"):
        config = tiny_config(*sets, f"engine.chunk={chunk}")
        losses = []
        train(config, tmp_path / chunk, on_epoch=lambda e, to=losses: to.append(e.train["loss"]), summarize=False)
        logged.append(losses)
    assert logged[0] == pytest.approx(logged[1], rel=1e-5)


def test_encoders_that_normalise_over_a_batch_are_refused():
    data = tiny_data(pictures=24)
    config = model_preset("vse", "small").model_copy(update={"embed": 16, "pooling": "gpo"})
    with pytest.raises(InputError, match=r"engine\.chunk needs encoders that look at one item alone"):
        Engine(EngineConfig(device="cpu", chunk=4)).adopt({"net": build_model(config, input_sizes(data))}, {})
