"""What `datasets.save_to_disk` wrote, and what `datasets` leaves beside it when somebody works with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.write import write_fixed
from mispair.data import DataConfig, open_source
from mispair.data.splits import open_pairs
from mispair.errors import InputError
from tests.data.picture_samples import picture

KIND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)


def _saved(folder: Path, state: object) -> DataConfig:
    """Four pairs in two files; beside them the results of `map` (the same rows) and of `filter` (row numbers)."""
    folder.mkdir()
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps(state))
    for part in range(2):
        rows = range(2 * part, 2 * part + 2)
        images = pa.array([{"bytes": picture(k), "path": None} for k in rows], KIND)
        table = pa.table({"image": images, "caption": [f"caption {k}" for k in rows]})
        _write(folder / f"data-0000{part}-of-00002.arrow", table)
    _write(folder / "cache-4f0d.arrow", table.append_column("n", pa.array([1, 2])))
    _write(folder / "cache-0a1b.arrow", pa.table({"indices": pa.array([0, 1], pa.uint64())}))
    return DataConfig(path=str(folder))


LISTED = {"_data_files": [{"filename": f"data-0000{k}-of-00002.arrow"} for k in range(2)], "_fingerprint": "a"}


@pytest.mark.parametrize(
    "state", [LISTED, {}, [1], {"_data_files": "x"}, {"_data_files": [{"filename": "../x.arrow"}]}]
)
def test_what_was_computed_of_it_is_no_part_of_it(tmp_path: Path, state: object) -> None:
    source = open_source(_saved(tmp_path / "data", state), "all")
    assert source.captions == [f"caption {k}" for k in range(4)]
    assert source.pictures is not None
    assert list(source.pictures) == [picture(k) for k in range(4)]


def test_a_file_that_its_list_names_and_that_is_gone_is_missed(tmp_path: Path) -> None:
    config = _saved(tmp_path / "data", LISTED)
    (tmp_path / "data/data-00000-of-00002.arrow").unlink()
    with pytest.raises(InputError, match="data-00000-of-00002.arrow does not exist"):
        open_source(config, "all")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"image": [1.0]}, "data-00001-of-00002.arrow: the column 'image' holds double, in data-00000-of-00002.arrow"),
        ({}, "data-00001-of-00002.arrow lacks the column 'image' of data-00000-of-00002.arrow"),
    ],
)
def test_a_file_with_other_columns_is_named(tmp_path: Path, other: dict[str, list[float]], said: str) -> None:
    config = _saved(tmp_path / "data", LISTED)
    _write(tmp_path / "data/data-00001-of-00002.arrow", pa.table({"caption": ["a dog"], **other}))
    with pytest.raises(InputError, match=said):
        open_source(config, "all")


def test_what_was_computed_of_the_old_rows_does_not_come_along(tmp_path: Path) -> None:
    config = _saved(tmp_path / "data", LISTED)
    kept = [0, 2, 3]
    out = write_fixed(
        JudgedData(config, *open_pairs(config, "all")), Fix("drop", np.array(kept), np.array(kept)), tmp_path / "fixed"
    )
    assert open_source(DataConfig(path=str(out)), "all").captions == [f"caption {k}" for k in kept]
    assert not list(out.glob("cache-*"))
