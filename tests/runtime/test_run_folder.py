"""What a run folder says of itself, also when somebody has been at its files."""

import json

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.runtime.run_folder import RunFolder


def epoch(number, rsum=100.0, **more):
    return json.dumps({"event": "epoch", "epoch": number, "dev": {"rsum": rsum}, "train": {}, **more}) + "\n"


def test_epochs_of_a_repeated_epoch_the_last_counts(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(epoch(0) + epoch(1, 1.0) + '{"event": "note"}\n' + epoch(1, 2.0))
    assert [(line["epoch"], line["dev"]["rsum"]) for line in RunFolder(tmp_path).epochs()] == [(0, 100.0), (1, 2.0)]


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "epoch"',
        "[]",
        "7",
        "[" * 100_000,
        '{"event": "epoch", "epoch": "1", "dev": {"rsum": 1}}',
        '{"event": "epoch", "epoch": 1, "dev": 3}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": null}}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": NaN}}',
        '{"event": "epoch", "epoch": -1, "dev": {"rsum": 1}}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": 1}, "train": []}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": 1}, "train": {"rematch": ""}}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": 1, "i2t_r1": [1]}}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": 1}, "seconds": "long"}',
        '{"event": "epoch", "epoch": 1, "dev": {"rsum": 1}, "train": {"loss": 1' + "0" * 400 + "}}",
        "\xff\xfe",
    ],
)
def test_a_line_that_is_no_epoch_is_left_out(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text(epoch(0) + line + "\n", encoding="latin-1")
    assert [line["epoch"] for line in RunFolder(tmp_path).epochs()] == [0]


@pytest.mark.parametrize(
    "content",
    [
        *("", "nonsense", "[]", "3", "[" * 100_000, '{"dev": 3}', '{"test": {"rsum": "high"}}', '{"seconds": "long"}'),
        '{"noise": {"text": "none", "hash": {"name": "l2rm"}}}',
    ],
)
def test_a_damaged_summary_gets_one_sentence(tmp_path, content):
    (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(InputError, match="is damaged; train the run again"):
        _ = RunFolder(tmp_path).summary


def test_nothing_there_is_an_unfinished_run(tmp_path):
    run = RunFolder(tmp_path)
    assert (run.begun, run.resumable, run.finished) == (False, False, False)
    assert (run.summary, run.epochs(), run.splits(), run.last_split(), run.alignments()) == ({}, [], {}, None, (0, {}))
    assert run.vocabulary is None
    with pytest.raises(InputError, match="is not a run folder"):
        run.refuse_unless_begun()


def test_splits_come_back_by_epoch(tmp_path):
    run = RunFolder(tmp_path)
    run.write_split(3, {"signal": np.array([0.5, 0.25]), "mismatched": np.array([True, False])})
    run.write_split(10, {"signal": np.array([1.0, 2.0]), "mismatched": np.array([True, True])})
    (run.splits_folder / "epoch-x.parquet").write_bytes(b"")
    assert list(run.splits()) == [3, 10]
    assert run.split(3)["signal"].tolist() == [0.5, 0.25]
    last = run.last_split()
    assert last is not None
    assert last["signal"].tolist() == [1.0, 2.0]
    assert last["pair_id"].tolist() == [0, 1]
    (run.splits_folder / "epoch-0010.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="epoch-0010.parquet is damaged"):
        run.last_split()


@pytest.mark.parametrize(
    "content",
    ["", "3", "[" * 100_000, '{"epochs": {"x": {}}}', '{"epochs": {"1": {"transported": ["a"]}}}', '{"epochs": [1]}'],
)
def test_a_damaged_alignment_gets_one_sentence(tmp_path, content):
    (tmp_path / "alignment.json").write_text(content)
    with pytest.raises(InputError, match="alignment.json is damaged"):
        RunFolder(tmp_path).alignments()


def test_alignments_of_the_last_epoch(tmp_path):
    judged = {"true": 0.5, "chance": 0.1, "batches": 3}
    content = {"epochs": {"9": {"transported": [0.5]}, "10": {"transported": [0.75], "untransported": []}}}
    (tmp_path / "alignment.json").write_text(json.dumps({**content, "rematching": judged}))
    assert RunFolder(tmp_path).alignments() == (10, {"transported": [0.75]})
    assert RunFolder(tmp_path).rematching() == judged
    (tmp_path / "alignment.json").write_text(json.dumps({**content, "rematching": ["true"]}))
    with pytest.raises(InputError, match="alignment.json is damaged"):
        RunFolder(tmp_path).rematching()
