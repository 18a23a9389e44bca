"""A worker that dies costs its cell and is replaced."""

import multiprocessing
import os
import signal

import pytest

from mispair.experiments.workers import Workers
from tests.experiments.grids import tiny_cells


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_cell(tmp_path):
    workers = Workers(1, keep=False)
    news = []
    for one in workers.run(tiny_cells(tmp_path, only=["row=plain"])):
        if one.kind == "epoch" and not news:
            os.kill(next(iter(workers._busy.values()))[0].pid, signal.SIGKILL)
        news.append(one)
    ends = [(one.kind, one.cell.column) for one in news if one.kind != "epoch"]
    assert ends == [("failed", "0.2"), ("finished", "0.6")]
    assert "ended with code -9" in next(one.text for one in news if one.kind == "failed")


def test_a_worker_that_died_idle_is_replaced(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    theirs.close()
    workers = Workers(1, keep=False)
    dead = multiprocessing.get_context("spawn").Process(target=print)
    dead.start()
    dead.join()
    workers._idle.append((ours, dead))
    ends = [one.kind for one in workers.run(tiny_cells(tmp_path, only=["row=plain", "column=0.6"]))]
    assert ends[-1] == "finished"


@pytest.mark.slow
def test_a_worker_stopped_alone_leaves_a_cell_that_is_not_finished(tmp_path):
    workers = Workers(1, keep=False)
    news = []
    for one in workers.run(tiny_cells(tmp_path, only=["row=plain"])):
        if one.kind == "epoch" and not news:
            os.kill(next(iter(workers._busy.values()))[0].pid, signal.SIGTERM)
        news.append(one)
    ends = [(one.kind, one.cell.column) for one in news if one.kind != "epoch"]
    assert ends == [("failed", "0.2"), ("finished", "0.6")]
