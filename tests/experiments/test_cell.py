"""One cell: finished, changed, scored further, made of others, measured."""

import json
import os

import pytest

from mispair.errors import InputError
from mispair.experiments.cell import run_cell
from mispair.experiments.estimate import measure
from mispair.experiments.grid import Cell
from mispair.experiments.results import read_cell
from mispair.experiments.runner import refuse_changed
from mispair.experiments.spec import Evaluation
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.workflows.trained_run import load_run
from tests.experiments.grids import TINY, tiny_cells


def test_an_ensemble_is_old_when_a_member_is_newer(tmp_path):
    members = tuple(tmp_path / name for name in ("sgr", "saf"))
    cell = Cell("sgraf", "0", 0, tmp_path / "sgraf", (Evaluation(split="test"),), None, members)
    for folder in (*members, cell.folder):
        folder.mkdir()
        (folder / "metrics.json").write_text("{}")
    os.utime(cell.folder / "metrics.json", ns=(10**18, 10**18))
    for folder in members:
        os.utime(folder / "metrics.json", ns=(9 * 10**17, 9 * 10**17))
    assert cell.status() == "finished"
    os.utime(members[0] / "metrics.json", ns=(2 * 10**18, 2 * 10**18))
    assert cell.status() == "new"
    (members[0] / "metrics.json").unlink()
    assert cell.status() == "new"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One finished cell, made in this process."""
    out = tmp_path_factory.mktemp("grid")
    (cell,) = tiny_cells(out, only=["row=l2rm", "column=0.6"])
    run_cell(cell, keep=False, tell=lambda done, total: None)
    return cell


def test_a_changed_cell_is_nobodys_to_throw_away(finished):
    out = finished.folder.parents[3]
    (changed,) = tiny_cells(out, only=["row=l2rm", "column=0.6"], data={"scenes": {"set": {**TINY, "train.lr": 0.5}}})
    assert changed.status() == "changed"
    assert finished.status() == "finished"
    with pytest.raises(InputError, match=r"seed-\d was run with other values .* --redo"):
        refuse_changed([changed], redo=False)
    with pytest.raises(InputError, match=r"seed-\d and 1 more cell were run with"):
        refuse_changed([changed, changed], redo=False)
    assert finished.folder.exists()


def test_redo_throws_the_changed_cell_away(tmp_path):
    (cell,) = tiny_cells(tmp_path, only=["row=plain", "column=0.6"])
    cell.folder.mkdir(parents=True)
    (cell.folder / "config.yaml").write_text("seed: 17\n")
    (cell.folder / "metrics.json").write_text("{}")
    refuse_changed([cell], redo=True)
    assert cell.status() == "new"


def test_where_the_data_lies_does_not_change_a_cell(finished):
    moved = finished.config.model_copy(update={"data": finished.config.data.model_copy(update={"path": "elsewhere"})})
    assert type(finished)(**{**vars(finished), "config": moved}).status() == "finished"


def test_further_galleries_are_scored_without_training_again(finished):
    how = {"scenes": {"set": TINY, "evaluate": [{"split": "test"}, {"split": "test", "folds": 3}, {"split": "dev"}]}}
    out = finished.folder.parents[3]
    (cell,) = tiny_cells(out, only=["row=l2rm", "column=0.6"], data=how)
    assert cell.status() == "unscored"
    before = (cell.folder / "metrics.json").stat().st_mtime_ns
    run_cell(cell, keep=False, tell=lambda done, total: None)
    assert cell.status() == "finished"
    assert (cell.folder / "metrics.json").stat().st_mtime_ns == before
    galleries = dict(read_cell(cell.folder).galleries)
    summary = json.loads((cell.folder / "metrics.json").read_text())
    assert galleries["test"]["rsum"] == pytest.approx(summary["test"]["rsum"])
    assert galleries["dev"]["rsum"] == pytest.approx(summary["dev"]["rsum"])
    assert galleries["test, mean of 3 galleries"]["rsum"] > galleries["test"]["rsum"]  # fewer candidates
    (cell.folder / "gallery.json").unlink()


def test_an_ensemble_ranks_by_the_mean_score(tmp_path):
    rows = {
        "plain": {"method": "plain", "set": {"method.loss": "infonce", "train.epochs": 1, "data.scenes.pictures": 60}}
    }
    data = {"scenes": {"set": {**TINY, "model.embed": 16, "model.word_dim": 8}, "backbones": ["sgr", "saf", "sgraf"]}}
    small = {"model": "{backbone}:small"}
    cells = tiny_cells(tmp_path, rows=rows, columns={"0.2": {}}, data={"scenes": {**data["scenes"], **small}})
    with pytest.raises(InputError, match="is not finished"):
        run_cell(cells[-1], keep=False, tell=lambda done, total: None)
    for cell in cells:
        run_cell(cell, keep=False, tell=lambda done, total: None)
    runs = [load_run(cell.folder) for cell in cells[:2]]
    judge = RecallEvaluator(runs[0].open_split("test"))
    expected = judge.metrics(sum(RecallEvaluator(r.open_split("test")).scores(r.models) for r in runs) / 2)
    result = read_cell(cells[-1].folder)
    assert result.rsum == pytest.approx(expected["rsum"])
    assert result.networks == 2
    assert result.seconds == pytest.approx(sum(read_cell(cell.folder).seconds for cell in cells[:2]))


def test_measuring_steps_leaves_nothing_behind_and_grows_with_the_work(finished):
    short = measure(finished.config)
    longer = finished.config.model_copy(update={"train": finished.config.train.model_copy(update={"epochs": 40})})
    assert 0 < short < 60
    assert measure(longer) > 2 * short
