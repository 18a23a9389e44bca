"""Noise: exact rates, both protocols, both lengths, fixed points counted as clean."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mispair.data.config import NoiseConfig
from mispair.data.noise import (
    apply,
    chosen_count,
    corrupt,
    make_index,
    noise_hash,
    permute,
    read_index,
    repeat,
    shift,
    write_index,
)
from mispair.data.pair_table import PairTable
from mispair.errors import InputError
from mispair.types import PairBatch


def pairs(images: int = 101, per_image: int = 5) -> PairTable:
    return PairTable(np.repeat(np.arange(images), per_image), np.arange(images * per_image))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.integers(2, 97), st.integers(1, 5), st.integers(0, 100), st.integers(0, 9))
def test_image_protocol(images: int, per_image: int, percent: int, seed: int) -> None:
    table = pairs(images, per_image)
    index = permute(table, percent / 100, "image", rng(seed))
    assert index.chosen == percent * images // 100
    assert index.stored.shape == (images,)
    assert sorted(index.stored) == list(range(images)), "a permutation"
    noisy = apply(table, index)
    assert noisy.truth is not None
    assert noisy.truth.mismatched.sum() <= index.chosen_pairs == index.chosen * per_image
    groups = noisy.image_rows.reshape(images, per_image)
    assert (groups == groups[:, :1]).all(), "an image moves with all its captions"
    assert np.array_equal(noisy.truth.mismatched, noisy.image_rows != table.image_rows)


@given(st.integers(2, 97), st.integers(1, 5), st.integers(0, 100), st.integers(0, 9))
def test_caption_protocol(images: int, per_image: int, percent: int, seed: int) -> None:
    table = pairs(images, per_image)
    index = permute(table, percent / 100, "caption", rng(seed))
    assert index.chosen == percent * len(table) // 100
    assert index.stored.shape == (len(table),)
    assert (np.bincount(index.stored, minlength=images) == per_image).all(), "every image as often as before"
    noisy = apply(table, index)
    assert noisy.truth is not None
    assert noisy.truth.mismatched.sum() <= index.chosen


def test_five_captions_of_one_image_part_under_the_caption_protocol_only() -> None:
    for protocol, together in (("image", True), ("caption", False)):
        noisy = corrupt(pairs(), 0.8, protocol, rng())  # type: ignore[arg-type]
        groups = noisy.image_rows.reshape(-1, 5)
        assert (groups == groups[:, :1]).all() == together


def test_rate_is_exact_where_floating_point_is_not() -> None:
    assert chosen_count(100, 0.29) == 29  # 0.29 * 100 = 28.999999999999996
    assert chosen_count(29_000, 0.2) == 5_800
    assert chosen_count(113_287, 0.6) == 67_972


def test_fixed_points_count_as_clean() -> None:
    fixed = 0
    for seed in range(30):
        index = permute(pairs(5), 0.6, "image", rng(seed))
        noisy = apply(pairs(5), index)
        assert noisy.truth is not None
        fixed += index.chosen_pairs - int(noisy.truth.mismatched.sum())
        assert (noisy.truth.mismatched == (noisy.image_rows != np.repeat(np.arange(5), 5))).all()
    assert fixed > 0


def test_irregular_captions_per_image() -> None:
    table = PairTable(np.array([0, 0, 0, 1, 2, 2]), np.arange(6))
    index = permute(table, 1.0, "image", rng(1))
    assert np.array_equal(index.images, index.stored[table.image_rows])


def test_same_seed_same_index_and_rates_differ() -> None:
    one = make_index(pairs(), NoiseConfig(rate=0.4, seed=3))
    assert one.hash == make_index(pairs(), NoiseConfig(rate=0.4, seed=3)).hash
    others = [NoiseConfig(rate=0.4, seed=4), NoiseConfig(rate=0.2, seed=3), NoiseConfig(rate=0.4, protocol="caption")]
    assert one.hash not in {make_index(pairs(), other).hash for other in others}


@pytest.mark.parametrize("kind", ["image", "caption"])
def test_both_lengths_are_read_and_hash_alike(tmp_path: Path, kind: str) -> None:
    table = pairs()
    index = make_index(table, NoiseConfig(rate=0.4, protocol=kind))  # type: ignore[arg-type]
    write_index(tmp_path / "short.npy", index)
    np.save(tmp_path / "long.npy", index.images)
    for name in ("short.npy", "long.npy"):
        read = read_index(tmp_path / name, table)
        assert np.array_equal(read.images, index.images)
        assert read.hash == index.hash == noise_hash(index.images)


def test_a_published_index_of_small_integers(tmp_path: Path) -> None:
    np.save(tmp_path / "i.npy", np.array([1, 0, 2], np.int32))
    assert read_index(tmp_path / "i.npy", pairs(3, 2)).images.tolist() == [1, 1, 0, 0, 2, 2]


def test_one_caption_per_image_has_one_length(tmp_path: Path) -> None:
    np.save(tmp_path / "i.npy", np.array([2, 0, 1]))
    assert read_index(tmp_path / "i.npy", pairs(3, 1)).images.tolist() == [2, 0, 1]


def test_shift_by_hand() -> None:
    noisy = shift(pairs(6, 1), by=1, start=2)
    assert noisy.image_rows.tolist() == [0, 1, 5, 2, 3, 4]
    assert noisy.truth is not None
    assert noisy.truth.mismatched.tolist() == [False, False, True, True, True, True]


def test_shift_within_one_image_stays_right() -> None:
    noisy = shift(pairs(4, 5), by=1, start=0)
    assert noisy.truth is not None
    assert noisy.truth.mismatched.sum() == 4, "one caption in five crosses to the next image"


def test_shift_takes_the_last_share() -> None:
    index = make_index(pairs(10, 1), NoiseConfig(rate=0.3, shift=1))
    assert index.images.tolist() == [0, 1, 2, 3, 4, 5, 6, 9, 7, 8]


def test_repeat_shows_one_caption_with_many_images(tmp_path: Path) -> None:
    table = pairs(50, 2)
    noisy = repeat(table, 0.3, rng())
    values, counts = np.unique(noisy.text_rows, return_counts=True)
    text = int(values[counts.argmax()])
    assert counts.max() in (30, 31)
    assert np.array_equal(noisy.image_rows, table.image_rows)
    assert noisy.truth is not None
    own = noisy.image_rows == text // 2
    assert np.array_equal(noisy.truth.mismatched, (noisy.text_rows == text) & ~own)
    index = make_index(table, NoiseConfig(rate=0.3, repeat=True))
    write_index(tmp_path / "r.npy", index)
    read = read_index(tmp_path / "r.npy", table)
    assert np.array_equal(read.texts, index.texts)
    assert read.hash == index.hash != noise_hash(table.image_rows)


def test_repeat_draws_from_as_many_captions_as_asked_for() -> None:
    table = pairs(400, 2)
    index = make_index(table, NoiseConfig(rate=0.5, repeat=5, seed=1))
    changed = index.texts != table.text_rows
    assert 380 <= changed.sum() <= 400, "half of 800 pairs, less those that drew their own caption"
    values, counts = np.unique(index.texts[changed], return_counts=True)
    assert len(values) == 5
    assert counts.min() > 40, "each about as often as the others"


def test_truth_survives_noise_on_noise() -> None:
    table = corrupt(corrupt(pairs(), 0.5, "image", rng(1)), 0.5, "caption", rng(2))
    assert table.truth is not None
    assert np.array_equal(table.truth.image_rows, np.repeat(np.arange(101), 5))


def test_truth_is_out_of_reach_of_a_batch() -> None:
    assert {field.name for field in fields(PairBatch)} == {"images", "image_mask", "texts", "text_mask", "pair_ids"}


@pytest.mark.parametrize("rate", [-0.1, 1.1, 40.0, float("nan")])
def test_impossible_rates(rate: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        permute(pairs(), rate, "image", rng())


@pytest.mark.parametrize(
    "wrong",
    [
        {"shift": 1, "repeat": True},
        {"index": "x.npy", "rate": 0.2},
        {"start": 3},
        {"start": 3, "shift": 1, "rate": 0.1},
        {"rate": 2},
        {"protocol": "word"},
        {"ratio": 0.2},
    ],
)
def test_configurations_that_contradict_themselves(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        NoiseConfig(**wrong)  # type: ignore[arg-type]


def test_the_oracle_keeps_what_belongs_together_and_nothing_else() -> None:
    noisy = corrupt(pairs(53, 5), 0.6, "image", rng(3))
    assert noisy.truth is not None
    kept = noisy.truly_matched()
    belongs = [(int(text) // 5, int(text)) for text in noisy.text_rows]
    given = list(zip(noisy.image_rows.tolist(), noisy.text_rows.tolist(), strict=True))
    expected = [pair for pair, right in zip(given, belongs, strict=True) if pair == right]
    assert list(zip(kept.image_rows.tolist(), kept.text_rows.tolist(), strict=True)) == expected
    assert kept.truth is not None
    assert 0 < len(kept) < len(noisy)
    assert not kept.truth.mismatched.any()
