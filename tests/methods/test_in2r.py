"""IN2R: networks that begin alike, queues of trusted vectors, prototypes from neighbours of the same side."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from mispair.methods.base import mean_vectors
from mispair.methods.in2r import IN2R, IN2RConfig, Queue, Refiner
from mispair.models import build_model
from mispair.models.vse import VSEConfig
from mispair.workflows.assemble import input_sizes
from tests.synthetic import RecordingRun

BATCH = 32


def make(data, **values):
    torch.manual_seed(0)
    build = lambda: build_model(VSEConfig(embed=32, word_dim=16, words="bag"), input_sizes(data))  # noqa: E731
    return IN2R(IN2RConfig(**{"neighbours": 3, **values}), build, BATCH), RecordingRun(data, BATCH)


def rows(*values):
    return torch.tensor([[float(value), 0.0] for value in values])


def test_a_queue_keeps_the_newest():
    queue = Queue()
    queue.push(rows(1), rows(-1))
    assert len(queue) == 0, "no room yet"
    queue.resize(3)
    queue.push(rows(1, 2), rows(-1, -2))
    queue.push(rows(3, 4), rows(-3, -4))
    images, texts = queue.vectors
    assert sorted(images[:, 0].tolist()) == [2, 3, 4]
    assert torch.equal(texts, -images + 0.0)
    queue.push(rows(5, 6, 7, 8), rows(-5, -6, -7, -8))
    assert sorted(queue.vectors[0][:, 0].tolist()) == [6, 7, 8]


@pytest.mark.parametrize(("size", "kept"), [(2, [4, 5]), (5, [3, 4, 5])])
def test_a_queue_resized_keeps_the_newest(size, kept):
    queue = Queue()
    queue.resize(3)
    queue.push(rows(1, 2, 3, 4, 5)[2:], rows(1, 2, 3, 4, 5)[2:])
    queue.resize(size)
    assert sorted(queue.vectors[0][:, 0].tolist()) == kept
    queue.push(rows(6), rows(6))
    assert sorted(queue.vectors[0][:, 0].tolist()) == [*kept, 6][-size:]


def test_a_queue_is_saved_as_it_was():
    queue, again = Queue(), Queue()
    queue.resize(3)
    queue.push(rows(1, 2, 3), rows(1, 2, 3))
    queue.push(rows(4), rows(4))
    state = queue.state()
    queue.push(rows(9), rows(9))
    again.restore(state, torch.device("cpu"))
    again.push(rows(5), rows(5))
    assert sorted(again.vectors[0][:, 0].tolist()) == [3, 4, 5]


def test_a_refiner_gives_one_unit_vector_whoever_comes_first():
    torch.manual_seed(0)
    refiner = Refiner(8).eval()
    neighbours = torch.randn(5, 3, 8)
    found = refiner(neighbours)
    assert found.shape == (5, 8)
    assert torch.allclose(found.norm(dim=1), torch.ones(5), atol=1e-5)
    assert torch.allclose(refiner(neighbours[:, [2, 0, 1]]), found, atol=1e-5)


def test_both_begin_alike_and_learn_apart(data):
    method, run = make(data)
    first, second = (net.state_dict() for net in method.networks.values())
    assert all(torch.equal(value, second[key]) for key, value in first.items())
    method.epoch(0, run)
    assert run.updates == ["a", "b"]


def test_prototypes_need_a_queue_of_the_other(data):
    method, run = make(data)
    method.epoch(1, run)
    assert run.updates == ["a", "refiner_b", "b"], "when a learns first, b has trusted nobody yet"
    method.epoch(2, run)
    assert run.updates[3:] == ["refiner_a", "a", "refiner_b", "b"]


def test_pairs_trusted_above_the_mean_enter_the_queue(data):
    method, run = make(data)
    method.epoch(1, run)
    for student, teacher in (("a", "b"), ("b", "a")):
        split = method._split(run)[teacher]
        trust = 1 - split.p_mismatch
        worthy = ~split.mismatched & (trust >= trust[~split.mismatched].mean())
        assert method.queues[student].size == worthy.sum()
        chosen = run.streams[0 if student == "a" else 1]["matched"][:BATCH]
        assert len(method.queues[student]) == worthy[chosen].sum()


def test_prototypes_are_made_of_what_the_nearest_are_paired_with(data):
    method, run = make(data)
    batch = data.batch(range(BATCH))
    queue = Queue()
    queue.resize(50)
    generator = torch.Generator().manual_seed(0)
    images, texts = (torch.randn(50, 32, generator=generator) for _ in range(2))
    queue.push(images, texts)
    seen = []
    for side in ("texts", "images"):
        method.refiners["a"][side].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    method._prototypes(run, "a", queue, batch)
    own = [mean_vectors(side).detach() for side in run.encode(method.networks["a"], batch)]
    for given, items, sought, taken in zip(seen[:2], own, (images, texts), (texts, images), strict=True):
        for k in range(BATCH):
            best = np.argsort(-(sought @ items[k]).numpy())[:3]
            assert torch.allclose(given[k], taken[best.tolist()])


def test_a_pair_is_held_against_itself_seen_again(data):
    method, run = make(data)
    batch = data.batch(range(BATCH))
    losses, images, texts = (found.detach() for found in method._believed(run, method.networks["a"], batch))
    expected = torch.zeros(BATCH)
    for scores, margin in ((images @ texts.T, 0.2), (images @ images.T, 0.3), (texts @ texts.T, 0.3)):
        for k in range(BATCH):
            rest = [j for j in range(BATCH) if j != k]
            expected[k] += max(0.0, *(float(margin + scores[k, j] - scores[k, k]) for j in rest))
            expected[k] += max(0.0, *(float(margin + scores[j, k] - scores[k, k]) for j in rest))
    assert torch.allclose(losses, expected, atol=1e-5)
    assert torch.allclose(cosine_similarity(images, images), torch.ones(BATCH))
