"""COCO's and Karpathy's JSON: a caption is a text, and what is none is named before anything is encoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mispair.data import DataConfig, open_source
from mispair.errors import InputError
from tests.data.picture_samples import write_pictures


def _coco(folder: Path, caption: Any = "a cat", name: Any = "1.png", number: Any = 7) -> DataConfig:
    write_pictures(folder, ["0.png", "1.png"])
    content = {
        "images": [{"id": 0, "file_name": "0.png"}, {"id": 1, "file_name": name}],
        "annotations": [
            {"id": 6, "image_id": 0, "caption": "a dog"},
            {"id": number, "image_id": 1, "caption": caption},
        ],
    }
    (folder / "captions.json").write_text(json.dumps(content))
    return DataConfig(path=str(folder / "captions.json"))


def _karpathy(folder: Path, caption: Any = "a cat", name: Any = "1.png", number: Any = 7) -> DataConfig:
    write_pictures(folder, ["0.png", "1.png"])
    images = [
        {"filename": "0.png", "split": "train", "sentences": [{"raw": "a dog", "sentid": 6}]},
        {"filename": name, "split": "train", "sentences": [{"raw": caption, "sentid": number}]},
    ]
    (folder / "dataset.json").write_text(json.dumps({"images": images}))
    return DataConfig(path=str(folder / "dataset.json"))


MAKERS = pytest.mark.parametrize("make", [_coco, _karpathy])


@MAKERS
def test_a_caption_that_is_null_says_nothing(make: Any, tmp_path: Path) -> None:
    assert open_source(make(tmp_path, caption=None), "all").captions == ["a dog", ""]


@MAKERS
def test_a_number_that_is_null_is_as_good_as_none(make: Any, tmp_path: Path) -> None:
    ids = open_source(make(tmp_path, number=None), "all").text_ids
    assert ids is not None
    assert "None" not in ids


@MAKERS
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"caption": ["a cat"]},
            "(annotation|image) 1: .*(caption|sentence 0) holds a list; expected a caption as text",
        ),
        ({"caption": 7}, "(annotation|image) 1: .*(caption|sentence 0) holds a number; expected a caption as text"),
        ({"caption": "a \ud800"}, "(annotation|image) 1: .*(caption|sentence 0) holds half of a character"),
        ({"name": None}, "image 1( |: its filename )holds null; expected a name"),
        ({"name": " "}, "image 1( |: its filename )is empty; expected a name"),
        ({"name": "\udfff.png"}, "image 1( |: its filename )holds half of a character"),
        ({"number": {"a": 1}}, "(annotation|image) 1: .*id.* holds an object; expected a name"),
    ],
)
def test_what_is_no_text_is_named(make: Any, given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        open_source(make(tmp_path, **given), "all")


def _image(**changed: Any) -> dict[str, Any]:
    good = {"filename": "0.png", "split": "train", "sentences": [{"raw": "a dog"}]}
    return {key: value for key, value in {**good, **changed}.items() if value != "gone"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (7, "dataset.json is a number; expected COCO"),
        ({"annotations": []}, 'dataset.json has no "images"; expected COCO'),
        ({"images": {}}, 'dataset.json: its "images" is an empty object; expected COCO'),
        ({"images": [None]}, "dataset.json, image 0 is null; expected COCO"),
        ({"images": [{"id": [1]}]}, "dataset.json, image 0: its id is a list; expected a number or a name"),
        ({"images": [{"id": 1}]}, 'dataset.json, image 0 has no "file_name"; expected COCO'),
        ({"images": []}, 'dataset.json has no "annotations"; expected COCO'),
        (
            {"images": [], "annotations": [{"image_id": {}}]},
            "annotation 0: its image_id is an empty object; expected a",
        ),
        ({"images": [_image(sentences=None)]}, 'image 0: its "sentences" is null; expected Karpathy'),
        ({"images": [_image(), _image(split="gone")]}, 'image 1 has no "split"; expected Karpathy'),
        ({"images": [_image(sentences=["a dog"])]}, "image 0, sentence 0 is a text; expected Karpathy"),
        ({"images": [_image(sentences=[{"tokens": []}])]}, 'image 0, sentence 0 has no "raw"; expected Karpathy'),
    ],
)
def test_what_is_missing_or_of_another_kind_is_said_in_words_of_json(content: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=said):
        open_source(DataConfig(path=str(tmp_path / "dataset.json")), "all")
