"""Where evidence, rematching and damage come together: who is judged with whom."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.judge import Evidence, judge, pair_at_random
from mispair.auditing.space import Space
from mispair.data.pair_table import PairTable
from mispair.errors import InputError
from mispair.functional.detection import auroc
from tests.auditing.planted import planted

PAIRS, SHARED = 401, 60


@pytest.fixture(scope="module")
def shared():
    """One caption takes the place of 60 captions, and its vector stands near every image: a network met it with all."""
    a, b, mismatched, _ = planted(pairs=PAIRS, rate=0.2, topics=PAIRS, noise=0.3, gap=0.0)
    images, texts = (torch.nn.functional.normalize(torch.from_numpy(x), dim=1) for x in (a, b))
    texts[:SHARED] = images[:SHARED]  # as likely with each of them as a caption can be
    captions = ["a photo from our shop"] * SHARED + [f"caption {k}" for k in range(SHARED, PAIRS)]
    every = np.arange(PAIRS)
    table = PairTable(every, every, captions=captions)
    return judge(Space(images, texts), table), mismatched


def test_captions_on_many_images_are_judged_apart(shared):
    verdicts, mismatched = shared
    p = verdicts.p_mismatch
    assert np.allclose(p[:SHARED], 1 - 1 / SHARED), "it is about one of its images at most"
    rest = p[SHARED:]
    assert ((rest > 0.5) == mismatched[SHARED:]).mean() > 0.9
    # And they count in the rate of all.
    expected = (SHARED * (1 - 1 / SHARED) + mismatched[SHARED:].sum()) / PAIRS
    assert verdicts.facts.rate == pytest.approx(expected, abs=0.05)
    assert any(kind.kind == "one caption on many images" for kind in verdicts.facts.damage)


def test_further_evidence_is_told_whom_to_trust():
    """What learns from the pairs learns from each as far as it is matched, and hardly from a caption on many images."""
    a, b, mismatched, _ = planted(pairs=PAIRS, rate=0.3, topics=PAIRS, noise=0.3, gap=0.0)
    images, texts = (torch.nn.functional.normalize(torch.from_numpy(x), dim=1) for x in (a, b))
    captions = ["a photo from our shop"] * SHARED + [f"caption {k}" for k in range(SHARED, PAIRS)]
    every, told = np.arange(PAIRS), []

    def more_evidence(rows, cols, trust):
        told.append(trust)
        return np.zeros((len(rows), 1))

    judge(Space(images, texts), PairTable(every, every, captions=captions), more_evidence=more_evidence)
    assert np.allclose(told[0][:SHARED], 1 / SHARED)
    own, wrong = told[0][SHARED:], mismatched[SHARED:]
    assert own.min() >= 0
    assert own.max() <= 1
    assert own[~wrong].mean() > 0.8
    assert own[wrong].mean() < 0.2


def test_nearly_everybody_under_one_caption_is_refused():
    images = torch.nn.functional.normalize(torch.randn(60, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    every = np.arange(60)
    table = PairTable(every, every, captions=["the same"] * 50 + [f"own {k}" for k in range(10)])
    with pytest.raises(InputError, match="nearly all pairs show a caption that stands with many"):
        judge(Space(images, images), table)


def test_pairs_at_random_are_never_given_ones():
    rng = np.random.default_rng(0)
    image_rows, text_rows = rng.integers(0, 13, 200), rng.integers(0, 17, 200)
    rows, cols = pair_at_random(image_rows, text_rows)
    given = set(zip(image_rows.tolist(), text_rows.tolist(), strict=True))
    assert len(rows) == len(cols) > 100
    assert not given & set(zip(rows.tolist(), cols.tolist(), strict=True))
    assert set(rows) == set(image_rows)
    assert set(cols) == set(text_rows)
    all_rows, all_cols = (grid.ravel() for grid in np.meshgrid(np.arange(5), np.arange(7)))
    with pytest.raises(InputError, match="every image is paired with every text"):
        pair_at_random(all_rows, all_cols)


def test_score_rank_and_probability_are_of_one_judge():
    """Networks that have not seen the pairs judge them: what the row shows is theirs, not that of the given space."""
    a, b, wrong, _ = planted(pairs=301, rate=0.3)
    rows = np.arange(len(a))
    unit = [torch.nn.functional.normalize(torch.from_numpy(x - x.mean(0)), dim=1) for x in (a, b)]
    others = pair_at_random(rows, rows)
    honest = Space(*unit)
    cells = honest.measure(np.concatenate([rows, others[0]]), np.concatenate([rows, others[1]]))
    evidence = cells.evidence(len(a), len(b))
    held = Evidence(cells.take(slice(len(a))), evidence[: len(a)], evidence[len(a) :], *others)
    by_heart = Space(unit[0], unit[0])  # finds every pair right
    found = judge(by_heart, PairTable(rows, rows), held=held)
    assert np.array_equal(found.column("score"), held.cells.score.astype(np.float64))
    assert np.array_equal(found.column("caption_rank"), held.cells.caption_rank)
    assert auroc(found.p_mismatch, wrong) > 0.95
    first = (found.column("caption_rank") == 1) & (found.column("image_rank") == 1)
    assert first.sum() > 100
    assert found.p_mismatch[first].max() < 0.5


def test_further_evidence_is_asked_about_the_cells_that_were_judged():
    """Of networks that have not seen the pairs: the given cells first, then those that they saw re-paired."""
    a, b, wrong, _ = planted(pairs=301, rate=0.3)
    rows = np.arange(len(a))
    unit = [torch.nn.functional.normalize(torch.from_numpy(x - x.mean(0)), dim=1) for x in (a, b)]
    others = pair_at_random(rows, rows, seed=7)
    noise = np.random.default_rng(0).normal(size=(len(a) + len(others[0]), 5))  # held-out networks that know nothing
    cells = Space(*unit).measure(rows, rows)
    held = Evidence(cells, noise[: len(a)], noise[len(a) :], *others)
    asked = []

    def knows(images, texts, trust):
        asked.append((images, texts))
        return np.where((images == texts) & ~wrong[images], -1.0, 1.0)

    verdicts = judge(Space(*unit), PairTable(rows, rows), held=held, more_evidence=knows)
    assert np.array_equal(asked[0][0], np.concatenate([rows, others[0]]))
    assert np.array_equal(asked[0][1], np.concatenate([rows, others[1]]))
    assert auroc(verdicts.p_mismatch, wrong) > 0.98
    assert auroc(judge(Space(*unit), PairTable(rows, rows), held=held).p_mismatch, wrong) < 0.7


@pytest.mark.parametrize("by", [1, -3])
def test_a_shifted_stretch_of_a_sorted_file_is_judged_apart(by):
    """Neighbours are alike, so a caption off by a row fits well; the rate is right all the same."""
    a, b, _, _ = planted(pairs=PAIRS, rate=0.0, topics=PAIRS, noise=0.2, gap=0.0)
    drift = np.cumsum(np.random.default_rng(0).normal(size=a.shape), 0).astype(np.float32)
    off = np.arange(PAIRS)
    off[100 : 100 + PAIRS // 3] = np.roll(off[100 : 100 + PAIRS // 3], by)
    images, texts = (torch.nn.functional.normalize(torch.from_numpy(x), dim=1) for x in (a + drift, (b + drift)[off]))
    every = np.arange(PAIRS)
    verdicts = judge(Space(images, texts), PairTable(every, every))
    truth = off != every
    facts = verdicts.facts
    assert [damage.kind for damage in facts.damage] == ["shifted captions"]
    assert facts.rate_low <= truth.mean() <= facts.rate_high
    assert facts.rate == pytest.approx(truth.mean(), abs=0.04)
    assert ((verdicts.p_mismatch > 0.5) == truth).mean() > 0.95
