"""Shards tell together what one process tells: the same counts, the same rate, the same probabilities."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from mispair.auditing.embeddings import GivenPairs
from mispair.auditing.quick import quick_audit
from mispair.errors import InputError
from mispair.functional.detection import auroc
from mispair.progress import silent
from mispair.scale.calibration import calibrate_counts
from mispair.scale.evidence import BLOCK, Measure, blocks_of
from mispair.scale.frame import draw_landmarks, make_frame
from mispair.scale.hashing import uniform
from mispair.scale.statistics import gather, load_statistics, merge, save_statistics
from tests.scale.many import vectors


def judged(data, frame, statistics):
    calibration = calibrate_counts(statistics, frame.full, frame.near).full
    return calibration, calibration.p_mismatch(statistics.suspicion, statistics.crowd)


@pytest.mark.parametrize("kind", [{}, {"per_image": 5, "pairs": 3000}, {"crowded": 0.1}])
def test_any_number_of_shards_equals_one(kind):
    data, _, _ = vectors(**kind)
    frame = make_frame(data)
    whole = gather(data, frame, silent)
    calibration, p = judged(data, frame, whole)
    for of in (1, 2, 7):
        again = make_frame(data)  # another process makes its own
        parts = [gather(data, again, silent, shard, of) for shard in range(1, of + 1)]
        assert sum(part.stop - part.start for part in parts) == len(data)
        merged = merge(parts)
        assert all(np.array_equal(getattr(merged, f.name), getattr(whole, f.name)) for f in fields(whole))
        other, q = judged(data, again, merged)
        assert abs(other.estimate.rate - calibration.estimate.rate) < 1e-6
        assert np.abs(q - p).max() < 1e-5


def test_the_answer_is_that_of_the_audit_that_holds_everything():
    data, wrong, _ = vectors(2201)
    frame = make_frame(data)
    calibration, p = judged(data, frame, gather(data, frame, silent))
    rows = np.arange(len(data))
    known = quick_audit(GivenPairs(data.image_vectors(rows), data.text_vectors(rows)))
    assert abs(calibration.estimate.rate - known.facts.rate) < 0.01
    assert auroc(p, wrong) > auroc(known.p_mismatch, wrong) - 0.005
    assert np.abs(p - known.p_mismatch).mean() < 0.02


def test_a_caption_on_many_images_is_judged_apart():
    data, _, _ = vectors(crowded=0.1)
    frame = make_frame(data)
    assert frame.crowded == ("image not found",)
    statistics = gather(data, frame, silent)
    calibration, p = judged(data, frame, statistics)
    shown = np.array([caption == "Image not found" for caption in data.captions])
    assert statistics.crowded.tolist() == [shown.sum()]
    assert np.allclose(p[shown], 1 - 1 / shown.sum())
    assert statistics.given.sum() == (~shown).sum()
    rate = (calibration.estimate.rate * (~shown).sum() + p[shown].sum()) / len(data)
    assert calibration.overall(calibration.estimate.rate) == pytest.approx(rate)


def test_pairs_of_one_image_widen_the_interval():
    data, _, _ = vectors(3000, per_image=5)
    frame = make_frame(data)
    statistics = gather(data, frame, silent)
    assert statistics.image_pairs.sum() == 3000
    assert (statistics.image_pairs == 5).all()
    shares = statistics.image_suspects / 5
    assert 0 < shares.mean() < 1


def test_measured_by_hand():
    data, _, _ = vectors(300)
    frame = make_frame(data)
    rows = np.arange(300)
    assert np.array_equal(frame.landmarks, rows), "all pairs are landmarks where they are few"
    a, b = frame.unit(data.image_vectors(rows), 0).numpy(), frame.unit(data.text_vectors(rows), 1).numpy()
    found = Measure(frame).of(rows, rows, data.image_vectors(rows), data.text_vectors(rows))
    product = a @ b.T
    score = product.diagonal()
    assert np.allclose(found.score, score, atol=1e-6)
    assert np.array_equal(found.caption_above, (product >= score[:, None] - 1e-6).sum(1) - 1)
    assert np.array_equal(found.image_above, (product >= score - 1e-6).sum(0) - 1)
    for k in (0, 17, 299):
        near = np.argsort(-(a @ a[k]), kind="stable")[1:11]
        assert np.isclose(found.evidence[k, 3], -(b[near] @ b[k]).mean(), atol=1e-5)
        near = np.argsort(-(b @ b[k]), kind="stable")[1:11]
        assert np.isclose(found.evidence[k, 4], -(a[near] @ a[k]).mean(), atol=1e-5)


def test_re_paired_ones_are_measured_as_given_ones_would_be():
    data, _, _ = vectors(300)
    frame = make_frame(data)
    rows = np.arange(300)
    found = Measure(frame).of(rows, rows, data.image_vectors(rows), data.text_vectors(rows), repair=1.0)
    partner = (uniform(rows, 2) * 300).astype(np.int64)
    partner[partner == rows] += 1
    partner %= 300
    again = Measure(frame).of(partner, rows, data.image_vectors(rows), data.text_vectors(partner), repair=0.0)
    assert len(found.repaired) == 300
    assert np.allclose(found.repaired, again.evidence, atol=1e-5)


def test_the_nearest_of_many_are_those_of_all():
    import torch

    from mispair.scale.evidence import _nearest

    product = torch.randn(37, 1024, generator=torch.Generator().manual_seed(0))
    values, columns = _nearest(product)
    assert torch.equal(values, product.topk(15, 1).values)
    assert torch.equal(product.gather(1, columns), values)


def test_shards_are_cut_between_blocks():
    for of in (1, 2, 7, 50):
        every = [block for shard in range(1, of + 1) for block in blocks_of(3001, shard, of)]
        assert every == blocks_of(3001)
    assert blocks_of(3001)[-1] == (5 * BLOCK, 3001)


def test_landmarks_are_always_the_same():
    assert np.array_equal(draw_landmarks(10), np.arange(10))
    drawn = draw_landmarks(1_000_000)
    assert len(np.unique(drawn)) == 512
    assert np.array_equal(drawn, draw_landmarks(1_000_000))
    assert abs(drawn.mean() - 500_000) < 30_000


def test_a_hash_of_the_row_is_uniform():
    drawn = uniform(np.arange(100_000), 1)
    assert np.abs(np.histogram(drawn, 10, (0, 1))[0] - 10_000).max() < 500
    assert abs(np.corrcoef(drawn, uniform(np.arange(100_000), 2))[0, 1]) < 0.02


def test_what_cannot_be_judged():
    with pytest.raises(InputError, match="at least 20, got 19"):
        make_frame(vectors(19)[0])
    data, _, _ = vectors(100)
    data.texts.store.array[:] = 1.0
    with pytest.raises(InputError, match="text embeddings looked at are the same"):
        make_frame(data)
    data, _, _ = vectors(100)
    data.images.store.array[7] = np.nan
    with pytest.raises(InputError, match="images must be finite, but row 7"):
        make_frame(data)


def test_statistics_come_back_and_damaged_ones_are_refused(tmp_path):
    data, _, _ = vectors(600)
    path = tmp_path / "s.npz"
    statistics = gather(data, make_frame(data), silent)
    save_statistics(statistics, path)
    found = load_statistics(path)
    assert all(np.array_equal(getattr(found, f.name), getattr(statistics, f.name)) for f in fields(found))
    content = path.read_bytes()
    for damaged in (b"", content[:-100], content[:200], b"PK" + content[2:400]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"s\.npz is damaged"):
            load_statistics(path)
    path.write_bytes(content)
    with np.load(path) as stored:
        np.savez_compressed(path.with_name("packed.npz"), **stored)  # a gigabyte of zeros would fit into a megabyte
    with pytest.raises(InputError, match=r"packed\.npz is damaged"):
        load_statistics(path.with_name("packed.npz"))
    statistics.suspicion[5] = np.nan
    save_statistics(statistics, path)
    with pytest.raises(InputError, match=r"s\.npz is damaged"):
        load_statistics(path)
