"""`mispair fix`: every format written back, reverted byte by byte, nothing overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mispair.auditing.verdict_table import SCHEMA
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, NoiseConfig, ScenesConfig, open_split
from tests.cli.audits import BAD, PROPOSED, TEXTS, audit_of, text_table
from tests.cli.calls import Run
from tests.data.samples import captions, features, precomp, run, write_lines


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("action", ["drop", "weight", "rematch", "swap"])
def test_tables(tmp_path: Path, mispair: Run, kind: str, action: str) -> None:
    path = text_table(tmp_path / "data", kind)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    config = DataConfig(path=str(path), min_count=1)
    audit = audit_of(tmp_path / "audit", config, "all")
    ran = mispair("fix", audit, "--action", action, "-o", tmp_path / "fixed", "--json")
    assert ran.code == 0, ran
    after = open_split(config.model_copy(update={"path": str(tmp_path / "fixed" / path.name)}), "all")
    given = open_split(config, "all")
    gone = {"drop": BAD, "rematch": (6,)}.get(action, ())
    kept = [k for k in range(10) if k not in gone]
    shown = [TEXTS[PROPOSED.get(k, k) if action in ("rematch", "swap") else k] for k in kept]
    assert after.table.captions is not None
    assert list(after.table.captions) == shown
    assert after.table.image_ids == [f"im{k}" for k in kept]
    assert np.array_equal(after.images.take(after.table.image_rows)[0], given.images.take(np.array(kept))[0]), (
        "the features stay with their images"
    )
    facts = json.loads(ran.out)
    weights = " --weights weight" if action == "weight" else ""
    assert facts.pop("train") == f"{tmp_path / 'fixed' / path.name}{weights}"
    assert facts.pop("wrong") == (pytest.approx(0.1) if action == "drop" else None if facts["changed"] else 0.34)
    assert facts.pop("true") is None
    changed = 2 if action in ("rematch", "swap") else 0
    assert facts == {"pairs": 10, "kept": len(kept), "changed": changed, "unjudged": 0, "beyond": 0}
    if action == "weight":
        from mispair.data.files.rows import read_rows

        weights = [float(w) for w in read_rows(tmp_path / "fixed" / path.name).columns["weight"]]
        assert weights == pytest.approx([0.1 if k in BAD else 0.9 for k in range(10)])
    assert mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back").code == 0
    assert {file.name: file.read_bytes() for file in (tmp_path / "back").iterdir()} == before
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_list_of_captions_loses_some(tmp_path: Path, mispair: Run) -> None:
    rows = [{"image": f"im{k}", "captions": [f"a {k}", f"b {k}"]} for k in range(6)]
    path = write_lines(tmp_path / "pairs.jsonl", [json.dumps(row) for row in rows])
    np.save(tmp_path / "pairs.npy", features(6))
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(path), min_count=1), "all")
    assert mispair("fix", audit, "--action", "rematch", "-o", tmp_path / "fixed").code == 0
    found = [json.loads(line)["captions"] for line in (tmp_path / "fixed" / "pairs.jsonl").read_text().splitlines()]
    assert found == [["a 0", "b 0"], ["b 2", "b 1"], ["a 2", "a 1"], ["b 3"], ["a 4", "b 4"], ["a 5", "b 5"]]


@pytest.mark.parametrize("action", ["drop", "weight", "rematch", "swap"])
@pytest.mark.parametrize("noise", [None, NoiseConfig(rate=0.5)])
def test_folders(tmp_path: Path, mispair: Run, action: str, noise: NoiseConfig | None) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    write_lines(folder / "train_ids.txt", [f"im{k}" for k in range(7)])
    config = DataConfig(path=str(folder), min_count=1, noise=noise)
    given = open_split(config, "train")
    audit = audit_of(tmp_path / "audit", config, "train")
    assert mispair("fix", audit, "--action", action, "-o", tmp_path / "fixed").code == 0
    plain = DataConfig(path=str(tmp_path / "fixed"), min_count=1)
    after = open_split(plain, "train")
    gone = {"drop": BAD, "rematch": (6,)}.get(action, ())
    kept = [k for k in range(35) if k not in gone]
    assert given.table.captions is not None
    texts = given.table.captions
    assert list(after.table.captions or ()) == [
        texts[PROPOSED.get(k, k) if action in ("rematch", "swap") else k] for k in kept
    ]
    assert np.array_equal(
        after.images.take(after.table.image_rows)[0], given.images.take(given.table.image_rows[kept])[0]
    )
    assert len(open_split(plain, "dev")) == 35
    if action == "weight":
        weights = np.load(tmp_path / "fixed" / "train_weights.npy", allow_pickle=False)
        assert weights[:4].tolist() == pytest.approx([0.9, 0.9, 0.1, 0.9])
    assert mispair("fix", "--undo", tmp_path / "fixed" / "fix.patch", "-o", tmp_path / "back").code == 0
    back = open_split(DataConfig(path=str(tmp_path / "back"), min_count=1), "train")
    assert list(back.table.captions or ()) == list(texts)
    assert np.array_equal(back.images.take(back.table.image_rows)[0], given.images.take(given.table.image_rows)[0])
    if noise is None:
        names = {file.name for file in folder.iterdir()}
        assert {file.name for file in (tmp_path / "back").iterdir()} == names
        assert all((folder / name).read_bytes() == (tmp_path / "back" / name).read_bytes() for name in names)


def test_ids_and_captions_in_one_file(tmp_path: Path, mispair: Run) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "train_ims.npy", features(9))
    write_lines(folder / "train_caps.tsv", [f"im{k}\t{text}" for k, text in enumerate(captions(9))])
    audit = audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train")
    assert mispair("fix", audit, "--action", "swap", "-o", tmp_path / "fixed").code == 0
    lines = (tmp_path / "fixed" / "train_caps.tsv").read_text().splitlines()
    assert lines[2] == f"im2\t{captions(9)[5]}"
    assert mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back").code == 0
    assert (tmp_path / "back" / "train_caps.tsv").read_bytes() == (folder / "train_caps.tsv").read_bytes()


@pytest.mark.parametrize("per_image", [1, 2])
def test_two_arrays(tmp_path: Path, mispair: Run, per_image: int) -> None:
    a, b = features(10, regions=0), features(10 * per_image, regions=0, seed=1)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    config = DataConfig(path=str(tmp_path / "a.npy"), second=str(tmp_path / "b.npy"))
    audit = audit_of(tmp_path / "audit", config, "all")
    assert mispair("fix", audit, "--action", "rematch", "-o", tmp_path / "fixed").code == 0
    kept = [k for k in range(10 * per_image) if k != 6]
    fixed = open_split(DataConfig(path=str(tmp_path / "fixed/a.npy"), second=str(tmp_path / "fixed/b.npy")), "all")
    shown = fixed.images.take(fixed.table.image_rows)[0][:, 0]
    assert np.array_equal(shown, np.repeat(a, per_image, 0)[kept])
    assert len(fixed.images) == len({k // per_image for k in kept}), "every image is there once"
    assert np.array_equal(np.load(tmp_path / "fixed" / "b.npy"), b[[PROPOSED.get(k, k) for k in kept]])
    assert mispair("fix", "--undo", tmp_path / "fixed", "-o", tmp_path / "back").code == 0
    for name in ("a.npy", "b.npy"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_scenes_become_a_folder(tmp_path: Path, mispair: Run) -> None:
    config = DataConfig(scenes=ScenesConfig(pictures=40), noise=NoiseConfig(rate=0.4))
    audit = audit_of(tmp_path / "audit", config, "train")
    assert mispair("fix", audit, "--action", "drop", "-o", tmp_path / "fixed").code == 0
    fixed = DataConfig(path=str(tmp_path / "fixed"))
    given = open_split(config, "train")
    assert len(open_split(fixed, "train")) == len(given) - 3
    assert len(open_split(fixed, "test")) == len(open_split(config, "test"))


@pytest.mark.parametrize("number", [lambda k: k, lambda k: k // 5, lambda k: k // 5 * 5], ids=["row", "image", "first"])
def test_an_audit_in_memory_is_told_its_data(tmp_path: Path, mispair: Run, number: Callable[[int], int]) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    found = Verdicts.load(audit_of(tmp_path / "audit", DataConfig(path=str(folder), min_count=1), "train"))
    texts = [line.strip() for line in (folder / "train_caps.txt").read_text().splitlines()]
    at = found.table.schema.get_field_index("caption")
    table = found.table.set_column(at, SCHEMA.field("caption"), pa.array(texts))
    table = table.set_column(2, SCHEMA.field("image_id"), pa.array([str(number(k)) for k in range(35)]))
    Verdicts(table, replace(found.facts, data={})).save(tmp_path / "other")
    told = ("fix", tmp_path / "other", "--action", "drop", "-o", tmp_path / "x")
    assert "made in memory" in mispair(*told).err
    ran = mispair(*told, "--data", folder)
    assert ran.code == 0, ran
    assert len((tmp_path / "x" / "train_caps.txt").read_text().splitlines()) == 32
    write_lines(folder / "train_caps.txt", [*texts[:7], "another", *texts[8:]])
    ran = mispair("fix", tmp_path / "other", "--action", "drop", "-o", tmp_path / "y", "--data", folder)
    assert ran.code == 2
    assert "train: pair 7 has another caption" in ran.err
    short = precomp(tmp_path / "short", images=3)
    ran = mispair("fix", tmp_path / "other", "--action", "drop", "-o", tmp_path / "y", "--data", short)
    assert "it has 15 pairs, the audit 35" in ran.err
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("name", ["metadata.csv", "pairs.csv"])
def test_pictures_are_found_again(tmp_path: Path, mispair: Run, name: str) -> None:
    """An image folder takes its pictures along; those that an ordinary table names stay, and their place is said."""
    import mispair as mp
    from mispair.workflows.report.find_pictures import PicturesById
    from tests.auditing.planted import planted
    from tests.report.samples import png

    (tmp_path / "data" / "images").mkdir(parents=True)
    for k in range(101):
        (tmp_path / "data" / "images" / f"{k}.png").write_bytes(png(8, 8))
    lines = [f"images/{k}.png,words {k}" for k in range(101)]
    write_lines(tmp_path / "data" / name, ["file_name,caption", *lines])
    a, b, *_ = planted(pairs=101)
    ids = [f"images/{k}.png" for k in range(101)]
    mp.quick_audit(a, b, image_ids=ids, captions=[f"words {k}" for k in range(101)]).save(tmp_path / "audit")
    out = tmp_path / "clean"
    ran = mispair("fix", tmp_path / "audit", "--data", tmp_path / "data", "--action", "drop", "-o", out)
    assert ran.code == 0, ran
    along = name == "metadata.csv"
    assert (f"--images {tmp_path / 'data'}" in ran.out) != along
    told = DataConfig(path=str(out / name), images=None if along else str(tmp_path / "data"))
    kept = [line.split(",")[0] for line in (out / name).read_text().splitlines()[1:]]
    assert PicturesById(told, "all", kept).complete
