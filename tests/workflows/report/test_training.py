"""What a page shows of a training: curves, the split's history, costs; and what it does where files are lost."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.errors import InputError
from mispair.report.page import render
from mispair.workflows.report import build_page, training
from tests.workflows.report.samples import copied, train


def test_losses_by_hand(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    rng = np.random.default_rng(0)
    signal = np.concatenate([rng.normal(1, 0.1, 700), rng.normal(3, 0.1, 300)])
    columns = {"signal": signal, "posterior": (signal > 2).astype(float), "mismatched": signal > 2}
    pq.write_table(pa.table(columns), folder / "split.parquet" / "epoch-0009.parquet")
    found = training.losses(training.open_run_folder(folder))
    assert sum(found.counts) == 1000
    assert 1.4 < found.threshold < 2.6
    assert "called 30.0% of the pairs mismatched; it is no estimate" in found.said
    assert "around 1.00 for matched pairs, one around 2.99" in found.said
    step = found.grid[1] - found.grid[0]
    width = found.edges[1] - found.edges[0]
    areas = [sum(curve) * step / width for curve in found.curves]
    assert areas == pytest.approx([700, 300], rel=0.03), "a component's curve holds as many pairs as it claims"
    middles = [(a + b) / 2 for a, b in zip(found.edges, found.edges[1:], strict=False)]
    called = [share for middle, share, count in zip(middles, found.mismatched, found.counts, strict=True) if count]
    assert called == [float(m > 2) for m, count in zip(middles, found.counts, strict=True) if count]


def test_history_by_hand(tmp_path, trained):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_bytes((trained / "config.yaml").read_bytes())
    (folder / "split.parquet").mkdir()
    sides = [[1, 1, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 0, 1, 0]]
    for epoch, row in enumerate(sides, 3):
        columns = {
            "posterior": [0.9 * s for s in row],
            "mismatched": [bool(s) for s in row],
            "signal": [1.0 * s for s in row],
        }
        pq.write_table(pa.table(columns), folder / "split.parquet" / f"epoch-{epoch:04d}.parquet")
    found = training.history(training.open_run_folder(folder), None)
    assert found.epochs == [4, 5, 6]
    assert found.to_matched == [0, 1, 0]
    assert found.to_mismatched == [0, 1, 1]
    assert (found.never, found.pairs) == (3, 5)
    assert found.mismatched == [0.4, 0.4, 0.6]
    assert [(flip.pair_id, flip.flips) for flip in found.most] == [("0 of training", 2), ("3 of training", 1)]
    assert found.most[0].posterior == [0.9, 0.0, 0.9]


def test_costs_and_alignments_are_shown_where_they_were_recorded(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    (folder / "alignment.json").unlink(missing_ok=True)
    for path in (folder / "split.parquet").iterdir():
        table = pq.read_table(path)
        pq.write_table(table.select([name for name in table.column_names if name != "cost"]), path)
    missing = build_page(folder).missing
    assert any(text.startswith("Transport costs") for text in missing)
    assert any(text.startswith("Refined alignments") for text in missing)
    for epoch, apart in ((1, 0.1), (3, 0.8)):
        path = folder / "split.parquet" / f"epoch-{epoch:04d}.parquet"
        table = pq.read_table(path)
        wrong = table["mismatched"].to_numpy(zero_copy_only=False)
        pq.write_table(table.append_column("cost", pa.array(0.1 + apart * wrong)), path)
    alignment = {"epochs": {"1": {}, "3": {"transported": [0.9, 0.1], "untransported": [0.5, 0.5]}}}
    (folder / "alignment.json").write_text(json.dumps(alignment))
    page = build_page(folder)
    early, late = page.costs
    assert (early.title, late.title) == ("early, epoch 2", "late, epoch 4")
    assert early.edges == late.edges
    for part in (early, late):
        assert sum(part.matched) == pytest.approx(1)
        assert sum(part.mismatched) == pytest.approx(1)
    centre = np.asarray(late.edges[:-1])
    assert centre @ late.mismatched - centre @ late.matched == pytest.approx(0.8, abs=0.05)
    assert [part.values for part in page.ranked] == [[0.9, 0.1], [0.5, 0.5]]
    assert not any(text.startswith(("Transport costs", "Refined alignments")) for text in page.missing)


def test_a_plain_run_judges_nobody(tmp_path):
    page = build_page(train(tmp_path / "plain", "method.name=plain", "train.epochs=1"))
    assert page.pairs is None
    assert page.gallery is None
    assert page.answer[0].startswith("Training with plain has judged no single pair; mispair audit ")
    assert "rate is" in page.answer[0], "what was estimated before training is known all the same"
    assert page.answer[1].startswith("The model puts "), "it judged nobody"
    assert any("plain has kept no split" in text for text in page.missing)
    render(page)


def test_an_unfinished_run_says_so(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    (folder / "metrics.json").unlink()
    page = build_page(folder)
    assert [entry.split for entry in page.recalls] == ["dev"]
    assert any("not finished" in text for text in page.caution)
    shutil.rmtree(folder / "split.parquet")
    assert "has judged no single pair so far" in build_page(folder).answer[0], "warm-up is not all it does"


@pytest.mark.parametrize(
    "lost", ["model.safetensors", "metrics.jsonl", "vocabulary.json", "split.parquet/epoch-0001.parquet"]
)
def test_what_is_lost_does_not_stop_the_rest(tmp_path, trained, lost):
    folder = copied(trained, tmp_path / "run")
    (folder / lost).unlink()
    assert "<main>" in render(build_page(folder))


def _alignment(values):
    return json.dumps({"epochs": {"3": {"transported": values}}})


NONSENSE = {
    "alignment.json": [
        '{"epochs": {"3": {"transported": [NaN, 1e999]}}}', '{"nonsense": true}', "[]", _alignment([-5, 7]),
        _alignment(["0.5"]), _alignment([True]), _alignment([0.5] * 100_000), '{"epochs": {"-3": {}}}',
        '{"epochs": {"99999999999": {}}}', '{"rematching": {"true": 7, "chance": 0, "batches": 1}}',
    ],
    "metrics.json": [
        '{"data": {"name": "x"}}', '{"data": {"name": "x", "pairs": "many", "hash": ""}}', '{"noise": {}}',
        '{"mismatch_rate": 7}', '{"mismatch_rate": 0.5, "mismatch_rate_ci": [0.1], "conclusive": true}',
        '{"seconds": "long"}', '{"detection": {"auroc": "high"}}', '{"test": {"rsum": "?"}}', "[]",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "file", ["alignment.json", "metrics.json", "metrics.jsonl", "split.parquet/epoch-0003.parquet"]
)
def test_a_pipe_is_not_waited_for(tmp_path, trained, file):
    folder = copied(trained, tmp_path / "run")
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    with pytest.raises(InputError, match=Path(file).name):
        build_page(folder)


def test_a_split_of_other_pairs_costs_one_sentence(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    path = folder / "split.parquet" / "epoch-0003.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("pair_id")
    pq.write_table(table.set_column(at, "pair_id", pa.array(np.arange(len(table)) + 10**6)), path)
    with pytest.raises(InputError, match="epoch-0003.parquet is damaged"):
        build_page(folder)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("metrics.json", "{", "metrics.json is damaged"),
        ("config.yaml", ":", "config.yaml"),
        ("split.parquet/epoch-0003.parquet", "PAR1", "epoch-0003.parquet is damaged"),
        *((name, text, f"{name} is damaged") for name, texts in NONSENSE.items() for text in texts),
    ],
)
def test_damaged_files_cost_one_sentence(tmp_path, trained, file, content, said):
    folder = copied(trained, tmp_path / "run")
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=said):
        build_page(folder)


def test_a_split_of_other_types_costs_one_sentence(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    path = folder / "split.parquet" / "epoch-0003.parquet"
    table = pq.read_table(path)
    for name, values in (("posterior", np.full(len(table), 2.0)), ("signal", ["x"] * len(table))):
        other = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        pq.write_table(other, path)
        with pytest.raises(InputError, match=f"epoch-0003.parquet is damaged .{name}"):
            build_page(folder)


def test_a_split_that_lost_who_was_mismatched_costs_one_sentence(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    path = folder / "split.parquet" / "epoch-0003.parquet"
    pq.write_table(pq.read_table(path).drop(["mismatched"]), path)
    with pytest.raises(InputError, match=r"epoch-0003.parquet is damaged \(mismatched\)"):
        build_page(folder)
