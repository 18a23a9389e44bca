"""Shards of an embedding that are damaged: a sentence that names the file and the shard, and nothing is written."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mispair as mp
from mispair.encoders import registry
from mispair.workflows.embed_shards import POSITION
from tests.colours import colour_encoder, write_colours


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("shards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MISPAIR_CACHE", str(root / "cache"))
        patch.setattr(registry, "_REGISTERED", {"colours": lambda device, cells: colour_encoder()})
        table = write_colours(root, 24, 2)
        for i in (1, 2):
            said = {"images": root / "photos", "encoder": "colours", "workers": 0}
            mp.embed(table, root / f"part-{i}", shard=f"{i}/2", **said)
    return root


@pytest.fixture
def parts(made, tmp_path):
    return [shutil.copytree(made / f"part-{i}", tmp_path / f"part-{i}") for i in (1, 2)]


def refused(parts, match):
    out = parts[0].parent / "out"
    with pytest.raises(mp.InputError, match=match) as error:
        mp.merge_embedded(parts, out)
    assert "disk is full" not in str(error.value)
    assert sorted(path.name for path in out.parent.iterdir()) == ["part-1", "part-2"]


def save(path, array):
    with path.open("wb") as file:
        np.save(file, array)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["shard.json", "encoder.json", "pairs.parquet", "features.npy", "features_ids.txt"])
def test_a_pipe_is_not_waited_for(parts, name):
    (parts[0] / name).unlink()
    os.mkfifo(parts[0] / name)
    refused(parts, f"part-1/{name} is not an ordinary file")


@pytest.mark.parametrize("name", ["features.npy", "texts.npy"])
@pytest.mark.parametrize("damage", ["flat", "one number", "a row less", "another type", "another width"])
def test_arrays_that_do_not_fit_are_refused(parts, name, damage):
    for part in parts:
        if not (part / name).exists():
            save(part / name, np.zeros((len(pq.read_table(part / "pairs.parquet")), 3), np.float32))
    path = parts[0] / name
    array = np.load(path)
    save(path, {"flat": array.ravel(), "one number": np.float32(3), "a row less": array[:-1],
                "another type": array.astype(np.float64), "another width": array[..., :-1]}[damage])  # fmt: skip
    refused(parts, f"part-1/{name} .*embed this shard again: mispair embed ... --shard 1/2|part-2/{name} holds")


def test_a_side_that_one_shard_lacks_is_not_left_out_quietly(parts):
    count = len(np.load(parts[0] / "features.npy"))
    save(parts[1] / "joint.npy", np.zeros((count, 3), np.float32))
    (parts[0] / "joint.npy").unlink(missing_ok=True)
    refused(parts, "part-1/joint.npy does not exist")


def test_names_that_are_no_text_are_refused(parts):
    (parts[0] / "features_ids.txt").write_bytes(b"\xff\n")
    refused(parts, r"part-1/features_ids.txt is not UTF-8; embed this shard again: mispair embed ... --shard 1/2")


def as_column(table, values, name=POSITION):
    return table.drop_columns([name]).append_column(name, pa.array(values))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda table: table.drop_columns([POSITION]), f"has not the columns of a shard, {POSITION} once among them"),
        (lambda table: table.append_column(POSITION, table[POSITION]), "is damaged"),
        (lambda table: as_column(table, ["x"] * len(table)), "has no numbers in its column"),
        (lambda table: as_column(table, [None] * len(table)), "has no numbers in its column"),
        (lambda table: as_column(table, [-5, *range(1, len(table))]), "has a pair at place -5, which is none or taken"),
        (lambda table: as_column(table, [0] * len(table)), "has a pair at place 0, which is none or taken"),
        (lambda table: as_column(table, [1.5] * len(table), "caption"), "has other columns than the other shards"),
    ],
)
def test_tables_that_do_not_fit_are_refused(parts, damage, says):
    path = parts[0] / "pairs.parquet"
    pq.write_table(damage(pq.read_table(path)), path)
    refused(parts, f"part-[12]/pairs.parquet {says}")


def test_a_table_cut_short_is_refused(parts):
    path = parts[0] / "pairs.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    refused(parts, "part-1/pairs.parquet is damaged; embed this shard again: mispair embed ... --shard 1/2")


@pytest.mark.parametrize("name", ["shard.json", "encoder.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", "3", "{}", '{"shard": 1e999}', '{"pictures": "x"}'])
def test_facts_that_are_none_are_refused(parts, name, text):
    (parts[0] / name).write_text(text)
    refused(parts, "part-1/shard.json or encoder.json beside it is damaged; embed this shard again")


def test_numbers_of_shards_have_bounds(parts):
    said = json.loads((parts[0] / "shard.json").read_text())
    for part in parts:
        (part / "shard.json").write_text(json.dumps({**said, "of": 2**62}))
    refused(parts, "is damaged; embed this shard again")
