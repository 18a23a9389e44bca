"""Pairs a run has learned from are known by what they hold; an audit of them never says that they are new to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mispair as mp
from mispair.data import DataConfig, open_split
from mispair.errors import InputError
from mispair.workflows.learned_pairs import share_learned
from mispair.workflows.trained_run import load_run
from tests.data.samples import features, write_lines

PAIRS = 60
VECTORS = features(PAIRS, 0, 7, seed=3)
ROWS = [(f"im{k}", f"a dog number {k} of {k % 7}") for k in range(PAIRS)]


def table(folder: Path, rows: list[int], name: str = "pairs", more: str = "", strange: int = 0) -> Path:
    """Some rows of the data in this order, with a column that the data does not have, and further pairs."""
    folder.mkdir(exist_ok=True)
    lines = [f"{ROWS[k][0]}.png,{ROWS[k][1]},{more}" for k in rows]
    lines += [f"new{k}.png,{ROWS[k][1]},{more}" for k in range(strange)]  # known captions beside other pictures
    np.save(folder / f"{name}.npy", np.concatenate([VECTORS[rows], features(strange, 0, 7, seed=9)]))
    return write_lines(folder / f"{name}.csv", ["image_id,caption,note", *lines])


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("learned"), list(range(PAIRS)))


@pytest.fixture(scope="module")
def run(own: Path) -> Path:
    mp.train(own, method="plain", model="vse", epochs=1, batch_size=8, out=own.parent / "run", quiet=True)
    return own.parent / "run"


@pytest.fixture(scope="module")
def learned(own: Path) -> set[int]:
    """The rows that training did not hold out."""
    ids = open_split(DataConfig(path=str(own)), "train").table.image_ids
    assert ids is not None
    return {k for k, (name, _) in enumerate(ROWS) if f"{name}.png" in ids}


def share(run: Path, path: Path) -> float | None:
    return share_learned(
        loaded := load_run(run), open_split(DataConfig(path=str(path)), "all", vocabulary=loaded.vocabulary)
    )


def test_pairs_are_known_in_any_order_under_any_name(run: Path, learned: set[int], tmp_path: Path) -> None:
    rows = list(range(0, PAIRS, 2))[::-1]
    expected = len(learned & set(rows))
    assert share(run, table(tmp_path, rows, "half", "x")) == pytest.approx(expected / len(rows))
    mixed = table(tmp_path, rows, "mixed", strange=10)
    assert share(run, mixed) == pytest.approx(expected / (len(rows) + 10)), "a caption alone is no pair"
    assert share(run, table(tmp_path, [], "new", strange=30)) == 0
    assert share(run, table(tmp_path, sorted(learned)[:30], "learned")) == 1


def test_an_audit_of_some_of_them_says_how_many(run: Path, learned: set[int], tmp_path: Path) -> None:
    rows = list(range(30))
    part = table(tmp_path, rows, "part", strange=10)
    facts = mp.audit(run, part).facts
    assert facts.learned
    assert facts.held_out.startswith(f"the model was trained on {len(learned & set(rows)) / 40:.1%} of these pairs")
    assert not facts.conclusive
    with pytest.raises(InputError, match=r"these are so to \d\d%, so train on them: mispair audit DATA --train"):
        mp.audit(run, part, folds=2)
    new = mp.audit(run, table(tmp_path, [], "new", strange=30)).facts
    assert (new.learned, new.held_out) == (False, "the model has not seen these pairs")


def test_where_the_runs_own_data_is_gone_nothing_is_claimed(own: Path, run: Path, tmp_path: Path) -> None:
    part = table(tmp_path, list(range(30)), "part")
    away = own.rename(own.with_suffix(".away"))
    try:
        assert share(run, part) is None
        assert mp.audit(run, part).facts.held_out.startswith("unknown, since the data of the run is no longer there")
    finally:
        away.rename(own)
