"""Where a sample of a tar says its caption, and what its picture is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mispair.data import ColumnsConfig, DataConfig, open_source
from tests.data.picture_samples import picture, write_tar


def _captions(folder: Path, about: dict[str, Any], column: str | None = None) -> list[str] | None:
    members = {"a/1.png": picture(0), "a/1.json": json.dumps(about).encode()}
    tar = write_tar(folder / "x.tar", members)
    source = open_source(DataConfig(path=str(tar), columns=ColumnsConfig(caption=column)), "all")
    return None if source.captions is None else list(source.captions)


@pytest.mark.parametrize("name", ["caption", "TEXT", "text", "Title", "alt", "description"])
def test_a_usual_name_in_any_case(tmp_path: Path, name: str) -> None:
    assert _captions(tmp_path, {"url": "http://x", "status": "success", name: " a dog "}) == ["a dog"]


def test_the_best_name_that_says_something(tmp_path: Path) -> None:
    assert _captions(tmp_path, {"text": "second", "CAPTION": "first"}) == ["first"]
    assert _captions(tmp_path, {"text": "second", "caption": ""}) == ["second"]


def test_a_name_of_ones_own(tmp_path: Path) -> None:
    about = {"caption_de": "ein Hund", "caption": "a dog"}
    assert _captions(tmp_path, about, "caption_de") == ["ein Hund"]
    assert _captions(tmp_path, {"caption": "a dog"}, "caption_de") is None


def test_shards_of_one_name_in_several_folders_keep_their_pictures_apart(tmp_path: Path) -> None:
    for k, folder in enumerate(("a", "b")):
        write_tar(tmp_path / folder / "00000.tar", {"1.png": picture(k), "1.txt": f"caption {k}".encode()})
    source = open_source(DataConfig(path=str(tmp_path / "{a,b}/00000.tar")), "all")
    assert source.image_ids == ["a/00000/1", "b/00000/1"]
    assert source.image_of_text.tolist() == [0, 1]
    assert source.pictures is not None
    assert list(source.pictures) == [picture(0), picture(1)]


def test_half_of_a_character_is_left_out_and_said(tmp_path: Path) -> None:
    """As crawlers cut captions; it could be written nowhere."""
    members = {"1.png": picture(0), "1.json": b'{"caption": "a \\ud83d dog \\ud83d\\ude00"}'}
    source = open_source(DataConfig(path=str(write_tar(tmp_path / "x.tar", members))), "all")
    assert source.captions == ["a \ufffd dog \U0001f600"]
    (finding,) = source.findings
    assert "1 caption (first of '1') not in UTF-8" in finding.text
