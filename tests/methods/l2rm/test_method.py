"""The paper's steps in the paper's order, and the corner cases that are specified rather than discovered."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from mispair.methods.l2rm import L2RMConfig
from mispair.models.saf import SAFConfig
from mispair.models.sgr import SGRConfig
from tests.methods.l2rm.samples import BATCH, make


def test_warm_up_trains_the_network_on_everybody(data):
    method, run = make(data)
    method.epoch(0, run)
    assert run.updates == ["net"]
    assert run.streams == [{"batch": None}]


def test_the_cost_is_taught_before_it_is_used(data):
    method, run = make(data, two_groups=True)
    method.epoch(1, run)
    assert run.updates == ["cost", "net"]
    assert list(run.streams[0]) == ["matched", "mismatched"]
    assert set(run.streams[0]["matched"]).isdisjoint(run.streams[0]["mismatched"])
    assert len(run.streams[0]["matched"]) + len(run.streams[0]["mismatched"]) == len(data)
    assert run.logged["mass"] == pytest.approx(method.rematching.mass, rel=1e-5)
    assert run.logged["converged"] == 1


@pytest.mark.parametrize("per", ["pair", "batch"])
def test_a_rematched_pair_counts_as_much_as_one_trained_as_given(data, per):
    """The fewer are mismatched, the more often they come round: each batch of them counts the less."""
    method, run = make(data, siblings={"when": "never"}, rematch_per=per, rematch_weight=2.0)
    few, survey = np.arange(len(data)) % 5 == 0, run.survey
    run.survey = lambda score, passing: {
        **survey(score, passing),
        "loss": np.where(few, 0.8, 0.2) + 0.01 * jitter(data),
    }
    run.minimize = lambda module, loss: run.losses.append(loss.item()) if module == "net" else None
    method.epoch(1, run)
    streams = run.streams[0]
    share = len(streams["mismatched"]) / len(streams["matched"])
    assert share == pytest.approx(0.25, abs=0.01)
    weight = 2.0 * share if per == "pair" else 2.0
    assert run.losses[-1] == pytest.approx(run.logged["loss"] + weight * run.logged["rematch"], rel=1e-5)


def jitter(data):
    return np.random.default_rng(0).standard_normal(len(data))


@pytest.mark.parametrize("cost", ["score", "cosine"])
def test_a_fixed_cost_has_nothing_to_learn(data, cost):
    method, run = make(data, two_groups=True, cost={"kind": cost})
    method.epoch(1, run)
    assert set(method.modules) == {"net"}
    assert run.updates == ["net"]


@pytest.mark.parametrize(
    "values",
    [
        {"transport": {"mass": 1.0}},
        {"transport": {"mass": 0.05}},
        {"transport": {"forbid_given": "never"}},
        {"transport": {"forbid_given": "always"}},
        {"divergence": "kl"},
        {"divergence": "cross_entropy"},
        {"divergence": "js"},
        {"warmup_loss": "triplet"},
        {"warmup_loss": "infonce"},
        {"matched_loss": "triplet", "matched_reduction": "sum"},
        {"split": {"signal": "triplet_mean"}},
        {"split": {"signal": "triplet_hardest"}},
        {"split": {"mixture": "gaussian"}},
        {"transport": {"entropy": 0.5, "entropy_on": "plan"}},
        {"cost": {"kind": "paper", "rate": 0.01}},
        {"candidates": {"kind": "queue", "size": 128}},
        {"candidates": {"kind": "queue", "size": 128, "queue_sides": "both"}},
        {"candidates": {"kind": "queue", "size": 128, "queue_features": "stale"}},
        {"candidates": {"kind": "batch"}},
        {"candidates": {"kind": "nearest", "size": 48}},
        {"siblings": {"when": "never"}},
        {"siblings": {"when": "always"}},
        {"transport": {"mass": 0.1}},
        {"config": L2RMConfig.paper().model_copy(update={"warmup_epochs": 1})},
        {"config": L2RMConfig.official().model_copy(update={"warmup_epochs": 1})},
    ],
    ids=str,
)
def test_every_ablation_is_a_value(data, values):
    method, run = make(data, two_groups=True, **values)
    for epoch in range(3):
        method.epoch(epoch, run)
    assert run.updates[-1] == "net"
    assert "mass" in run.logged
    assert np.isfinite(run.losses).all()


@pytest.mark.parametrize("backbone", [SGRConfig(embed=16, sim=8, word_dim=8), SAFConfig(embed=16, sim=8, word_dim=8)])
@pytest.mark.parametrize("cost", ["paper", "learned", "cosine"])
def test_a_cost_leaves_the_network_alone(data, backbone, cost):
    """Its running statistics too, also with a single hidden image, whose statistics would mean nothing."""
    method, run = make(data, cost={"kind": cost}, backbone=backbone)
    net = method.net.train()
    matched, mismatched = (data.batch(np.arange(at, at + BATCH)) for at in (0, BATCH))
    before = {name: buffer.clone() for name, buffer in net.named_buffers()}
    images, texts = run.encode(net, matched)
    others = run.encode_images(net, mismatched)
    for _ in range(10):
        if cost == "cosine":
            method.rematching.transport_cost(torch.zeros(BATCH, BATCH), images, texts)
        else:
            assert torch.isfinite(method.rematching.teach(run, images, texts, others))
    assert net.training
    assert before
    for name, buffer in net.named_buffers():
        assert torch.equal(buffer, before[name]), name


def test_teaching_hides_matched_images_among_others_only(data):
    """However few others there are: one that stood there twice would be taught as a wrong answer to its own text."""
    method, run = make(data, two_groups=True, candidates={"kind": "nearest", "size": 4})
    seen = []
    real = method.cost.teach
    method.cost.teach = lambda scores, slots, keys: (
        seen.append((tuple(scores.shape), len(slots))) or real(scores, slots, keys)
    )
    method.epoch(1, run)
    assert seen
    assert all(shape == (4, BATCH) and hidden <= 4 for shape, hidden in seen)


@pytest.mark.parametrize(
    "values",
    [
        {"cost": {"kind": "paper"}, "candidates": {"kind": "queue", "queue_sides": "both"}},
        {"transport": {"stop": "potentials", "mass": 1.0}},
        {"transport": {"stop": "potentials", "entropy_on": "plan"}},
    ],
    ids=str,
)
def test_values_that_do_not_go_together_are_refused_before_training(values):
    with pytest.raises(ValidationError, match="cost.kind=paper is a layer|transport.stop=potentials is the released"):
        L2RMConfig(**values)


def test_siblings_without_weight_are_not_trusted_unseen(data):
    for when, trusted in (("auto", False), ("always", True)):
        method, run = make(data, siblings={"when": when, "weight": 0.0})
        method.epoch(0, run)
        assert method.siblings.trusted == trusted


def test_the_given_pairs_are_forbidden_in_the_plan(data):
    method, run = make(data, transport={"forbid_given": "always"})
    method.epoch(1, run)
    batch = data.batch(np.arange(BATCH))
    same = torch.from_numpy(data.table.image_rows[:BATCH])
    given = same[:, None] == same[None, :]  # the pair itself, and what else is shown with its image
    method.candidates.pool = None
    rematcher = method.rematcher()
    assert rematcher.rematch(run, batch, batch).plan[given].abs().max() == 0
    rematcher.forbid = False
    assert rematcher.rematch(run, batch, batch).plan[given].max() > 0


def test_auto_forbids_only_where_two_groups_show(data, monkeypatch):
    method, run = make(data)
    begin = method.rematching.begin
    for two_groups in (True, False):

        def with_groups(split, apart, *rest, two_groups=two_groups):
            begin(split, two_groups, *rest)

        monkeypatch.setattr(method.rematching, "begin", with_groups)
        method.epoch(1, run)
        assert method.rematching.forbid is two_groups


@pytest.mark.parametrize("features", ["fresh", "stale"])
def test_state_round_trip(data, features):
    method, run = make(data, two_groups=True, candidates={"kind": "queue", "size": 96, "queue_features": features})
    method.epoch(1, run)
    other, _ = make(data, candidates={"kind": "queue", "size": 96, "queue_features": features})
    other.restore(method.state())
    assert np.array_equal(other.identification.losses.losses, method.identification.losses.losses)
    assert other.rematching.forbid == method.rematching.forbid
    assert method.candidates.past
    for found, saved in zip(other.state()["candidates"]["queue"], method.state()["candidates"]["queue"], strict=True):
        assert found.keys() == saved.keys()
        assert all(torch.equal(found[name], saved[name]) for name in saved)


def test_what_a_method_gets_holds_no_truth(data):
    batch = data.batch(np.arange(4))
    assert set(batch.__slots__) == {"images", "image_mask", "texts", "text_mask", "pair_ids"}


def test_the_mass_follows_from_what_the_survey_found(data, monkeypatch):
    """As many texts are moved as find an image that suits them like a matched one, times how surely they need one."""
    method, run = make(data, candidates={"kind": "batch"}, siblings={"when": "never"})
    mismatched = np.arange(len(data)) % 2 == 0
    monkeypatch.setattr("mispair.functional.loss_split.decide_mismatched", lambda *_, **__: mismatched.copy())
    best = np.where(np.arange(len(data)) % 8 == 0, 0.9, 0.1)  # a quarter of the mismatched
    found = {"given": np.full(len(data), 0.5), "best": best}
    survey = run.survey
    monkeypatch.setattr(run, "survey", lambda score, passing: {**survey(score), **found})
    method.epoch(1, run)
    sure = run.columns["posterior"][mismatched].mean()
    assert method.rematching.mass == pytest.approx(float(np.clip(best[mismatched].round().mean() * sure, 0.05, 0.5)))
    fixed, run = make(data, transport={"mass": 0.3})
    fixed.epoch(1, run)
    assert fixed.rematching.mass == 0.3


def test_siblings_teach_each_other_from_the_first_epoch(data):
    method, run = make(data)
    alone, other = make(data, siblings={"when": "never"})
    method.epoch(0, run)
    alone.epoch(0, other)
    assert run.losses[0] > other.losses[0]
    assert run.logged["loss"] == pytest.approx(other.logged["loss"])
