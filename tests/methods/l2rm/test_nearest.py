"""The nearest images of the whole mismatched set, against a loop over everybody."""

import numpy as np
import pytest
import torch

from mispair.methods.l2rm.nearest import NearestImages, given_cosines

IMAGES, PER_IMAGE, WIDTH = 31, 5, 7


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    image_of = rng.permutation(np.repeat(np.arange(IMAGES), PER_IMAGE))
    pictures = rng.normal(size=(IMAGES, WIDTH)).astype(np.float32)
    pictures /= np.linalg.norm(pictures, axis=1, keepdims=True)
    texts = rng.normal(size=(len(image_of), WIDTH)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    mismatched = np.flatnonzero(image_of < 20)
    return image_of, pictures[image_of], texts, mismatched


def text_vector(world, pair, together):
    image_of, _, texts, mismatched = world
    group = [i for i in mismatched if image_of[i] == image_of[pair]] if together else [pair]
    return texts[group].mean(0)


@pytest.mark.parametrize("together", [True, False])
def test_nearest_images_and_cosines_equal_a_loop(world, together):
    image_of, images, texts, mismatched = world
    pool = NearestImages.gather(mismatched, image_of, images, texts, together, 3, chunk=6)
    assert len(pool.ids) == 20
    for pair in mismatched:
        vector = text_vector(world, pair, together)
        cosines = {image_of[i]: float(images[i] @ vector) for i in mismatched if image_of[i] != image_of[pair]}
        expected = sorted(cosines, key=cosines.__getitem__, reverse=True)[:3]
        rows = pool.nearest[pool.text_row[pair]]
        assert [image_of[pool.ids[row]] for row in rows] == expected
        found = pool.similarity(torch.from_numpy(mismatched), torch.tensor([pair]))[:, 0]
        assert np.allclose(found, images[mismatched] @ vector, atol=2e-3)  # kept in half precision
        assert pool.best()[pool.text_row[pair]] == pytest.approx(cosines[expected[0]], abs=2e-3)


def test_every_text_brings_its_nearest_first(world):
    image_of, images, texts, mismatched = world
    pool = NearestImages.gather(mismatched, image_of, images, texts, False, 4)
    ids = mismatched[:3]
    shown = image_of[pool.around(ids, 9)]
    assert len(set(shown)) == 9
    nearest = {image_of[pool.ids[pool.nearest[pool.text_row[i], 0]]] for i in ids}
    assert set(shown[: len(nearest)]) == nearest


def test_few_images_come_again(world):
    image_of, images, texts, mismatched = world
    pool = NearestImages.gather(mismatched, image_of, images, texts, True, 4)
    shown = image_of[pool.around(mismatched[:5], 47)]
    assert len(shown) == 47
    assert len(set(shown)) == 20


def test_the_cosine_of_given_pairs(world):
    image_of, images, texts, _ = world
    alone = given_cosines(image_of, images, texts, False)
    assert np.allclose(alone, (images * texts).sum(1), atol=1e-6)
    together = given_cosines(image_of, images, texts, True)
    pair = 11
    group = np.flatnonzero(image_of == image_of[pair])
    assert together[pair] == pytest.approx(float(images[pair] @ texts[group].mean(0)), abs=1e-6)


def test_one_image_is_its_own_nearest_rather_than_nobody():
    pool = NearestImages.gather(np.arange(2), np.zeros(2, np.int64), np.ones((2, 3)), np.ones((2, 3)), False, 4)
    assert pool.nearest.tolist() == [[0], [0]]
