"""RCL: negatives only, as many as asked for, from the run's own generator."""

import pytest
import torch

from mispair.functional.contrastive_losses import complementary, info_nce
from mispair.methods.rcl import RCL, RCLConfig
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun, tiny_data


def make(**values):
    torch.manual_seed(0)
    data = tiny_data()
    net = build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))
    return RCL(RCLConfig(**values), lambda: net, 32), RecordingRun(data)


def first_scores(method, run):
    batch = run.data.batch(range(run.batch_size))
    return method.net.similarity(*run.encode(method.net, batch))


@pytest.mark.parametrize("loss", ["log", "tan", "abs", "exp", "gce", "infonce"])
def test_every_loss_is_a_value(loss):
    method, run = make(loss=loss)
    scores = first_scores(method, run)
    expected = info_nce(scores) if loss == "infonce" else complementary(scores, 0.05, loss)
    method.epoch(0, run)
    assert run.updates == ["net"]
    assert run.streams == [{"batch": None}]
    assert run.losses[0] == pytest.approx(expected.mean().item(), rel=1e-5)


@pytest.mark.parametrize(("ratio", "count"), [(0.001, 1), (0.3, 2), (0.5, 3), (0.99, 6)])
def test_each_anchor_gets_its_share_of_negatives(ratio, count):
    method, run = make(ratio=ratio)
    chosen = method._negatives(run, torch.zeros(7, 7))
    assert (chosen.sum(1) == count).all()
    assert not chosen.diagonal().any()


def test_negatives_are_drawn_anew_and_repeatably():
    method, run = make(ratio=0.5)
    first, second = (method._negatives(run, torch.zeros(31, 31)) for _ in range(2))
    assert not torch.equal(first, second)
    run.rng.manual_seed(0)
    assert torch.equal(method._negatives(run, torch.zeros(31, 31)), first)


def test_a_share_of_negatives_costs_a_share_of_the_loss():
    full, run = make(loss="abs")
    full.epoch(0, run)
    half, some = make(loss="abs", ratio=0.5)
    half.epoch(0, some)
    assert some.losses[0] == pytest.approx(run.losses[0] / 2, rel=0.1)
