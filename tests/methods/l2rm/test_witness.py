"""The network before its first step as a witness: it tells mismatched pairs, and later epochs can only trust less."""

import numpy as np
import pytest
import torch

from mispair.config.load import load_config
from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.l2rm.identification import Identification
from mispair.methods.l2rm.method import L2RM
from mispair.methods.l2rm.witness import GIVEN, OTHER, TEACHER, Witness, standing
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.runtime.checkpoint import load_model
from mispair.runtime.engine import Engine
from mispair.workflows.train import train
from tests.synthetic import stopping_engine, tiny_config

PAIRS = 400


def surveyed(seed, strength):
    """Columns of batches of 50 whose second half is mismatched."""
    rng = np.random.default_rng(seed)
    columns = {GIVEN: [], OTHER: []}
    for _ in range(PAIRS // 50):
        scores = rng.normal(size=(50, 50))
        scores[np.arange(25), np.arange(25)] += strength
        for key, value in standing(torch.from_numpy(scores)).items():
            columns[key].append(value.numpy())
    return {key: np.concatenate(value) for key, value in columns.items()}


WRONG = np.tile(np.arange(50) >= 25, PAIRS // 50)


def test_it_tells_mismatched_pairs():
    p = Witness().judge(surveyed(0, 4.0))
    assert p[WRONG].mean() > 0.85
    assert p[~WRONG].mean() < 0.15


def test_later_judgements_lower_trust_and_never_raise_it():
    witness = Witness()
    first = witness.judge(surveyed(0, 4.0))
    learned = surveyed(1, 4.0)
    learned[GIVEN][:] = learned[GIVEN].min()  # everything learned by heart
    assert (witness.judge(learned) >= first).all()
    again = Witness()
    again.restore(witness.state())
    assert np.array_equal(again.judge(learned), witness.judge(learned))


def test_standing_compares_with_the_row_and_the_column():
    scores = torch.eye(4) * 3 + torch.arange(4.0)[:, None] * 10 + torch.arange(4.0) * 7
    found = standing(scores)
    assert (found[GIVEN] < found[OTHER]).all(), "what an image or a text scores with everything is no evidence"


def test_what_it_says_first_weighs_the_warm_up():
    identification = Identification(L2RMConfig(split={"evidence": "frozen"}), batch_size=50)
    identification.ask_witness(surveyed(0, 4.0), torch.device("cpu"))
    expected = 1 - Witness().judge(surveyed(0, 4.0))
    assert torch.allclose(identification.trust, torch.from_numpy(expected).float())


@pytest.mark.parametrize("evidence", ["frozen", "both"])
def test_training_with_a_witness_goes_on_to_the_same_end(tmp_path, evidence):
    config = tiny_config(
        "method.name=l2rm", f"method.split.evidence={evidence}", "method.warmup_epochs=2", "train.epochs=4"
    )
    train(config, tmp_path / "whole", summarize=False)
    for stop in (3, 12):
        folder = tmp_path / f"cut{stop}"
        train(config, folder, engine=stopping_engine(config.engine, stop), summarize=False)
        train(config, folder, resume=True, summarize=False)
        whole, cut = (load_model(f / "model.safetensors")[0]["net"] for f in (tmp_path / "whole", folder))
        assert all(torch.equal(whole[key], cut[key]) for key in whole)


def test_a_network_that_knows_nothing_before_its_first_step_is_a_witness_of_nothing(tmp_path):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(120, 8))
    for side in ("images", "texts"):
        np.save(tmp_path / f"{side}.npy", (shared + 0.3 * rng.normal(size=shared.shape)).astype(np.float32))
    data = (f"data.path={tmp_path / 'images.npy'}", f"data.second={tmp_path / 'texts.npy'}", "train.batch_size=16")
    told = {}
    for model in ("vse", "dual"):
        sets = (
            *data,
            f"model.name={model}",
            "train.epochs=2",
            "method.warmup_epochs=1",
            "method.split.evidence=frozen",
        )
        train(load_config(sets=["method.name=l2rm", *sets]), tmp_path / model, summarize=False)
        told[model] = "was drawn by chance and knows nothing then" in (tmp_path / model / "metrics.jsonl").read_text()
    assert told == {"vse": True, "dual": False}


def test_later_epochs_ask_the_mean_of_the_steps_and_the_last_network_is_kept(tmp_path, monkeypatch):
    """The mean by hand, from the weights after every step; default evidence asks the network of the time."""
    seen = {"steps": [], "surveys": [], "judged": []}

    def weights(net):
        return torch.cat([p.detach().flatten() for p in net.parameters() if p.requires_grad])

    minimize, survey, evaluate = Engine.minimize, L2RM._survey, RecallEvaluator.__call__

    def step(engine, name, loss):
        if name == "net" and not seen["steps"]:
            seen["steps"].append(weights(engine.modules["net"]))
        minimize(engine, name, loss)
        if name == "net":
            seen["steps"].append(weights(engine.modules["net"]))

    def asked(method, run, batch):
        seen["surveys"].append((len(seen["steps"]), weights(method.net)))
        return survey(method, run, batch)

    def judged(evaluator, models):
        seen["judged"].append(weights(models[0]))
        return evaluate(evaluator, models)

    monkeypatch.setattr(Engine, "minimize", step)
    monkeypatch.setattr(L2RM, "_survey", asked)
    monkeypatch.setattr(RecallEvaluator, "__call__", judged)
    sets = ("method.name=l2rm", "method.warmup_epochs=1", "train.epochs=2", "train.lr=0.01")
    train(tiny_config(*sets, "method.split.evidence=frozen"), tmp_path / "frozen", summarize=False)
    taken, by = seen["surveys"][0]
    mean = seen["steps"][0]
    for k, now in enumerate(seen["steps"][1:taken], 1):
        decay = min(TEACHER, (1 + k) / (10 + k))
        mean = decay * mean + (1 - decay) * now
    torch.testing.assert_close(by, mean)
    assert not torch.allclose(by, seen["steps"][taken - 1])
    assert torch.equal(seen["judged"][-1], seen["steps"][-1])
    for kept in seen.values():
        kept.clear()
    train(tiny_config(*sets), tmp_path / "auto", summarize=False)
    taken, by = seen["surveys"][0]
    assert torch.equal(by, seen["steps"][taken - 1])
