"""What the others say about a pair: against leaving out by hand, and on pairs that were planted."""

import numpy as np
import pytest
import torch

from mispair.errors import InputError
from mispair.functional.detection import auroc
from mispair.functional.leave_one_out import SHRINKAGE, OtherPairs, disagreement_with_others, predict_left_out


def ridge(x, y, weight, at, shrinkage):
    """The slow, obvious way, with the ridge of all rows: (n, F), (n, D), (n,), (F,) -> (D,)."""
    gram = (x * weight[:, None]).T @ x
    return at @ torch.linalg.solve(gram + shrinkage, (x * weight[:, None]).T @ y)


def test_leaving_out_is_leaving_out(monkeypatch):
    torch.manual_seed(0)
    features, targets, weight = torch.randn(23, 5), torch.randn(23, 3), torch.rand(23) + 0.1
    monkeypatch.setattr("mispair.functional.leave_one_out.SHRINKAGE", (0.1,))
    found = predict_left_out(features, targets, weight)
    x = features - features.mean(0)
    x = torch.cat([x / x.std(), torch.ones(23, 1)], 1)
    penalty = 0.1 * torch.linalg.eigvalsh((x * weight[:, None]).T @ x).mean() * torch.eye(6)
    for row in range(23):
        rest = torch.arange(23) != row
        expected = ridge(x[rest], targets[rest], weight[rest], x[row], penalty)
        assert torch.allclose(found[row], expected, atol=1e-4), row


def test_image_and_text_are_both_left_out(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr("mispair.functional.leave_one_out.SHRINKAGE", (0.1,))
    image_of = np.arange(34) % 17
    features, texts, trust = torch.randn(17, 4), torch.randn(34, 3), np.random.default_rng(0).uniform(0.1, 1, 34)
    others = OtherPairs(features, texts, image_of, trust)
    x = features - features.mean(0)
    x = torch.cat([x / x.std(), torch.ones(17, 1)], 1)
    penalty = 0.1 * torch.linalg.eigvalsh((x * others.weight[:, None]).T @ x).mean() * torch.eye(5)
    images, pairs = np.arange(17).repeat(34), np.tile(np.arange(34), 17)
    found = others.disagreement(images, pairs)
    for cell, (image, pair) in enumerate(zip(images, pairs, strict=True)):
        rest = (torch.arange(17) != image) & (torch.arange(17) != image_of[pair])
        predicted = ridge(x[rest], others.target[rest], others.weight[rest], x[image], penalty)
        expected = -torch.nn.functional.cosine_similarity(predicted, others.texts[pair], dim=0)
        assert found[cell] == pytest.approx(float(expected), abs=1e-3)


def test_the_shrinkage_that_predicts_best_is_taken(monkeypatch):
    torch.manual_seed(0)
    features, targets = torch.randn(60, 20), torch.randn(60, 4)  # nothing to predict: shrink as far as possible
    found = predict_left_out(features, targets, torch.ones(60))
    monkeypatch.setattr("mispair.functional.leave_one_out.SHRINKAGE", (max(SHRINKAGE),))
    assert torch.equal(found, predict_left_out(features, targets, torch.ones(60)))


def planted(pairs=400, per_image=1, seed=0):
    rng = np.random.default_rng(seed)
    images = pairs // per_image
    features = rng.normal(size=(images, 12))
    meaning = features @ rng.normal(size=(12, 8))
    shown = np.arange(images)
    wrong = rng.random(images) < 0.4
    shown[wrong] = np.roll(np.flatnonzero(wrong), 1)
    image_of = np.repeat(shown, per_image)
    texts = np.repeat(meaning, per_image, 0) + rng.normal(size=(pairs, 8))
    return features[image_of], texts, image_of, np.repeat(wrong, per_image)


@pytest.mark.parametrize("per_image", [1, 5])
def test_mismatched_pairs_disagree_like_pairs_mismatched_on_purpose(per_image):
    features, texts, image_of, wrong = planted(per_image=per_image)
    found = disagreement_with_others(features, texts, image_of, np.ones(400), np.random.default_rng(1))
    assert auroc(found.given, wrong) > 0.9
    assert abs(auroc(np.concatenate([found.given[wrong], found.repaired]), np.arange(400 + wrong.sum()) < wrong.sum())
               - 0.5) < 0.12  # fmt: skip


def test_a_pair_teaches_nothing_about_itself():
    """Random texts of unrelated images: every pair has learned its own text, and nobody agrees with the others."""
    rng = np.random.default_rng(0)
    features, texts = rng.normal(size=(200, 150)), rng.normal(size=(200, 6))
    found = disagreement_with_others(features, texts, np.arange(200), np.ones(200), rng)
    assert abs(found.given.mean()) < 0.1


def test_distrusted_pairs_do_not_teach():
    features, texts, image_of, wrong = planted()
    alike = disagreement_with_others(features, texts, image_of, np.ones(400), np.random.default_rng(1))
    told = disagreement_with_others(features, texts, image_of, 1.0 - wrong, np.random.default_rng(1))
    assert told.given[~wrong].mean() < alike.given[~wrong].mean()


def test_arrays_must_go_together():
    with pytest.raises(InputError, match="as many"):
        disagreement_with_others(np.zeros((3, 2)), np.zeros((4, 2)), np.arange(4), np.ones(4), np.random.default_rng(0))


def test_only_the_ratio_of_the_weights_counts():
    torch.manual_seed(1)
    features, targets, weight = torch.randn(31, 5), torch.randn(31, 3), torch.rand(31) + 0.1
    found = predict_left_out(features, targets, weight)
    for scale in (1e-3, 1e3):
        assert torch.allclose(found, predict_left_out(features, targets, weight * scale), atol=1e-4)


@pytest.mark.parametrize(("images", "width"), [(60, 1400), (60, 60), (60, 256), (25, 1280), (300, 1400)])
def test_fewer_images_than_features_do_not_give_away_who_was_left_out(images, width):
    """Of centred rows each is minus the sum of the others: a regression that meets all of them would know it."""
    rng = np.random.default_rng(0)
    seen = torch.from_numpy(rng.normal(size=(images, width)).astype(np.float32))
    said = torch.from_numpy(rng.normal(size=(images, 64)).astype(np.float32))
    rows = np.arange(images)
    others = OtherPairs(seen, said, rows, np.ones(images))
    given = others.disagreement(rows, rows)
    repaired = np.concatenate([others.disagreement(rows, np.roll(rows, k)) for k in range(1, 6)])
    assert abs(given.mean() - repaired.mean()) < 0.5 * repaired.std(), (
        "of pairs that have nothing to do with each other"
    )
