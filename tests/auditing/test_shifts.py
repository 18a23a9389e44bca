"""Captions off by some rows: found with offset and start, and only where there are any."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.judge import pair_at_random
from mispair.auditing.shifts import _best_stretch, _stretch, find_shift
from mispair.auditing.space import Space
from tests.auditing.planted import planted


def unit(values):
    return torch.nn.functional.normalize(torch.from_numpy(values - values.mean(0)), dim=1)


def shifts(images, texts):
    rows = np.arange(len(images))
    return find_shift(unit(images), unit(texts), rows, rows, pair_at_random(rows, rows))


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
    repaired = pair_at_random(image_rows, text_rows)
    found = find_shift(unit(images), unit(texts), image_rows, text_rows, repaired)
    assert found is not None
    assert "4 rows further down" in found.evidence


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_no_shift_where_there_is_none(rate):
    assert shifts(*planted(rate=rate, topics=997)[:2]) is None


def test_the_best_stretch_by_hand():
    assert _best_stretch(np.array([-1.0, 2.0, -1.0, 3.0, -5.0, 1.0])) == (4.0, 1, 3)


@pytest.mark.parametrize(("k", "first", "after"), [(-1, 1, 30), (1, 0, 29), (4, 0, 26), (-4, 4, 30)])
def test_a_stretch_ends_where_the_table_does(k, first, after):
    """Captions in a ring, so that those beyond the end would fit from the other side."""
    rows = np.arange(30)
    space = Space(torch.eye(30), torch.eye(30)[np.roll(rows, k)])
    assert _stretch(space, rows, rows, np.zeros(30, bool), 0.5, k, rows)[1:] == (k, first, after)


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
