"""A figure shows what its runs kept, says so where they kept nothing, and is an SVG that parses."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.experiments.cell import run_cell
from mispair.experiments.page import make_page
from mispair.experiments.runner import write_down
from mispair.experiments.spec import parse_spec
from mispair.runtime.run_folder import RunFolder
from tests.experiments.grids import tiny_cells, tiny_spec, write_cell


def _page(out, figure, rsum=10.0, columns=("0.2",), prepare=None):
    changes = {"figure": figure, "rows": {"l2rm": {"label": "a <b> & c"}}, "columns": {c: {} for c in columns}}
    write_down(out, parse_spec(tiny_spec(**changes), "x"), "scenes", "scenes", 1, "mispair")
    for k, column in enumerate(columns):
        folder = write_cell(out, "l2rm", column, 0, rsum + k)
        if prepare is not None:
            prepare(folder)
    page = make_page(out)
    for drawing in page.drawings:
        assert ElementTree.fromstring(drawing.svg).tag == "{http://www.w3.org/2000/svg}svg"
    return page


def _texts(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_a_sweep_draws_both_directions(tmp_path):
    page = _page(tmp_path, "sweep", columns=("0.1", "0.5", "1.0"))
    assert [drawing.name for drawing in page.drawings] == ["tiny-l2rm-i2t", "tiny-l2rm-t2i"]
    lines = ElementTree.fromstring(page.drawings[0].svg).iter("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [3, 3, 3]


def test_costs_are_shared_out_by_the_truth_early_and_late(tmp_path):
    def prepare(folder):
        called = np.array([False, False, True, True])
        RunFolder(folder).write_split(1, {"mismatched": called})  # warm-up of the cost: none kept
        RunFolder(folder).write_split(2, {"mismatched": called, "cost": np.array([0.0, 0.9, 1.0, 1.0])})
        RunFolder(folder).write_split(3, {"mismatched": called, "cost": np.array([0.0, 0.0, 0.0, 1.0])})
        np.save(folder / "truth.npy", np.array([False, False, False, True]))

    page = _page(tmp_path, "cost", prepare=prepare)
    rows = _texts(page.tables[0])
    assert rows[0] == ["0.000 to 0.050", "33.3%", "0.0%", "100.0%", "0.0%"]
    assert rows[-1] == ["0.950 to 1.000", "33.3%", "100.0%", "0.0%", "100.0%"]
    assert [d.title.split("(")[1][:7] for d in page.drawings] == ["epoch 3", "epoch 4"]


def test_costs_without_truth_are_grouped_as_called_and_it_is_said(tmp_path):
    def prepare(folder):
        RunFolder(folder).write_split(2, {"mismatched": np.array([False, True]), "cost": np.array([0.0, 1.0])})

    page = _page(tmp_path, "cost", prepare=prepare)
    assert _texts(page.tables[0])[0][1:3] == ["100.0%", "0.0%"]
    assert any("as the split called them" in note for note in page.notes)


def test_the_last_alignment_is_shown_by_rank(tmp_path):
    def prepare(folder):
        epochs = {"9": {"transported": [0.5], "untransported": [0.5]}}
        epochs["10"] = {"transported": [0.75, 0.25], "untransported": [0.5, 0.5, 0.0]}
        (folder / "alignment.json").write_text(json.dumps({"epochs": epochs}))

    page = _page(tmp_path, "alignment", prepare=prepare)
    assert _texts(page.tables[0])[:3] == [["1", "0.7500", "0.5000"], ["2", "0.2500", "0.5000"], ["3", "–", "0.0000"]]
    assert len(page.drawings) == 2


@pytest.mark.parametrize(("figure", "what"), [("cost", "transport costs"), ("alignment", "refined alignments")])
def test_a_run_that_kept_nothing_is_no_error(tmp_path, figure, what):
    page = _page(tmp_path, figure)
    assert page.drawings == ()
    assert any(f"kept no {what}" in note for note in page.notes)


def test_rematched_cases_quote_the_data(tmp_path):
    changes = {"figure": "rematched", "columns": {"0.6": {"set": {"data.noise.rate": 0.6}}}}
    write_down(tmp_path, parse_spec(tiny_spec(**changes), "x"), "scenes", "scenes", 1, "mispair")
    (cell,) = tiny_cells(tmp_path, only=["row=l2rm"], **changes)
    run_cell(cell, keep=False, tell=lambda done, total: None)
    table = make_page(tmp_path).tables[0]
    assert table.title == "Rematched, L2RM, 0.6"
    assert 1 <= len(table.rows) <= 12
    for picture, given, proposed, weight, own in _texts(table):
        assert picture
        assert given != proposed
        assert 0 < float(weight) <= 1
        assert own in ("yes", "no")
    assert len({row[0] for row in _texts(table)}) == len(table.rows)
    assert (
        len(np.load(cell.folder / "truth.npy", allow_pickle=False))
        == json.loads((cell.folder / "metrics.json").read_text())["data"]["pairs"]
    )


@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        (np.array([0.5, 0.5]), "truth.npy is damaged"),
        (np.array([True]), "truth.npy is of other pairs than"),
        (b"no array", "truth.npy: expected which pairs were mismatched on purpose"),
    ],
)
def test_a_damaged_truth_costs_one_sentence(tmp_path, truth, sentence):
    def prepare(folder):
        pairs = np.arange(2)
        columns = {"cost": np.array([0.1, 0.2]), "mismatched": pairs > 0, "posterior": pairs / 2, "signal": pairs / 2}
        RunFolder(folder).write_split(0, columns)
        if isinstance(truth, bytes):
            (folder / "truth.npy").write_bytes(truth)
        else:
            np.save(folder / "truth.npy", truth)

    with pytest.raises(InputError, match=sentence):
        _page(tmp_path, "cost", prepare=prepare)
