"""Weights of pairs: from a column, from an array, through noise and parts; and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, open_source, open_split
from mispair.errors import InputError
from tests.data.samples import precomp
from tests.data.tables import ROWS, config, with_ids

IDS = ["im0", "im1", "im2", "im3"]


def table(folder: Path, kind: str, weights: list[object]) -> DataConfig:
    rows = [{**row, "trust": weight} for row, weight in zip(ROWS, weights, strict=True)]
    return config(folder, kind, rows, weights="trust", min_count=1, **with_ids(folder, IDS))


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_column_of_weights(tmp_path: Path, kind: str) -> None:
    data = table(tmp_path, kind, [k / 8 for k in range(8)])
    assert open_split(data, "train").table.weights.tolist() == [k / 8 for k in range(6)]
    assert "weights from 'trust'" in open_source(data, "train").notes[0]
    assert open_split(data.model_copy(update={"weights": None}), "train").table.weights is None


def test_weights_stay_with_their_pair(tmp_path: Path) -> None:
    data = table(tmp_path, "csv", [k / 8 for k in range(8)])
    noise = {"rate": 1.0, "protocol": "caption"}
    mixed = open_split(DataConfig(**{**data.model_dump(), "noise": noise}), "train").table
    assert mixed.truth.mismatched.any()
    assert mixed.weights.tolist() == [k / 8 for k in range(6)]
    known = open_split(DataConfig(**{**data.model_dump(), "noise": {**noise, "oracle": True}}), "train").table
    assert known.weights.tolist() == mixed.weights[~mixed.truth.mismatched].tolist()
    assert mixed.without_truth(np.array([4, 1])).weights.tolist() == [0.5, 0.125]
    assert open_split(data.model_copy(update={"limit": 2}), "train").table.weights.tolist() == [0, 0.125, 0.25, 0.375]


@pytest.mark.parametrize("weight", [-0.5, "nan", "inf", "much", None, 1e300])
def test_a_weight_that_is_none_is_refused(tmp_path: Path, weight: object) -> None:
    with pytest.raises(InputError, match=r"pairs.csv, line 4: column 'trust' holds .*; expected a weight per pair"):
        open_split(table(tmp_path, "csv", [1, 1, weight, 1, 1, 1, 1, 1]), "train")


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    data = config(tmp_path, weights="trust", **with_ids(tmp_path, IDS))
    with pytest.raises(InputError, match="has no column 'trust' for the weights"):
        open_split(data, "train")


def test_several_captions_in_a_row(tmp_path: Path) -> None:
    rows = [{"image": "im0", "caption": ["a", "b"], "w": [0.5, 2]}, {"image": "im1", "caption": ["c", "d"], "w": 0.25}]
    files = with_ids(tmp_path, IDS)
    source = open_source(config(tmp_path, "jsonl", rows, weights="w", **files), "all")
    assert source.weights.tolist() == [0.5, 2, 0.25, 0.25]
    rows[0]["w"] = [1, 2, 3]
    with pytest.raises(InputError, match="line 1: column 'w' holds 3 weights for 2 captions"):
        open_source(config(tmp_path, "jsonl", rows, weights="w", **files), "all")


def test_beside_arrays(tmp_path: Path) -> None:
    folder = precomp(tmp_path / "pre")
    data = DataConfig(path=str(folder), weights="weights", min_count=1)
    with pytest.raises(InputError, match=r"train_weights.npy"):
        open_split(data, "train")
    count = len(open_source(data.model_copy(update={"weights": None}), "train").image_of_text)
    np.save(folder / "train_weights.npy", np.arange(count))
    assert open_split(data, "train").table.weights.tolist() == list(range(count))
    for wrong, reason in ((np.ones(count + 1), "has shape"), (np.full(count, -1), "entry 0: -1")):
        np.save(folder / "train_weights.npy", wrong)
        with pytest.raises(InputError, match=reason):
            open_split(data, "train")


def test_arrays_without_splits_have_one_file(tmp_path: Path) -> None:
    values = np.arange(200, dtype=np.float32).reshape(100, 2)
    for name, array in (("a", values), ("b", values), ("w", np.arange(100) / 100)):
        np.save(tmp_path / f"{name}.npy", array)
    train = open_split(DataConfig(path=str(tmp_path), weights="w"), "train")
    rows = train.batch(np.arange(len(train))).images[:, 0, 0].numpy() / 2
    assert np.allclose(train.table.weights, rows / 100)
    pair = DataConfig(path=str(tmp_path / "a.npy"), second=str(tmp_path / "b.npy"), weights="w")
    assert open_split(pair, "train").table.weights.tolist() == train.table.weights.tolist()


def test_data_that_has_no_place_for_weights() -> None:
    with pytest.raises(InputError, match="scenes has no place for the weights 'w'"):
        open_split(DataConfig(path="scenes", weights="w"), "train")
