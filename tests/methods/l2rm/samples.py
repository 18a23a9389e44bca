"""L2RM around a tiny network, with a run that records what was asked of it."""

import numpy as np
import torch

from mispair.methods.l2rm import L2RM, L2RMConfig
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun

BATCH = 32


def make(data, two_groups=False, **values):
    torch.manual_seed(0)
    backbone = values.pop("backbone", VSEConfig(embed=32, word_dim=16, words="bag"))
    net = build_model(backbone, input_sizes(data))
    if "config" not in values:  # most tests here are about the paper's split
        values["split"] = {"evidence": "loss", **values.get("split", {})}
    config = values.pop("config", None) or L2RMConfig(warmup_epochs=1, **values)
    run = RecordingRun(data, BATCH)
    if two_groups:  # an untrained network cannot tell them yet
        rng = np.random.default_rng(0)
        low, high = rng.beta(2, 12, len(data)), rng.beta(9, 5, len(data))
        survey = run.survey
        run.survey = lambda score, passing: {
            **survey(score, passing), "loss": np.where(data.table.truth.mismatched, high, low)
        }  # fmt: skip
    return L2RM(config, lambda: net, BATCH), run
