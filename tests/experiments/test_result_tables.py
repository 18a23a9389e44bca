"""A table says what the cells say: means and spreads by hand, bold only where it is deserved, nothing unescaped."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mispair.cli.app import app
from mispair.errors import InputError
from mispair.experiments.page import make_page
from mispair.experiments.render import FORMATS, markdown
from mispair.experiments.result_tables import best
from mispair.experiments.results import Figure, figure, read_cell
from mispair.experiments.runner import write_down
from mispair.experiments.spec import parse_spec
from tests.experiments.grids import tiny_spec, write_cell


def _grid(out, sums, kind="scenes", **changes):
    """`sums`: {(row, column): [rsum of each seed]}."""
    spec = parse_spec(tiny_spec(**changes), "x")
    write_down(out, spec, kind, "/secret/place/scenes", 3, "mispair experiments run tiny")
    for (row, column), values in sums.items():
        for seed, value in enumerate(values):
            write_cell(out, row, column, seed, value, noise=f"{column}-{seed}")
    return make_page(out)


def _row(page, table, label):
    (found,) = [row for row in page.tables[table].rows if row[0].text == label]
    return found


def test_mean_and_spread_by_hand(tmp_path):
    page = _grid(tmp_path, {("plain", "0.2"): [100.0, 103.0, 109.0], ("l2rm", "0.2"): [200.0, 201.0, 205.0]})
    assert _row(page, 0, "plain")[1].text == "104.0 ± 4.6"  # sqrt((16 + 1 + 25) / 2)
    assert _row(page, 0, "L2RM")[1].text == "202.0 ± 2.6"  # sqrt((4 + 1 + 9) / 2)
    assert _row(page, 0, "L2RM")[1].bold
    assert not _row(page, 0, "plain")[1].bold
    assert _row(page, 1, "plain")[1].text == "10.4 ± 0.5"
    assert _row(page, 1, "plain")[-1].text == "3"


@given(st.lists(st.floats(0, 600), min_size=2, max_size=7))
def test_the_spread_is_the_sample_standard_deviation(values):
    mean = sum(values) / len(values)
    slow = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    found = figure(values)
    assert found.mean == pytest.approx(mean)
    assert found.spread == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"a": Figure(10, 1, 3), "b": Figure(8.9, 1, 3)}, "a"),
        ({"a": Figure(10, 1, 3), "b": Figure(9, 1, 3)}, None),  # as far as the spread, not farther
        ({"a": Figure(10, 0.1, 3), "b": Figure(8.9, 1.2, 3)}, None),  # the runner-up's spread counts as well
        ({"a": Figure(8, 0.1, 3), "b": Figure(10, 0.1, 3), "c": Figure(9.95, 0.1, 3)}, None),
        ({"a": Figure(10, None, 1), "b": Figure(1, None, 1)}, None),  # one seed proves nothing
        ({"a": Figure(10, 1, 3)}, None),  # nobody to beat
        ({}, None),
    ],
)
def test_bold_needs_a_lead_beyond_the_spread(figures, expected):
    assert best(figures) == expected


def test_who_knows_the_truth_is_never_best(tmp_path):
    rows = {"plain": {}, "l2rm": {}, "oracle": {"knows_truth": True}}
    sums = {("plain", "0.2"): [10.0, 11.0], ("l2rm", "0.2"): [20.0, 21.0], ("oracle", "0.2"): [90.0, 91.0]}
    page = _grid(tmp_path, sums, rows=rows)
    assert _row(page, 0, "l2rm")[1].bold
    assert not _row(page, 0, "oracle (knows the truth)")[1].bold
    assert any("takes no part in the comparison" in note for note in page.notes)


def test_a_partial_grid_is_already_a_table(tmp_path):
    page = _grid(tmp_path, {("plain", "0.2"): [100.0], ("l2rm", "0.6"): [50.0]})
    assert [entry.text for entry in _row(page, 0, "plain")] == ["plain", "100.0", "–"]
    assert any(note.startswith("One seed") for note in page.notes)


def test_unequal_noise_is_shouted(tmp_path):
    _grid(tmp_path, {("plain", "0.2"): [1.0]})
    write_cell(tmp_path, "l2rm", "0.2", 0, 2.0, noise="another")
    assert any("DIFFERENT between rows" in note for note in make_page(tmp_path).notes)
    (tmp_path / "even").mkdir()
    fair = _grid(tmp_path / "even", {("plain", "0.2"): [1.0], ("l2rm", "0.2"): [2.0]})
    assert any("the same for all rows: seed 0: 0.2-0" in note for note in fair.notes)


def test_published_figures_stand_beside_on_the_papers_data_only(tmp_path):
    changes = {
        "published": ["tab:full_synthesis"],
        "rows": {"l2rm": {"published": "L2RM-{backbone}"}},
        "data": {"f30k": {"backbones": ["sgr"]}, "f8k": {"backbones": ["sgr"]}},
    }
    for kind in ("f30k", "f8k"):
        (tmp_path / kind).mkdir()
    ours = _grid(tmp_path / "f30k", {("l2rm", "0.6"): [300.0, 302.0]}, kind="f30k", **changes)
    assert _row(ours, 0, "l2rm")[1].text == "301.0 ± 1.4 (published 448.5)"
    assert _row(ours, 1, "NCR (published)")[1].text == "13.9"
    assert not any(entry.bold for row in ours.tables[1].rows for entry in row)
    assert "published tab:full_synthesis" in {record["source"] for record in ours.records}
    other = _grid(tmp_path / "f8k", {("l2rm", "0.6"): [300.0, 302.0]}, kind="f8k", **changes)
    assert "published" not in markdown(other)


def test_the_split_is_judged(tmp_path):
    _grid(tmp_path, {})
    for seed, (estimate, auroc) in enumerate([(0.21, 0.9), (0.25, 0.94)]):
        found = {"auroc": auroc, "ece": 0.04, "certain": float("nan")}
        said = {"called_mismatched": 0.3, "mismatch_rate": estimate, "mismatch_rate_ci": (0.1, 0.3)}
        write_cell(tmp_path, "l2rm", "0.2", seed, 1.0, **said, detection=found)
        write_cell(tmp_path, "plain", "0.2", seed, 1.0, mismatch_rate=estimate, mismatch_rate_ci=(0.1, 0.3))  # no split
    page = make_page(tmp_path)
    assert page.tables[-1].title == "The split against the truth"
    texts = [entry.text for entry in page.tables[-1].rows[0]]
    assert texts == [
        "L2RM", "0.2", "0.200 ± 0.000", "0.300 ± 0.000", "0.230 ± 0.028", "0.100 ± 0.000", "0.300 ± 0.000",
        "0.920 ± 0.028", "0.040 ± 0.000", "–", "–",
    ]  # fmt: skip
    assert len(page.tables[-1].rows) == 1


def test_the_cost_is_in_the_table(tmp_path):
    page = _grid(tmp_path, {("plain", "0.2"): [100.0]})
    (cost,) = [table for table in page.tables if table.title == "What it costs"]
    assert [entry.text for entry in cost.rows[0]] == ["plain", "1", "14.0", "9.0", "60"]


NASTY = "<script>alert(1)</script> & 100% | *a_b* \\ {x} \"q\" 'q' $5 #1 `c`"


def test_nothing_goes_out_unescaped(tmp_path):
    rows = {"plain": {"label": NASTY}}
    page = _grid(tmp_path, {("plain", "0.2"): [100.0]}, rows=rows, title=NASTY, about=NASTY)
    text = {name: render(page) for name, render in FORMATS.items()}
    assert "<script>" not in text["html"]
    assert "&lt;script&gt;" in text["html"]
    assert "<script>" not in text["md"].replace("\\<script\\>", "")
    rows_of_md = [line for line in text["md"].splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows_of_md[:3]} == {3}
    body = text["tex"].split("\\begin{table}")[1]
    assert "100\\% \\textbar{} *a\\_b* \\textbackslash{} \\{x\\}" in body
    assert "\\$5 \\#1" in body
    assert "secret" not in "".join(text.values())


def test_a_line_break_cannot_leave_a_latex_comment(tmp_path):
    page = _grid(tmp_path, {("plain", "0.2"): [1.0]}, about="harmless\n\\input{x}")
    assert all(line.startswith("%") for line in FORMATS["tex"](page).split("\n\n")[0].splitlines())


def test_csv_holds_full_precision(tmp_path):
    page = _grid(tmp_path, {("plain", "0.2"): [100.0, 100.1, 100.3]})
    (record,) = csv.DictReader(io.StringIO(FORMATS["csv"](page)))
    assert float(record["rsum"]) == pytest.approx(100.13333333333)
    assert float(record["rsum_std"]) == pytest.approx(0.15275252316519)
    assert (record["row"], record["column"], record["seeds"], record["networks"]) == ("plain", "0.2", "3", "1")


def test_the_verb_writes_all_four_and_prints_one(tmp_path):
    _grid(tmp_path, {("plain", "0.2"): [100.0]})
    found = CliRunner().invoke(app, ["experiments", "table", str(tmp_path), "--format", "csv"])
    assert found.exit_code == 0
    assert found.stdout.startswith("source,row,column")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [f"tiny.{s}" for s in sorted(FORMATS)]


def test_damage_and_absence_cost_one_sentence(tmp_path):
    with pytest.raises(InputError, match="holds no experiment"):
        make_page(tmp_path)
    _grid(tmp_path, {("plain", "0.2"): [100.0]})
    path = tmp_path / "cells/plain/0.2/seed-0/metrics.json"
    path.write_text('{"test": ')
    with pytest.raises(InputError, match="metrics.json is damaged"):
        read_cell(path.parent)
    (tmp_path / "experiment.json").write_text("[]")
    with pytest.raises(InputError, match="experiment.json is damaged"):
        make_page(tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "mian", "-o", "OUT"], "did you mean main"),
        (["run", "main", "-o", "OUT", "--data", "f30k_nowhere"], "f30k_nowhere does not exist"),
        (["run", "main", "-o", "OUT", "--as", "nowhere"], "--as takes one of"),
        (["run", "main", "-o", "OUT", "--only", "row=nobody"], "there is no row 'nobody'"),
        (["table", "OUT"], "does not exist; expected a folder of 'mispair experiments run'"),
        (["table", "OUT", "--format", "docx"], "--format must be one of md, csv, tex, html"),
    ],
)
def test_a_mistake_costs_one_sentence_and_writes_nothing(tmp_path, words, sentence):
    out = tmp_path / "out"
    found = CliRunner().invoke(app, ["experiments", *(str(out) if word == "OUT" else word for word in words)])
    assert isinstance(found.exception, InputError)
    assert sentence in str(found.exception)
    assert not out.exists()


def test_the_list_names_every_spec():
    found = CliRunner().invoke(app, ["experiments", "list"], env={"COLUMNS": "200"})
    assert found.exit_code == 0
    assert "cost-distribution" in found.stdout
