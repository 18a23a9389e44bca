"""Two networks that teach each other, and what they were given."""

import numpy as np
import torch

from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun


def make(method, config, data, batch_size, **values):
    """A method of two networks whose losses tell the mismatched pairs, each in its own way; and a run that records."""
    torch.manual_seed(0)
    a, b = (build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data)) for _ in range(2))
    run = RecordingRun(data, batch_size)
    rng = np.random.default_rng(0)
    wrong = data.table.truth.mismatched
    losses = {"a": np.where(wrong, rng.beta(9, 5, len(data)), rng.beta(2, 12, len(data)))}
    losses["b"] = np.roll(losses["a"], 7)  # another opinion
    run.survey = lambda score: losses
    run.opinions = losses
    return method(config(**{"warmup_epochs": 1, "noisy_from": 1, **values}), iter([a, b]).__next__, batch_size), run


def captured(method, run, epoch):
    """Labels and scores that `_losses` was given, in order."""
    found = []
    real = method._losses

    def watch(scores, labels):
        losses = real(scores, labels)
        found.append((scores.detach(), labels, losses.detach()))
        return losses

    method._losses = watch
    method.epoch(epoch, run)
    return found
