import pytest
import torch

from mispair.functional.ranking_losses import on_plateau
from mispair.methods.plain import Plain, PlainConfig
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun, tiny_data


def make(**values):
    torch.manual_seed(0)
    data = tiny_data()
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    return Plain(PlainConfig(**values), lambda: net, 32), RecordingRun(data)


@pytest.mark.parametrize("loss", ["triplet", "infonce", "infonce_rce"])
def test_trains_on_everybody(loss):
    method, run = make(loss=loss)
    method.epoch(0, run)
    assert run.updates == ["net"]
    assert run.streams == [{"batch": None}]


def test_mean_negatives_first_when_asked():
    method, run = make(warmup_epochs=1)
    method.epoch(0, run)
    method.epoch(1, run)
    assert run.losses[0] < run.losses[1]


def test_the_plateau_is_explained():
    method, run = make()
    method.net.similarity = lambda images, texts, sparse: 0.5 + 0 * images.values[:, 0] @ texts.values[:, 0].T
    method.epoch(0, run)
    assert "rests at 2 x margin per pair" in run.notes[0]
    assert on_plateau(0.4, 0.2)
    assert not on_plateau(0.3, 0.2)


def test_no_plateau_is_seen_where_the_loss_falls():
    method, run = make(loss="infonce")
    method.epoch(0, run)
    assert run.notes == []
