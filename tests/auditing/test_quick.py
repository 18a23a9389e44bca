"""quick_audit: better than a cosine threshold, calibrated, proposals that are right, and damage by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mispair
from mispair.auditing import blocks
from mispair.auditing.neighbours import Neighbours
from mispair.errors import InputError
from mispair.functional.detection import auroc, calibration_error
from mispair.functional.leave_one_out import OtherPairs
from tests.auditing.planted import planted


def cosine(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_it_beats_the_cosine_and_is_calibrated(rate):
    a, b, wrong, _ = planted(pairs=1499, noise=1.0, gap=2.0, rate=rate)
    found = mispair.quick_audit(a, b)
    assert auroc(found.p_mismatch, wrong) > max(0.97, auroc(-cosine(a, b), wrong) + 0.03)
    assert abs(found.facts.rate - wrong.mean()) < 0.04
    assert calibration_error(found.p_mismatch, wrong) < 0.05
    assert found.facts.conclusive


@pytest.mark.parametrize("witness", [Neighbours, OtherPairs])
def test_other_pairs_add_to_what_similarity_tells(monkeypatch, witness):
    a, b, wrong, _ = planted(pairs=1499, twisted=0.8)
    nothing = lambda self, rows, cols: np.zeros(len(rows))  # noqa: E731
    for other in (Neighbours, OtherPairs):
        if other is not witness:
            monkeypatch.setattr(other, "disagreement", nothing)
    told = auroc(mispair.quick_audit(a, b).p_mismatch, wrong)
    monkeypatch.setattr(witness, "disagreement", nothing)
    assert told > auroc(mispair.quick_audit(a, b).p_mismatch, wrong) + 0.05


def test_proposals_lead_home_and_swaps_mend_two():
    a, b, _, _ = planted(rate=0.0)
    rng = np.random.default_rng(0)
    others = rng.choice(np.arange(10, len(a)), 150, replace=False)
    order = np.arange(len(a))
    other = int(np.argmin(cosine(np.broadcast_to(a[1], a.shape), a)[:10]))  # two that have nothing in common
    order[[1, other]] = [other, 1]
    order[others] = np.roll(others, 1)
    home = np.argsort(order)
    found = mispair.quick_audit(a, torch.from_numpy(b[order]))
    proposed = found.column("proposed_caption_pair")
    has = ~np.isnan(proposed)
    assert has.sum() > 130
    assert (home[has] == proposed[has]).mean() > 0.95
    image = found.column("proposed_image_pair")
    has = ~np.isnan(image)
    assert (order[has] == image[has]).mean() > 0.95
    assert found.column("swap_with")[1] == other
    assert found.column("swap_with")[other] == 1
    gain = found.column("proposed_caption_gain")
    assert np.nanmin(gain) > 0


def test_lost_captions_are_left_unmatched():
    a, b, _, _ = planted(pairs=797, rate=0.0, noise=0.3)
    strangers = np.random.default_rng(5).normal(size=(60, 32)) * 3
    b[100:160] = strangers
    found = mispair.quick_audit(a, b)
    assert found.is_mismatch_issue[100:160].mean() > 0.9
    assert np.isnan(found.column("proposed_caption_pair")[100:160]).mean() > 0.8


def test_blocks_propose_nearly_what_one_block_proposes(monkeypatch):
    a, b, _, belongs = planted(pairs=997, rate=0.4, noise=0.5)

    def right():
        proposed = mispair.quick_audit(a, b).column("proposed_caption_pair")
        return (proposed == belongs).sum()

    whole = right()
    monkeypatch.setattr(blocks, "_WHOLE", 100)
    monkeypatch.setattr(blocks, "ROWS", 61)
    monkeypatch.setattr(blocks, "COLUMNS", 200)
    assert right() > 0.95 * whole


def test_clean_data_is_left_alone():
    a, b, _, _ = planted(rate=0.0)
    found = mispair.quick_audit(a, b, captions=[f"words {k}" for k in range(len(a))])
    assert found.facts.damage == ()
    assert found.facts.issues == 0
    assert found.facts.rate < 0.01


def test_columns_are_what_they_say():
    a, b, _, _ = planted(pairs=401, rate=0.3)
    found = mispair.quick_audit(a, b, image_ids=range(401), captions=[f"c {k}" for k in range(401)])
    assert np.allclose(found.column("mismatch_score"), 1 - found.p_mismatch)
    assert (found.is_mismatch_issue == (found.p_mismatch > 0.5)).all()
    assert found.facts.issues == found.is_mismatch_issue.sum()
    assert sorted(found.column("look")) == list(range(1, 402))
    first = found.look(1)[0]
    assert abs(first.p_mismatch - 0.5) == pytest.approx(np.abs(found.p_mismatch - 0.5).min())
    for row in found.table.to_pylist():
        if row["proposed_caption_pair"] is not None:
            assert row["proposed_caption"] == f"c {row['proposed_caption_pair']}"
            assert row["proposed_caption_pair"] != row["pair"]
            assert 0 < row["proposed_caption_weight"] <= 1


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (np.zeros((30, 4)), np.zeros((31, 4)), "30 image embeddings and 31 text"),
        (np.ones((30, 4)), np.ones((30, 5)), "width 4 and text embeddings 5"),
        (np.ones(30), np.ones((30, 4)), r"shape \(n, d\), got shape \(30,\)"),
        (np.full((30, 4), np.nan), np.ones((30, 4)), "row 0 holds NaN"),
        (np.eye(5), np.eye(5), "at least 20, got 5"),
    ],
)
def test_what_cannot_be_judged_is_refused(a, b, said):
    with pytest.raises(InputError, match=said):
        mispair.quick_audit(a, b)


@pytest.mark.parametrize("pairs", [40, 211])
@pytest.mark.parametrize("constant", ["images", "texts", "both"])
def test_a_side_that_is_all_alike_is_refused(pairs, constant):
    a, b, *_ = planted(pairs=pairs)
    if constant != "texts":
        a[:] = a[0]
    if constant != "images":
        b[:] = 3 * b[0]
    with pytest.raises(InputError, match="are the same, so nothing tells the pairs apart"):
        mispair.quick_audit(a, b)


def test_few_different_values_give_no_nan():
    """Interpolated quantiles can leave a bin empty, which was a share of nothing."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        a, b = rng.normal(size=(2, 40, 8))
        b[:] = b[:2].repeat(20, 0)
        assert np.isfinite(mispair.quick_audit(a, b).p_mismatch).all(), seed


def test_repeated_image_ids_are_one_image_with_several_captions():
    a, b, _, _ = planted(pairs=400, rate=0.0)
    rng = np.random.default_rng(0)
    texts = np.repeat(b, 5, 0) + 0.1 * rng.normal(size=(2000, b.shape[1]))
    moved = rng.permutation(2000)[:500]
    texts[moved] = texts[np.roll(moved, 1)]
    ids = [f"{k}.png" for k in range(400) for _ in range(5)]
    found = mispair.quick_audit(np.repeat(a, 5, 0), texts, image_ids=ids)
    assert len(found) == 2000
    assert found.column("image_id").tolist() == ids
    assert not any("twin" in damage.evidence for damage in found.facts.damage), "an image is not its own twin"
    assert auroc(found.p_mismatch, np.isin(np.arange(2000), moved)) > 0.97
    assert found.column("image_rank").max() <= 400
    unnamed = mispair.quick_audit(np.repeat(a, 5, 0), texts)
    assert unnamed.column("image_id").tolist() == [str(k // 5 * 5) for k in range(2000)]
    assert np.array_equal(unnamed.p_mismatch, found.p_mismatch), "equal rows are one image without a name too"
    other = np.repeat(a, 5, 0)
    other[1] = a[3]
    with pytest.raises(InputError, match="'0.png' in rows 0 and 1, but their embeddings differ"):
        mispair.quick_audit(other, texts, image_ids=ids)
