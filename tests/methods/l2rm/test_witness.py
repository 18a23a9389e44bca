"""The network before its first step as a witness: it tells mismatched pairs, and later epochs can only trust less."""

import numpy as np
import pytest
import torch

from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.l2rm.identification import Identification
from mispair.methods.l2rm.witness import GIVEN, OTHER, Witness, standing
from mispair.runtime.checkpoint import load_model
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
