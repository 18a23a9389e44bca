"""Streams: every pair once, every batch full, one order for one seed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mispair.data.streams import lockstep, shuffled, survey_batches
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


@pytest.mark.parametrize("streams", [{"a": np.arange(3)}, {"a": np.arange(9), "b": np.arange(0)}])
def test_what_cannot_fill_a_batch_is_refused(streams: dict[str, np.ndarray]) -> None:
    with pytest.raises(InputError, match="smaller batch_size"):
        next(lockstep(streams, 4, rng()))


def test_a_survey_of_too_few_is_refused() -> None:
    with pytest.raises(InputError, match="smaller batch_size"):
        next(survey_batches(3, 4, rng()))
