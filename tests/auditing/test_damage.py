"""Kinds of damage: each found where it was made, none where nothing was."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.damage import (
    find_crowded_images,
    find_empty_captions,
    find_repeated_captions,
    find_twins,
    shared_captions,
)


def test_a_caption_on_many_images_is_found_and_twice_said_ones_are_not():
    rows = np.arange(400)
    captions = [f"caption {k}" for k in rows]
    captions[10] = captions[11] = captions[12]
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(400, 16)).astype(np.float32))
    assert not shared_captions(captions, rows, images).any()
    assert find_repeated_captions(captions, rows, np.zeros(400)) is None
    for k in range(100, 150):
        captions[k] = "Lorem  ipsum." if k % 2 else "lorem ipsum"
    shared = shared_captions(captions, rows, images)
    assert np.flatnonzero(shared).tolist() == list(range(100, 150))
    assert shared[100] == pytest.approx(0.98)
    found = find_repeated_captions(captions, rows, shared)
    assert found is not None
    assert found.count == 50
    assert "'lorem ipsum' is on 50" in found.evidence
    assert found.pairs == tuple(range(100, 150))


def test_a_label_on_images_that_are_alike_is_no_damage():
    rng = np.random.default_rng(0)
    kinds = rng.integers(8, size=300)
    images = torch.from_numpy((np.eye(8)[kinds] + 0.2 * rng.normal(size=(300, 8))).astype(np.float32))
    captions = [f"a photo of thing {kind}" for kind in kinds]
    assert not shared_captions(captions, np.arange(300), images).any()
    rng.shuffle(captions)
    assert shared_captions(captions, np.arange(300), images).all()


def test_a_label_that_fits_a_third_of_its_images_is_judged_like_any_other():
    rng = np.random.default_rng(0)
    kinds = rng.integers(10, size=1000)
    images = torch.from_numpy((np.eye(10)[kinds] + 0.1 * rng.normal(size=(1000, 10))).astype(np.float32))
    wrong = rng.permutation(1000)[:750]
    kinds[wrong] = rng.permutation(kinds[wrong])
    labels = [f"a photo of thing {kind}" for kind in kinds]
    assert not shared_captions(labels, np.arange(1000), images).any()


def test_a_caption_that_fits_its_many_images_is_no_damage():
    captions = ["two dogs play"] * 8 + [f"caption {k}" for k in range(4000)]
    rows = np.arange(len(captions))
    assert find_repeated_captions(captions, rows, np.zeros(len(rows))) is None
    assert find_repeated_captions(captions, rows, np.where(rows < 8, 0.9, 0.1)) is not None


def test_a_repeated_caption_is_quoted_as_it_stands_in_the_data():
    captions = ["Lemon SVG theme", *["lemon SVG theme."] * 8, *(f"caption {k}" for k in range(100))]
    found = find_repeated_captions(captions, np.arange(len(captions)), np.full(len(captions), 0.9))
    assert found is not None
    assert "'Lemon SVG theme' is on 9" in found.evidence


def test_crowded_images():
    rows = np.repeat(np.arange(50), 5)
    names = [f"im{k}" for k in range(50)]
    assert find_crowded_images(rows, names) is None
    found = find_crowded_images(np.concatenate([rows, np.full(20, 7)]), names)
    assert found is not None
    assert found.count == 25
    assert "'im7' has 25" in found.evidence


@pytest.mark.parametrize(
    "caption", ["", "  ", "...", "12345", "untitled", "IMG_2041", "dsc 0012", "a/b/c.JPG", "https://x.org/1"]
)
def test_captions_that_say_nothing(caption):
    found = find_empty_captions(["a dog", caption, "an image of a test of a picture"])
    assert found is not None
    assert (found.count, found.pairs) == (1, (1,))


def test_captions_that_say_something():
    assert find_empty_captions(["a dog", "dog", "two photos", "Hund läuft", "狗", "an image"]) is None


def test_copies_of_most_images_are_all_found():
    """What is usual among copies is the rounding of their distances, by which nobody can be told."""
    images = torch.randn(40, 16, generator=torch.Generator().manual_seed(0)).repeat_interleave(5, dim=0)
    names = [str(k) for k in range(200)]
    found = find_twins(images, np.arange(200), names, {})
    assert found.count == 200
    found = find_twins(torch.cat([images, -images[:1]]), np.arange(201), [*names, "alone"], {})
    assert found.count == 200, "the one without a copy is nobody's"


def test_twins_here_and_elsewhere():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.normal(size=(101, 16)).astype(np.float32))
    names = [f"im{k}" for k in range(101)]
    rows = np.arange(101)
    other = torch.from_numpy(rng.normal(size=(53, 16)).astype(np.float32))
    assert find_twins(images, rows, names, {"dev": other}) is None
    images[40] = images[3] + 0.01
    other[9] = images[70]
    found = find_twins(images, rows, names, {"dev": other})
    assert found is not None
    assert found.count == 3
    assert found.pairs == (3, 40, 70)
    assert "2 in this split and 1 in dev" in found.evidence
    alone = find_twins(images, rows, names, {})
    assert alone is not None
    assert "2 images have a twin, for instance 'im3' and 'im40'" in alone.evidence, "nothing else was looked at"
