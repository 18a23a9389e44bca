"""Towers that learn in two processes, each of which decodes and encodes half of the pictures, are those of one."""

import json

import pytest

from tests.runtime.gradients import distances
from tests.workflows.tower_ranks import CASES


@pytest.fixture(scope="module")
def trained(forks, hub, tmp_path_factory):
    folder = tmp_path_factory.mktemp("towers")
    for name, ranks in (("alone", 1), ("together", 2)):
        done = forks.run(folder / name, hub, program="tests.workflows.tower_ranks", ranks=ranks, limit=280)
        assert done.code == 0, done.err[-3000:]
    return folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_tune_towers_as_one_does(trained, case):
    alone, together = (trained / name / case for name in ("alone", "together"))
    apart = distances(alone, together)
    assert len(apart) >= 6, "three steps of eight pairs in each of two epochs"
    assert max(apart.values()) < 1e-4
    epochs = []
    for folder in (alone, together):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        epochs.append([line["train"]["loss"] for line in lines if line["event"] == "epoch"])
    assert epochs[1] == pytest.approx(epochs[0], rel=1e-5)
