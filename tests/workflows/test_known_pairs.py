"""Decisions of a review in the next training: by pair, for the pairs that were judged and no others."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from mispair.config.load import load_config
from mispair.data import open_split
from mispair.data.readers.dispatch import given_pairs, open_pairing
from mispair.errors import InputError
from mispair.reviewing.decisions import DecisionLog
from mispair.reviewing.identity import pairs_identity
from mispair.runtime.engine import Engine
from mispair.workflows.known_pairs import known_pairs
from mispair.workflows.train import train
from tests.synthetic import tiny_config

PAIRS = 120


@pytest.fixture
def table(tmp_path):
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "caption"])
        rows.writerows([f"{k}.png", f"caption {k}"] for k in range(PAIRS))
    np.save(tmp_path / "pairs.npy", np.random.default_rng(0).normal(size=(PAIRS, 5)).astype(np.float32))
    return tmp_path / "pairs.csv"


def configured(path, decisions, *sets):
    said = {"data": {"path": str(path), "decisions": str(decisions), "min_count": 1}}
    return load_config(between=said, sets=list(sets))


def reviewed(path, pairs, answers):
    log = DecisionLog(path, pairs_identity(pairs), len(pairs))
    for pair, answer in answers:
        log.decide(pair, answer, "ann", **({"caption": "new"} if answer == "edit" else {}))
    return path


def test_decisions_about_the_training_pairs(table, tmp_path):
    config = configured(table, tmp_path / "d.jsonl")
    pairs = open_split(config.data, "train").table
    reviewed(tmp_path / "d.jsonl", pairs, [(3, "right"), (7, "wrong"), (9, "edit"), (11, "skip"), (7, "right")])
    known = known_pairs(config, pairs)
    assert {pair: int(known[pair]) for pair in np.flatnonzero(known >= 0)} == {3: 0, 7: 0, 9: 1}


def test_decisions_about_the_whole_table(table, tmp_path):
    config = configured(table, tmp_path / "d.jsonl")
    pairs = open_split(config.data, "train").table
    whole = given_pairs(open_pairing(config.data, "all"))
    assert len(whole) > len(pairs)
    reviewed(tmp_path / "d.jsonl", whole, [(pair, "wrong" if pair % 2 else "right") for pair in range(PAIRS)])
    known = known_pairs(config, pairs)
    numbers = [int(pairs.image_ids[row].removesuffix(".png")) for row in pairs.image_rows]
    assert known.tolist() == [number % 2 for number in numbers]


def test_decisions_about_other_pairs_are_refused(table, tmp_path):
    config = configured(table, tmp_path / "d.jsonl")
    pairs = open_split(config.data, "train").table
    reviewed(tmp_path / "d.jsonl", pairs.without_truth(np.arange(len(pairs))[::-1]), [(3, "right")])
    with pytest.raises(InputError, match="holds decisions about other pairs"):
        known_pairs(config, pairs)
    noisy = configured(table, tmp_path / "d.jsonl", "data.noise.rate=0.5")
    with pytest.raises(InputError, match="holds decisions about other pairs"):
        known_pairs(noisy, open_split(noisy.data, "train").table)


def test_a_method_that_believes_every_pair_refuses_them(table, tmp_path):
    config = configured(table, tmp_path / "d.jsonl", "method.name=plain")
    with pytest.raises(InputError, match="plain does not tell matched from mismatched pairs.*use one of l2rm, ncr"):
        known_pairs(config, open_split(config.data, "train").table)


def test_a_training_takes_them_as_known(tmp_path):
    sets = ("data.limit=31", "train.epochs=2", "method.split.evidence=loss")
    pairs = open_split(tiny_config(*sets).data, "train").table
    wrong = list(range(0, 20, 2))
    path = reviewed(tmp_path / "d.jsonl", pairs, [(pair, "wrong") for pair in wrong])
    config = tiny_config(*sets, f"data.decisions={path}")
    result = train(config, tmp_path / "run", engine=Engine(config.engine), summarize=False)
    split = result.folder.split(1)
    assert split["mismatched"][wrong].all()
    assert (split["posterior"][wrong] == 1).all()
    reviewed(path, pairs, [(1, "wrong")])
    with pytest.raises(InputError, match=r"what it was started with has changed \(decisions"):
        train(config, tmp_path / "run", resume=True, summarize=False)
