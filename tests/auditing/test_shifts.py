"""Captions off by some rows: found with offset and start, and only where there are any."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.shifts import Shift, _best_stretch, _stretch, find_shift
from mispair.auditing.space import Space
from tests.auditing.planted import planted


def unit(values):
    return torch.nn.functional.normalize(torch.from_numpy(values - values.mean(0)), dim=1)


def shifts(images, texts):
    rows = np.arange(len(images))
    return described(unit(images), unit(texts), rows, rows)


def described(images, texts, image_rows, text_rows):
    space = Space(images, texts)
    found = find_shift(lambda a, b: space.score(image_rows[a], text_rows[b]), image_rows)
    return None if found is None else found.describe(len(image_rows))


@pytest.mark.parametrize(("by", "start"), [(1, 0), (-3, 600), (17, 300)])
def test_a_shift_is_found_with_its_offset_and_its_start(by, start):
    images, texts, _, _ = planted(rate=0.0, topics=997)
    texts[start:] = np.roll(texts[start:], by, axis=0)
    found = shifts(images, texts)
    assert found is not None
    assert found.kind == "shifted captions"
    rows = f"{abs(by)} row{'s' if abs(by) > 1 else ''}"
    assert f"{rows} further {'down' if by > 0 else 'up'}" in found.evidence
    first = int(found.evidence.split("From row ")[1].split()[0].replace(",", ""))
    assert abs(first - start) <= abs(by) + 2
    assert abs(found.count - (997 - start)) <= 2 * abs(by) + 4
    assert f"{'up' if by > 0 else 'down'} by {rows}" in found.remedy
    assert 0 < len(found.pairs) <= 50


def test_a_shift_is_found_where_an_image_has_several_captions():
    images, captions, _, _ = planted(rate=0.0, topics=997, pairs=499)
    again = captions + 0.05 * np.random.default_rng(0).normal(size=captions.shape).astype(captions.dtype)
    texts = np.stack([captions, again], 1).reshape(-1, captions.shape[1])
    texts[300:] = np.roll(texts[300:], 4, axis=0)
    image_rows, text_rows = np.repeat(np.arange(499), 2), np.arange(998)
    found = described(unit(images), unit(texts), image_rows, text_rows)
    assert found is not None
    assert "4 rows further down" in found.evidence


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_no_shift_where_there_is_none(rate):
    assert shifts(*planted(rate=rate, topics=997)[:2]) is None


def test_the_best_stretch_by_hand():
    assert _best_stretch(np.array([-1.0, 2.0, -1.0, 3.0, -5.0, 1.0])) == (4.0, 1, 3)


@pytest.mark.parametrize(("k", "first", "after"), [(1, 1, 30), (-1, 0, 29), (-4, 0, 26), (4, 4, 30)])
def test_a_stretch_ends_where_the_table_does(k, first, after):
    """Captions in a ring, so that those beyond the end would fit from the other side."""
    rows = np.arange(30)
    space = Space(torch.eye(30), torch.eye(30)[np.roll(rows, k)])
    assert _stretch(space.score, rows, np.full(30, 0.5, np.float32), k, rows)[1:] == (k, first, after)


def test_a_stretch_that_is_too_short_is_none():
    images, texts, _, _ = planted(rate=0.0, topics=997)
    texts[500:515] = np.roll(texts[500:515], 1, axis=0)
    assert shifts(images, texts) is None
    texts[500:560] = np.roll(texts[500:560], 1, axis=0)
    assert shifts(images, texts) is not None


def test_a_shift_inside_says_where_it_ends():
    images, texts, _, _ = planted(rate=0.0, topics=997)
    texts[200:400] = np.roll(texts[200:400], 2, axis=0)
    found = shifts(images, texts)
    assert found is not None
    last = int(found.evidence.split(" to row ")[1].split(",")[0])
    assert abs(last - 397) <= 4


def test_what_chance_explains_is_no_shift(monkeypatch):
    """Captions that fit no image: some stretch at some offset always looks good, and the more of them the better."""

    def found():
        sizes = (60, 300, 900)
        draws = [np.random.default_rng(seed).normal(size=(2, sizes[seed % 3], 8)) for seed in range(30)]
        return [seed for seed, (images, texts) in enumerate(draws) if shifts(images, texts) is not None]

    assert found() == []
    monkeypatch.setattr("mispair.auditing.shifts._CHANCE", np.inf)
    assert len(found()) > 10, "stretches that were held against chance"


def test_pairs_a_shift_leaves_right_are_not_accused():
    """The caption of row r is row r - 2's: the same image's where that has several, or another's with equal words."""
    image_rows = np.repeat(np.arange(25), 4)
    captions = [f"caption {k}" for k in range(100)]
    captions[43] = captions[45] = "the same words"
    p = Shift(offset=2, start=20, stop=60, better=40, worse=0).mismatched(image_rows, captions)
    inside = [row for row in range(20, 60) if row % 4 < 2 and row != 43]
    assert np.flatnonzero(p).tolist() == inside
    assert np.allclose(p[inside], 1 - 5 / 40)


def test_captions_of_one_image_are_not_held_against_each_other():
    """The second keyword of every image fits it better than the first: an order, not a shift."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(300, 16))
    near, far = (meaning + noise * rng.normal(size=meaning.shape) for noise in (0.5, 1.5))
    texts = np.stack([far, near], 1).reshape(600, 16)
    image_rows, text_rows = np.repeat(np.arange(300), 2), np.arange(600)
    assert described(unit(meaning), unit(texts), image_rows, text_rows) is None
    found = described(unit(meaning), unit(np.roll(texts, 1, axis=0)), image_rows, text_rows)
    assert found is not None
    assert "1 row further down" in found.evidence
