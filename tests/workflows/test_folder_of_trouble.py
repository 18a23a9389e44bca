"""A folder where everything is wrong: what each verb says of it, what it lists, that it leaves nothing half-done."""

from __future__ import annotations

import csv
import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.encoders import registry
from tests.colours import colour_encoder, colour_picture, write_colours
from tests.data.samples import Ran, listing, precomp, run

Run = Callable[..., Ran]
ENCODER = ("--encoder", "colours", "--workers", 0)
# name in the table -> the reason that is given
TROUBLE = {
    "half.png": "truncated",
    "empty.jpg": "empty file",
    "page.jpg": "not a picture but a web page",
    "bomb.png": "too large: more than 120 million pixels",
    "nowhere.png": "missing",
    "pipe.jpg": "not an ordinary file",
    "out.png": "lies outside the folder of pictures (--allow-outside lets it in)",
    "gone.png": "missing",
    "http://a.org/a.jpg": "is an address on the web, which is not fetched: download the pictures with img2dataset",
    "../secret.png": "lies outside the folder of pictures (--allow-outside lets it in)",
    "/etc/hostname": "lies outside the folder of pictures (--allow-outside lets it in)",
}


def _bomb() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """96 good pictures, one with spaces and letters of its own, one mislabelled; and each kind of trouble once.

    The table is in Latin-1 with semicolons, names one picture twice and has an empty caption.
    """
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    table, photos = write_colours(tmp_path), tmp_path / "photos"
    (photos / "000.png").rename(photos / "weiß und blå.JPG")
    good = colour_picture("red", 1)
    (photos / "half.png").write_bytes(good[: len(good) // 2])
    (photos / "empty.jpg").touch()
    (photos / "page.jpg").write_text("<!DOCTYPE html><html>404</html>")
    (photos / "bomb.png").write_bytes(_bomb())
    (photos / "nowhere.png").symlink_to("nothing.png")
    (photos / "out.png").symlink_to("../secret.png")
    (tmp_path / "secret.png").write_bytes(good)
    os.mkfifo(photos / "pipe.jpg")
    rows = [line.replace("000.png", "weiß und blå.JPG").split(",") for line in table.read_text().splitlines()]
    rows += [[name, "a café, red; or blue"] for name in TROUBLE] + [
        ["001.png", "a green square again"],
        ["002.png", ""],
    ]
    with table.open("w", encoding="latin-1", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mispair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def _failed(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["reason"] for row in csv.DictReader(file)}


def test_check_names_every_picture_that_cannot_be_used(here: Path, mispair: Run) -> None:
    ran = mispair("check", "pairs.csv", "--images", "photos")
    assert ran.code == 1
    for name, reason in TROUBLE.items():
        assert f"\n  {name}: {reason}\n" in ran.out
    for said in (
        "read as Latin-1",
        "6 pictures are broken",
        "5 pictures cannot be had",
        "1 caption (line 110) is empty",
    ):
        assert said in ran.out
    assert "training holds out 10% of the images as dev" in ran.out
    (split,) = json.loads(mispair("check", "pairs.csv", "--images", "photos", "--json").out)["splits"]
    assert split["unusable"] == TROUBLE


def test_of_many_the_first_are_shown_and_all_are_in_json(
    here: Path, mispair: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mispair.cli.check.SHOWN", 3)
    said = mispair("check", "pairs.csv", "--images", "photos").out
    assert "  ... and 8 more; --json lists all\n" in said


@pytest.mark.parametrize("verb", ["embed", "audit", "audit --train", "train"])
def test_what_is_missing_is_refused_and_leaves_nothing(here: Path, mispair: Run, verb: str) -> None:
    name, *options = verb.split()
    before = sorted(listing(here))
    ran = mispair(name, "pairs.csv", "--images", "photos", *ENCODER, *options, "-o", "out")
    assert ran.code == 2
    assert "line 104: 5 pictures cannot be had (first 'out.png': lies outside" in ran.err
    assert "--missing skip" in ran.err
    assert sorted(listing(here)) == before


@pytest.mark.parametrize("verb", ["embed", "audit", "audit --train --epochs 2 --folds 0", "train --epochs 2"])
def test_what_is_left_out_is_listed_beside_the_result(here: Path, mispair: Run, verb: str) -> None:
    name, *options = verb.split()
    ran = mispair(name, "pairs.csv", "--images", "photos", *ENCODER, *options, "--missing", "skip", "-o", "out")
    assert ran.code == 0, ran.err
    assert _failed(here / "out/failed.csv") == TROUBLE
    assert "out/failed.csv" in ran.out + ran.err
    if "train" in verb:
        assert "no row in features.npy (first 'half.png': truncated; all are listed in" in ran.err.replace("\n", " ")
    if name == "embed":
        assert pq.read_table("out/pairs.parquet").num_rows == 98
        assert "Next: mispair audit out, mispair train out, or mispair audit out --train\n" in ran.out


def test_a_table_that_is_mended_stays_in_its_own_format(here: Path, mispair: Run) -> None:
    audit = ("audit", "pairs.csv", "--images", "photos", *ENCODER, "--missing", "skip", "-o", "audit")
    assert mispair(*audit).code == 0
    assert mispair("fix", "audit", "--action", "drop", "-o", "fixed").code == 0
    given, mended = ((here / name).read_bytes().splitlines() for name in ("pairs.csv", "fixed/pairs.csv"))
    assert set(mended) < set(given), "rows leave, none is written anew"
    assert "weiß und blå.JPG".encode("latin-1") in (here / "pairs.csv").read_bytes()
    for name in TROUBLE:
        assert any(line.startswith(name.encode()) for line in mended), "nobody judged it, so it stays"
    assert mispair("fix", "--undo", "fixed", "-o", "back").code == 0
    assert (here / "back/pairs.csv").read_bytes() == (here / "pairs.csv").read_bytes()


@pytest.mark.parametrize(("caption", "how"), [("a photo", "alike ('a photo')"), ("", "empty")])
@pytest.mark.parametrize("verb", ["audit", "audit --train", "train"])
def test_captions_that_say_nothing_are_blamed_and_not_their_vectors(
    here: Path, mispair: Run, verb: str, caption: str, how: str
) -> None:
    rows = [f"{k:03d}.png,{caption}" for k in range(1, 60)]
    (here / "same.csv").write_text("\n".join(["filepath,title", *rows]) + "\n")
    name, *options = verb.split()
    ran = mispair(name, "same.csv", "--images", "photos", *ENCODER, *options, "-o", "out")
    assert ran.code == 2
    assert f" are {how}; expected captions that tell images apart" in ran.err.replace("\n", " ")
    assert not (here / "out").exists()
    said = mispair("check", "same.csv", "--images", "photos").out
    assert f"all 59 captions are {how}: nothing to learn" in said


@pytest.mark.parametrize("verb", ["check", "embed", "audit", "audit --train", "train"])
def test_a_file_name_that_is_no_text_costs_one_sentence(here: Path, mispair: Run, verb: str) -> None:
    folder = here / "beside"
    folder.mkdir()
    for ending, content in ((b"png", colour_picture("red", 0)), (b"txt", b"a red square")):
        with open(os.fsencode(folder) + b"/bild \xff." + ending, "wb") as file:
            file.write(content)
    name, *options = verb.split()
    encoding = () if name == "check" else (*ENCODER, "-o", here / "out")
    ran = mispair(name, folder, *encoding, *options, "--missing", "skip")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert r"the name of the picture bild \xff.png is not UTF-8; rename it" in ran.err


def test_embedding_what_brings_its_features_is_refused(here: Path, mispair: Run) -> None:
    pq.write_table(pa.table({"image_id": ["a", "b"], "caption": ["x", "y"], "embedding": [[1.0], [2.0]]}), "p.parquet")
    for data in (precomp(here / "f", splits=("train", "dev")), "p.parquet", "scenes"):
        ran = mispair("embed", data, "-o", "out")
        assert ran.code == 2
        assert f"{data} brings its features: nothing is to be encoded" in ran.err


def test_pictures_without_captions_are_embedded_and_what_is_missing_is_said(here: Path, mispair: Run) -> None:
    (here / "photos/notes.csv").write_text("a,b\n")
    (here / "photos/more.csv").write_text("a,b\n")
    ran = mispair("embed", "photos", *ENCODER, "--missing", "skip", "-o", "out")
    assert ran.code == 0, ran.err
    assert "There is nothing to train on yet: photos holds pictures and 2 files that may have their captions" in ran.out
    assert "mispair train" not in ran.out


def test_the_columns_of_flickr30k_are_known(here: Path, mispair: Run) -> None:
    rows = [
        "image_name| comment_number| comment",
        "001.png| 0| a green square",
        "001.png| 1| green",
        "002.png| 0| blue",
    ]
    (here / "results.csv").write_text("\n".join(rows) + "\n")
    said = json.loads(mispair("check", "results.csv", "--images", "photos", "--json").out)
    assert [(split["pairs"], split["images"]) for split in said["splits"]] == [(3, 2)]
