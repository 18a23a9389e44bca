"""Streams: every pair once, every batch full, one order for any number of processes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mispair.data.streams import bucketed, lockstep, padding_share, shuffled, survey_batches
from mispair.errors import InputError


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_shuffled_keeps_the_ids_and_the_input() -> None:
    ids = np.arange(100, 150)
    drawn = shuffled(ids, rng())
    assert sorted(drawn) == ids.tolist() != drawn.tolist()
    assert ids.tolist() == list(range(100, 150))


@given(st.integers(1, 60), st.integers(1, 13), st.integers(0, 5))
def test_the_first_stream_is_one_epoch(n: int, batch: int, seed: int) -> None:
    if n < batch:
        return
    batches = [step["a"] for step in lockstep({"a": np.arange(n)}, batch, rng(seed))]
    assert len(batches) == -(-n // batch)
    assert all(len(set(one)) == batch for one in batches), "full, and no pair twice"
    order = np.concatenate(batches)
    assert sorted(order[:n]) == list(range(n))
    assert np.array_equal(order[n:], order[: len(order) - n]), "the tail is filled from the beginning"


@given(st.integers(13, 80), st.integers(13, 40), st.integers(1, 13), st.integers(0, 3))
def test_shorter_streams_start_over_in_a_new_order(n: int, short: int, batch: int, seed: int) -> None:
    steps = list(lockstep({"a": np.arange(n), "b": np.arange(1000, 1000 + short)}, batch, rng(seed)))
    assert all(len(set(step["b"])) == batch for step in steps), "no pair meets itself where two passes join"
    drawn = np.concatenate([step["b"] for step in steps])
    seen = np.unique(drawn, return_counts=True)[1]
    if len(drawn) >= short:
        assert len(seen) == short, "all of them before any for the second time, but for the join"
        assert seen.max() - seen.min() <= 2


def test_passes_differ() -> None:
    order = lockstep({"a": np.arange(400), "b": np.arange(40)}, 40, rng())
    first, second = (step["b"].tolist() for step in islice(order, 2))
    assert sorted(first) == sorted(second)
    assert first != second


def test_a_longer_second_stream_is_cut() -> None:
    assert len(list(lockstep({"a": np.arange(10), "b": np.arange(1000)}, 5, rng()))) == 2


def test_streams_do_not_move_each_other() -> None:
    alone = [step["a"].tolist() for step in lockstep({"a": np.arange(50), "b": np.arange(9)}, 5, rng())]
    other = [step["a"].tolist() for step in lockstep({"a": np.arange(50), "b": np.arange(33)}, 5, rng())]
    assert alone == other


def test_who_waited_from_the_last_pass_stands_anywhere_in_the_next() -> None:
    """Ten pairs in batches of four: two wait, are taken up first, and come again in the new pass, not always last."""
    again_early = []
    for seed in range(30):
        steps = lockstep({"lead": np.arange(40), "b": np.arange(10)}, 4, rng(seed))
        batches = [next(steps)["b"].tolist() for _ in range(5)]
        waited = set(range(10)) - set(batches[0]) - set(batches[1])
        assert waited == set(batches[2][:2])
        assert sorted(batches[2][2:] + batches[3] + batches[4]) == list(range(10)), "a whole pass"
        again_early.append(bool(waited & set(batches[3])))
    assert 5 < sum(again_early) < 29


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_processes_together_see_what_one_sees(world: int) -> None:
    streams = {"a": np.arange(53), "b": np.arange(100, 117)}
    single = list(lockstep(streams, 12, rng(5)))
    parts = [list(lockstep(streams, 12, rng(5), rank, world)) for rank in range(world)]
    for k, step in enumerate(single):
        for name in streams:
            assert np.array_equal(np.concatenate([part[k][name] for part in parts]), step[name])
    survey = list(survey_batches(53, 12, rng(5)))
    shares = [list(survey_batches(53, 12, rng(5), rank, world)) for rank in range(world)]
    for k, batch in enumerate(survey):
        assert np.array_equal(np.concatenate([part[k].pair_ids for part in shares]), batch.pair_ids)
        assert np.array_equal(np.concatenate([part[k].fresh for part in shares]), batch.fresh)


@given(st.integers(1, 60), st.integers(1, 13))
def test_a_survey_sees_every_pair_once(n: int, batch: int) -> None:
    if n < batch:
        return
    batches = list(survey_batches(n, batch, rng()))
    assert all(len(set(one.pair_ids)) == batch for one in batches)
    fresh = np.concatenate([one.pair_ids[one.fresh] for one in batches])
    assert sorted(fresh) == list(range(n))


def test_same_seed_same_order() -> None:
    one, other, third = (
        [step["a"].tolist() for step in lockstep({"a": np.arange(30)}, 7, rng(seed))] for seed in (1, 1, 2)
    )
    assert one == other != third


@pytest.mark.parametrize(
    ("streams", "batch", "rank", "world"),
    [
        ({"a": np.arange(3)}, 4, 0, 1),
        ({"a": np.arange(9), "b": np.arange(0)}, 4, 0, 1),
        ({"a": np.arange(9)}, 4, 0, 3),
        ({"a": np.arange(9)}, 4, 2, 2),
        ({"a": np.arange(9)}, 0, 0, 1),
    ],
)
def test_what_cannot_fill_a_batch_is_refused(streams: dict[str, np.ndarray], batch: int, rank: int, world: int) -> None:
    with pytest.raises(InputError):
        next(lockstep(streams, batch, rng(), rank, world))


def test_a_survey_of_too_few_is_refused() -> None:
    with pytest.raises(InputError, match="smaller batch_size"):
        next(survey_batches(3, 4, rng()))


@given(st.integers(1, 300), st.integers(1, 16), st.integers(1, 5))
def test_buckets_lose_nothing(n: int, batch: int, window: int) -> None:
    lengths = rng(n).integers(3, 40, 500)
    ids = rng(1).permutation(500)[:n]
    assert sorted(bucketed(ids, lengths, batch, rng(), window)) == sorted(ids)


def test_buckets_lower_padding_and_hardly_choose_who_meets() -> None:
    """Caption-like lengths, batches of 64: padding falls by more than 40 %, and different lengths still meet."""
    n, batch = 64 * 64, 64
    lengths = np.clip(rng(0).normal(13, 4.5, n).round(), 4, 40).astype(np.int64)
    plain, sorted_ = [], []
    for seed in range(5):
        plain.append(padding_share(shuffled(np.arange(n), rng(seed)), lengths, batch))
        sorted_.append(padding_share(bucketed(np.arange(n), lengths, batch, rng(seed)), lengths, batch))
    assert np.mean(sorted_) < 0.6 * np.mean(plain)
    # Pairs of quite different lengths still meet, over epochs: every window mixes all lengths.
    met = np.zeros((2, n), bool)
    for seed in range(40):
        order = bucketed(np.arange(n), lengths, batch, rng(seed)).reshape(-1, batch)
        met[0][order[(order == 0).any(1)].ravel()] = True
        order = shuffled(np.arange(n), rng(seed)).reshape(-1, batch)
        met[1][order[(order == 0).any(1)].ravel()] = True
    assert met[0].sum() > 0.5 * met[1].sum()
