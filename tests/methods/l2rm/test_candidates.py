"""Which images rematching compares: past batches in the queue, and the pool of the nearest."""

import numpy as np
import pytest
import torch

from tests.methods.l2rm.samples import BATCH, make


@pytest.mark.parametrize("sides", ["images", "both"])
def test_queue_widens_what_rematching_sees(data, sides):
    method, run = make(data, two_groups=True, candidates={"kind": "queue", "size": 96, "queue_sides": sides})
    seen = []
    real = method.rematching.plan
    method.rematching.plan = lambda run, scores, *rest: seen.append(tuple(scores.shape)) or real(run, scores, *rest)
    order = np.random.default_rng(0)
    sweep = run.sweep
    run.sweep = lambda step, **streams: sweep(
        step, **{k: order.permutation(v) if isinstance(v, np.ndarray) else v for k, v in streams.items()}
    )
    for _ in range(4):
        method.epoch(1, run)
    assert seen[0] == (BATCH, BATCH)
    assert len(method.candidates.past) == 2
    assert all(rows <= 3 * BATCH and columns == (rows if sides == "both" else BATCH) for rows, columns in seen)
    assert seen[-1][0] > BATCH


@pytest.mark.parametrize("features", ["fresh", "stale"])
def test_the_queue_encodes_anew_or_keeps_what_was(data, features):
    method, run = make(
        data, candidates={"kind": "queue", "size": 64, "queue_sides": "both", "queue_features": features}
    )
    first, second = (data.batch(np.arange(start, start + BATCH)) for start in (0, BATCH))
    before = run.encode(method.net, first)
    method.candidates.gather(run, method.net, first, None)
    with torch.no_grad():
        for weight in method.net.parameters():
            weight += 0.1
    now = run.encode(method.net, second)
    compared = method.candidates.gather(run, method.net, second, None)
    ids = list(range(BATCH, 2 * BATCH)) + list(range(BATCH))
    assert compared.image_ids.tolist() == compared.text_ids.tolist() == ids
    expected = before if features == "stale" else run.encode(method.net, first)
    for both, old, new in zip((compared.images, compared.texts), expected, now, strict=True):
        assert torch.equal(both.values[both.mask], torch.cat([new.values[new.mask], old.values[old.mask]]))
    assert torch.equal(compared.own_texts.values, now[1].values)
    assert len(method.candidates.past) == 1  # a pool of two batches: the present one and one more


def test_state_inside_an_epoch_holds_the_pool(data):
    method, run = make(data, two_groups=True)
    inside = []
    sweep = run.sweep
    run.sweep = lambda step, **streams: (sweep(step, **streams), inside.append(method.state()))
    method.epoch(1, run)
    assert "pool" not in method.state()["candidates"]  # between epochs it would only be in the way
    other, _ = make(data)
    other.restore(inside[0])
    ids = run.streams[-1]["mismatched"][:BATCH]
    assert np.array_equal(other.candidates.pool.around(ids, 64), method.candidates.pool.around(ids, 64))
    pairs = torch.from_numpy(ids)
    assert torch.equal(other.candidates.pool.similarity(pairs, pairs), method.candidates.pool.similarity(pairs, pairs))
    assert other.rematching.mass == method.rematching.mass
