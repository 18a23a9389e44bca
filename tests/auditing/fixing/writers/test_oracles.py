"""What is written is read by the libraries the formats come from: `datasets`, `tarfile`; and nothing else moved."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.write import write_fixed
from mispair.auditing.fixing.writers.json_style import dump_like
from mispair.data import DataConfig
from mispair.errors import InputError
from tests.auditing.fixing.writers.own_formats import coco_of_five, data_folder, img2dataset, karpathy_of_two, opened
from tests.data.picture_samples import picture, write_pictures, write_tar
from tests.data.samples import write_lines

KEPT, SHOWS = [0, 1, 3], [1, 0, 3]


def fixed(config: DataConfig, out: Path, weights: bool = False) -> Path:
    """Row 2 dropped, the captions of 0 and 1 exchanged; or weights for all."""
    data = opened(config)
    every = np.arange(len(data.table))
    plan = Fix("weight", every, every, 0.5 + every / 10) if weights else Fix("rematch", np.array(KEPT), np.array(SHOWS))
    return write_fixed(data, plan, out)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    return datasets


def _saved(datasets: Any, folder: Path, lists: bool = False) -> Any:
    captions: list[Any] = [[f"a {k}", f"b {k}"] if lists else f"caption {k}" for k in range(4)]
    images = [{"bytes": picture(k), "path": f"{k}.png"} for k in range(4)]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "caption": datasets.Sequence(datasets.Value("string")) if lists else datasets.Value("string"),
            "n": datasets.Value("int32"),
        }
    )
    made = datasets.Dataset.from_dict({"image": images, "caption": captions, "n": list(range(4))}, features=features)
    datasets.DatasetDict({"train": made}).save_to_disk(str(folder))
    return made


@pytest.mark.parametrize("weights", [False, True])
def test_a_saved_data_set_is_loaded_by_its_library(hub: Any, tmp_path: Path, weights: bool) -> None:
    given = _saved(hub, tmp_path / "data")
    out = fixed(DataConfig(path=str(tmp_path / "data")), tmp_path / "fixed", weights)
    after = hub.load_from_disk(str(out))["train"]
    rows = range(4) if weights else KEPT
    assert after["n"][:] == list(rows)
    assert after["caption"][:] == [f"caption {k}" for k in (range(4) if weights else SHOWS)]
    raw = after.cast_column("image", hub.Image(decode=False))["image"]
    assert [image["bytes"] for image in raw] == [picture(k) for k in rows]
    assert after[0]["image"].size == (9, 7)
    assert {name: after.features[name] for name in given.features} == dict(given.features)
    before = hub.load_from_disk(str(tmp_path / "data"))["train"]
    assert after._fingerprint != before._fingerprint, "what was computed of the old rows is not taken for the new ones"
    if weights:
        assert after["weight"][:] == pytest.approx([0.5, 0.6, 0.7, 0.8])


def test_damaged_facts_of_a_saved_data_set_cost_one_sentence(hub: Any, tmp_path: Path) -> None:
    _saved(hub, tmp_path / "data")
    (tmp_path / "data/train/state.json").write_text("{nonsense")
    with pytest.raises(InputError, match="state.json, line 1: not JSON"):
        fixed(DataConfig(path=str(tmp_path / "data")), tmp_path / "fixed")
    (tmp_path / "data/train/state.json").write_text("[1]")
    out = fixed(DataConfig(path=str(tmp_path / "data")), tmp_path / "fixed")
    assert json.loads((out / "train/state.json").read_text()) == [1]


def test_lists_of_captions_in_a_saved_data_set(hub: Any, tmp_path: Path) -> None:
    _saved(hub, tmp_path / "data", lists=True)
    data = opened(DataConfig(path=str(tmp_path / "data")))
    every = np.arange(8)
    write_fixed(data, Fix("drop", every[every != 3], every[every != 3], np.full(7, 0.5)), tmp_path / "fixed")
    after = hub.load_from_disk(str(tmp_path / "fixed"))["train"]
    assert after["caption"][:2] == [["a 0", "b 0"], ["a 1"]]
    assert after["weight"][:2] == [[0.5, 0.5], [0.5]]


def test_a_parquet_keeps_its_schema_pictures_groups_and_compression(hub: Any, tmp_path: Path) -> None:
    made = _saved(hub, tmp_path / "unused")
    path = tmp_path / "pairs.parquet"
    pq.write_table(made.data.table, path, row_group_size=2, compression="zstd")
    out = fixed(DataConfig(path=str(path)), tmp_path / "fixed") / "pairs.parquet"
    before, after = pq.ParquetFile(path), pq.ParquetFile(out)
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.metadata.num_row_groups == 2
    assert after.metadata.row_group(0).column(0).compression == "ZSTD"
    assert after.read().column("image").to_pylist() == before.read().column("image").take(pa.array(KEPT)).to_pylist()
    loaded = hub.Dataset.from_parquet(str(out), cache_dir=str(tmp_path / "cache"))
    assert loaded["caption"][:] == [f"caption {k}" for k in SHOWS]
    weighted = fixed(DataConfig(path=str(path)), tmp_path / "weighted", weights=True) / "pairs.parquet"
    loaded = hub.Dataset.from_parquet(str(weighted), cache_dir=str(tmp_path / "cache"))
    assert loaded["weight"][:] == pytest.approx([0.5, 0.6, 0.7, 0.8])


def test_an_image_folder_is_loaded_by_its_library(hub: Any, tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "data/train", [f"ein bild {k}.png" for k in range(4)])
    lines = [json.dumps({"file_name": f"ein bild {k}.png", "text": f"caption {k}"}) for k in range(4)]
    write_lines(folder / "metadata.jsonl", lines)
    out = fixed(DataConfig(path=str(tmp_path / "data")), tmp_path / "fixed")
    assert sorted(path.name for path in (out / "train").iterdir()) == [
        *(f"ein bild {k}.png" for k in KEPT), "metadata.jsonl",
    ]  # fmt: skip
    loaded = hub.load_dataset("imagefolder", data_dir=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["text"][:] == [f"caption {k}" for k in SHOWS]
    # Another picture of the same name is no other data set: what is linked is the same file.
    assert (out / "train/ein bild 3.png").samefile(folder / "ein bild 3.png")


def test_a_tar_keeps_every_other_byte(tmp_path: Path) -> None:
    folder = data_folder(tmp_path)
    plan = Fix("rematch", np.array([*KEPT, 4, 5]), np.array([*SHOWS, 4, 5]))
    out = write_fixed(opened(img2dataset(folder)), plan, tmp_path / "fixed")
    before, after = (_members(one / "00000.tar") for one in (folder, out))
    assert list(after) == [name for name in before if not name.startswith("0002")]
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"000{k}.{kind}" for k in (0, 1) for kind in ("txt", "json")}
    assert after["0000.txt"] == b"words 0001\n"
    assert json.loads(after["0000.json"]) == {"caption": "words 0001", "url": "x", "key": "0000"}
    assert after["0000.json"].count(b"\n    ") == 3, "indented as it was"
    table = pq.read_table(out / "00000.parquet").to_pydict()
    assert table == {"key": ["0000", "0001", "gone"], "caption": ["words 0001", "words 0000", "never came"]}
    assert (out / "00001.tar").samefile(folder / "00001.tar"), "a shard that did not change takes no room"
    assert (out / "00000_stats.json").exists()


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {info.name: stream.read() for info in tar if (stream := tar.extractfile(info)) is not None}


def test_karpathys_and_cocos_json_by_hand(tmp_path: Path) -> None:
    folder = data_folder(tmp_path)
    out = fixed(karpathy_of_two(folder), tmp_path / "fixed") / "dataset_y.json"
    first, second = json.loads(out.read_text())["images"]
    assert [(s["sentid"], s["raw"], s["tokens"]) for s in first["sentences"]] == [
        (0, "A dog, 0 1", ["a", "dog", "0", "1"]), (1, "A dog, 0 0", ["a", "dog", "0", "0"]),
    ]  # fmt: skip
    assert first["sentids"] == [0, 1]
    assert [s["sentid"] for s in second["sentences"]] == second["sentids"] == [3]
    (tmp_path / "coco").mkdir()
    config = coco_of_five(tmp_path / "coco")
    content = json.loads((fixed(config, tmp_path / "coco-fixed") / "captions.json").read_text())
    assert content["annotations"] == [
        {"id": 100, "image_id": 9, "caption": "straße 1"}, {"id": 101, "image_id": 7, "caption": "straße 0"},
        {"id": 103, "image_id": 7, "caption": "straße 3"},
    ]  # fmt: skip
    assert [image["id"] for image in content["images"]] == [7, 9, 1], "one that never had a caption stays"
    write_fixed(opened(config), Fix("drop", np.array([1, 3]), np.array([1, 3])), tmp_path / "less")
    content = json.loads((tmp_path / "less/captions.json").read_text())
    assert [image["id"] for image in content["images"]] == [7, 1]


def test_headers_of_a_tar_stay(tmp_path: Path) -> None:
    """Owner, time and extended headers of what changed; folders, links and the order of everything."""
    path = tmp_path / "one.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        folder = tarfile.TarInfo("Ordner ü")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for k in range(4):
            for name, content in ((f"Ordner ü/{k}.png", picture(k)), (f"Ordner ü/{k}.txt", b"caption %d" % k)):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.uname, info.mode = len(content), 1_700_000_000.5, "wer", 0o640
                tar.addfile(info, io.BytesIO(content))
    out = fixed(DataConfig(path=str(path)), tmp_path / "fixed") / "one.tar"
    with tarfile.open(path) as old, tarfile.open(out) as new:
        before, after = ({m.name: m for m in tar.getmembers()} for tar in (old, new))
        assert list(after) == [name for name in before if "/2." not in name]
        for name, info in after.items():
            for field in ("mtime", "uname", "mode", "type"):
                assert getattr(info, field) == getattr(before[name], field), (name, field)
        stream = new.extractfile("Ordner ü/0.txt")
        assert stream is not None
        assert stream.read() == b"caption 1"


def test_a_patch_of_pictures_holds_what_left_and_little_more(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    pictures = [noise.bytes(60_000) for _ in range(12)]
    members = {f"{k}.jpg": data for k, data in enumerate(pictures)} | {f"{k}.txt": b"words %d" % k for k in range(12)}
    tar = write_tar(tmp_path / "one/one.tar", dict(sorted(members.items())))
    parquet = tmp_path / "two/two.parquet"
    parquet.parent.mkdir()
    pq.write_table(pa.table({"jpg": pictures, "caption": [f"words {k}" for k in range(12)]}), parquet)
    for path in (tar, parquet):
        out = fixed(DataConfig(path=str(path)), tmp_path / f"fixed-{path.stem}")
        kept = len(KEPT) * 60_000
        # KEPT are three of twelve: nine pictures left, each with the rest of a stretch or two at its ends.
        assert (out / path.name).stat().st_size < kept + 30_000
        assert (out / "fix.patch").stat().st_size < 12 * 60_000 - kept + 90_000


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2], "b": "ü"}', '{"a":[1,2],"b":"\\u00fc"}', '{\n "a": [\n  1\n ]\n}\n', '{\n\t"a": {}\n}',
        '{"a": {"b": 1.5, "c": null}}\n', '{"a":1}', "[]",
    ],
)  # fmt: skip
def test_json_as_it_was(text: str) -> None:
    assert dump_like(json.loads(text), text.encode()) == text.encode()
    assert dump_like(json.loads(text), b"\xef\xbb\xbf" + text.encode()) == b"\xef\xbb\xbf" + text.encode()
