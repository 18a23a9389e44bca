"""PC2: who is classified how, whose caption a mismatched image gets, and what steadiness is worth."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from mispair.methods.base import mean_vectors
from mispair.methods.pc2 import PC2, PC2Config
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.methods.two_networks import captured
from tests.synthetic import RecordingRun

BATCH = 32


def make(data, **values):
    torch.manual_seed(0)
    build = lambda: build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))  # noqa: E731
    config = PC2Config(**{"warmup_epochs": 1, "noisy_from": 1, "classes": 7, **values})
    return PC2(config, build, BATCH), RecordingRun(data, BATCH)


def test_the_classifier_learns_before_its_network(data):
    method, run = make(data)
    method.epoch(0, run)
    assert run.updates == ["head_a", "a", "head_b", "b"]
    method.epoch(1, run)
    assert run.updates[4:] == ["head_a", "a", "head_b", "b"]
    method.epoch(2, run)  # mismatched images come later, in a step of their own
    assert run.updates[8:] == ["head_a", "a", "a", "head_b", "b", "b"]


def test_warm_up_ranks_the_easier_half_and_classifies_all(data):
    method, run = make(data, warmup_share=0.5, entropy_weight=0.0)
    half, _ = make(data, warmup_share=1.0, entropy_weight=0.0)
    method.epoch(0, run)
    batch = data.batch(range(BATCH))
    images, texts = run.encode(half.networks["a"], batch)
    scores = half.networks["a"].similarity(images, texts).detach()
    hinge = (0.2 + scores - scores.diagonal()[:, None]).clamp(min=0) + (0.2 + scores - scores.diagonal()).clamp(min=0).T
    losses = (hinge.sum(1) - 2 * 0.2) / BATCH
    head = half.heads["a"]
    logits = [head(mean_vectors(side)).detach() for side in (images, texts)]
    crossed = torch.nn.functional.cross_entropy(logits[0], logits[1].argmax(1))
    assert run.losses[1] == pytest.approx(float(losses.sort().values[: BATCH // 2].sum() + crossed), rel=1e-4)


def test_a_mismatched_image_gets_the_caption_of_whom_it_is_classified_like(data):
    method, run = make(data, label_above=0.0)
    for net in method.networks.values():
        net.eval()
    _, (scores, labels, _), *_ = captured(method, run, 2)
    matched = data.batch(run.streams[0]["matched"][:BATCH])
    mismatched = data.batch(run.streams[0]["mismatched"][:BATCH])
    net, head = method.networks["a"], method.heads["a"]
    images, texts = run.encode(net, matched)
    others = run.encode_images(net, mismatched)
    known, asked = (
        normalize(head(mean_vectors(side)).double().softmax(1), dim=1).detach() for side in (images, others)
    )
    for k in range(BATCH):
        likeness = [round(float(asked[k] @ known[j]), 6) for j in range(BATCH)]
        best = int(np.argmax(likeness))
        assert float(labels[k]) == pytest.approx(min(likeness[best], 1.0), abs=1e-5)
        assert float(scores[k, k]) == pytest.approx(
            float((others.values[k, 0] @ texts.values[best, 0]).detach()), abs=1e-5
        )


def test_who_is_classified_like_nobody_has_no_margin(data):
    low, high = make(data, label_above=0.0), make(data, label_above=0.9999)
    for method, _ in (low, high):
        with torch.no_grad():
            for layer in (0, 2):  # an untrained classifier finds everybody alike
                method.heads["a"][layer].weight *= 20
    labels, cut = (captured(method, run, 2)[1][1] for method, run in (low, high))
    assert 0 < (labels > 0.9999).sum() < BATCH, labels
    assert torch.equal(cut, labels.where(labels > 0.9999, 0.0))


def test_steadiness_is_a_second_trust_from_the_second_survey_on(data):
    method, run = make(data)
    method.epoch(1, run)
    assert not method._steady, "nothing to compare with yet"
    before = {name: values.clone() for name, values in method.predicted.items()}
    assert before["a"].shape == (len(data), 7)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in method.networks["b"].parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    splits = method._split(run)
    moved = (method.predicted["b"] * (method.predicted["b"] / before["b"]).log()).sum(1)
    assert method._steady["b"][moved.argmax()] < 0.5 < method._steady["b"][moved.argmin()]
    step = method._stepper("a", "b", splits["b"])
    trust, steady = 1 - splits["b"].p_mismatch, method._steady["b"]
    expected = trust + (1 - trust) * np.where(steady > 0.5, steady, 0)
    assert np.allclose(step.args[1].numpy(), expected, atol=1e-6)


def test_the_state_holds_what_the_last_survey_saw(data):
    method, run = make(data)
    method.epoch(1, run)
    state = method.state()
    again, _ = make(data)
    again.restore(state)
    assert torch.equal(again.predicted["b"], method.predicted["b"])
    method._split(run)
    method.predicted["a"] += 1
    assert not torch.equal(state["predicted"]["a"], method.predicted["a"])
