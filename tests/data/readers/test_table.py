"""Tables: the usual columns are recognised, features are joined by id, what is missing is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mispair.data import ColumnsConfig, DataConfig, list_data_splits, open_source, open_split
from mispair.data.files.columns import recognise
from mispair.errors import InputError
from tests.data.samples import features, write_lines
from tests.data.tables import ROWS, config, with_ids


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_gives_the_same_table(tmp_path: Path, kind: str) -> None:
    data = config(tmp_path, kind, **with_ids(tmp_path, ["im3", "im2", "im1", "im0"]))
    assert list_data_splits(data) == ["train", "test"]
    source = open_source(data, "train")
    assert source.captions == [f"a dog, number {k}" for k in range(6)]
    assert source.image_ids == ["im0", "im1", "im2"]
    assert source.image_of_text.tolist() == [0, 0, 1, 1, 2, 2]
    assert source.captions_per_image == 2
    assert source.images is not None
    assert np.array_equal(source.images.take(np.arange(3))[0], features(4)[[3, 2, 1]])
    assert "image from 'image_id', caption from 'caption', split from 'split'" in source.notes[0]


@pytest.mark.parametrize(
    ("header", "image", "caption", "pair"),
    [
        (["filepath", "title"], "filepath", "title", None),  # open_clip
        (["file_name", "text"], "file_name", "text", None),  # Hugging Face image folder
        (["image", "caption"], "image", "caption", None),
        (["url", "caption", "key", "status", "width"], "key", "caption", None),  # img2dataset
        (["uid", "url", "text"], "uid", "text", None),  # DataComp
        (["URL", "TEXT"], "URL", "TEXT", None),  # LAION
        (["image_id", "id", "caption"], "image_id", "caption", "id"),  # COCO annotations
        (["image_path", "uid", "sentence"], "image_path", "sentence", "uid"),
    ],
)
def test_usual_names(header: list[str], image: str, caption: str, pair: str | None) -> None:
    columns = recognise(header, ColumnsConfig(), "x.csv")
    assert (columns.image, columns.caption, columns.id) == (image, caption, pair)


def test_named_columns_win(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"caption": "no", "title": "yes", "image": "a", "photo": "b"}]
    chosen = ColumnsConfig(caption="title", image="photo")
    source = open_source(config(tmp_path, rows=rows, columns=chosen), "all")
    assert source.captions == ["yes"]
    assert source.image_ids == ["b"]


def test_tabs_in_a_csv(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "p.csv", ["filepath\ttitle", "a.jpg\ta dog, brown"])
    assert open_source(DataConfig(path=str(path)), "all").captions == ["a dog, brown"]


def test_ids_keep_their_zeros_and_numbers_become_names(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"image_id": "007", "caption": "a"}, {"image_id": 7, "caption": "b"}]
    assert open_source(config(tmp_path, "jsonl", rows), "all").image_ids == ["007", "7"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_list_of_captions_is_several_pairs(tmp_path: Path, kind: str) -> None:
    rows: list[dict[str, object]] = [{"image": "a", "caption": ["one", "two"]}, {"image": "b", "caption": ["three"]}]
    np.save(tmp_path / "pairs.npy", features(2))
    source = open_source(config(tmp_path, kind, rows), "all")
    assert source.captions == ["one", "two", "three"]
    assert source.image_of_text.tolist() == [0, 0, 1]
    assert source.captions_per_image is None


def test_pictures_inside_a_parquet_are_left_on_disk(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"key": "k1", "caption": "a", "jpg": b"\xff\xd8", "embedding": [0.5, 0.25]}]
    assert open_source(config(tmp_path, "parquet", rows), "all").image_ids == ["k1"]


def test_features_row_by_row_or_image_by_image(tmp_path: Path) -> None:
    for count, expected in ((8, [0, 2, 4, 6]), (4, [0, 1, 2, 3])):
        np.save(tmp_path / "pairs.npy", features(count))
        source = open_source(config(tmp_path), "all")
        assert source.images is not None
        assert np.array_equal(source.images.take(np.arange(4))[0], features(count)[expected])


@pytest.mark.parametrize(("inside", "listed"), [("a/b/im{}.jpg", "im{}.jpg"), ("a/b/im{}.jpg", "im{}")])
def test_paths_are_found_by_file_name(tmp_path: Path, inside: str, listed: str) -> None:
    rows: list[dict[str, object]] = [{"filepath": inside.format(k), "title": f"t{k}"} for k in range(3)]
    data = config(tmp_path, rows=rows, **with_ids(tmp_path, [listed.format(k) for k in (2, 1, 0)]))
    source = open_source(data, "all")
    assert source.images is not None
    assert np.array_equal(source.images.take(np.arange(3))[0], features(3)[[2, 1, 0]])
    assert any("by file name" in note for note in source.notes)


def test_missing_ids_are_refused_or_skipped(tmp_path: Path) -> None:
    given = with_ids(tmp_path, ["im0", "im2", "extra"])
    with pytest.raises(InputError, match=r"pairs.csv, line 4: 1 image has no row.*--missing skip"):
        open_split(config(tmp_path, **given), "train")
    data = open_split(config(tmp_path, missing="skip", **given), "train")
    assert data.table.image_ids == ["im0", "im2"]
    assert len(data) == 4
    kinds = {finding.kind for finding in open_source(config(tmp_path, **given), "train").findings}
    assert kinds == {"ids without features", "features without a pair"}


def test_features_on_both_sides(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", features(8))
    np.save(tmp_path / "b.npy", features(8, 0, 5, seed=1))
    rows: list[dict[str, object]] = [{"image_id": k, "split": row["split"]} for k, row in enumerate(ROWS)]
    data = open_split(
        config(tmp_path, rows=rows, features=str(tmp_path / "a.npy"), second=str(tmp_path / "b.npy")), "test"
    )
    assert data.vocabulary is None
    texts, mask = data.text_batch(np.arange(2))
    assert texts.shape == (2, 1, 5)
    assert mask.all()
    assert np.array_equal(texts[:, 0].numpy(), features(8, 0, 5, seed=1)[6:])


def test_without_a_split_column_parts_are_drawn_by_name(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"image_id": f"im{k // 2}", "caption": f"dog {k}"} for k in range(400)]
    data = config(tmp_path, rows=rows)
    parts = {name: set(open_source(data, name).image_ids or ()) for name in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 200
    assert not parts["train"] & parts["dev"] | parts["dev"] & parts["test"] | parts["train"] & parts["test"]
    assert 8 < len(parts["dev"]) < 35
    assert len(open_source(data, "all").image_of_text) == 400
    more = [*rows, *({"image_id": f"new{k}", "caption": "dog"} for k in range(50))]
    assert parts["test"] <= set(open_source(config(tmp_path, rows=more), "test").image_ids or ())


@pytest.mark.parametrize(("written", "name"), [("validation", "dev"), ("val", "dev"), ("TRAINING", "train")])
def test_other_names_of_splits(tmp_path: Path, written: str, name: str) -> None:
    rows: list[dict[str, object]] = [{"image_id": "a", "caption": "b", "split": written}]
    assert list_data_splits(config(tmp_path, rows=rows)) == [name]


def test_a_table_without_features_cannot_be_trained_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no features.*data.features"):
        open_split(config(tmp_path), "train")


def test_a_folder_of_pictures_with_metadata_is_the_table_in_it(tmp_path: Path) -> None:
    write_lines(tmp_path / "metadata.jsonl", [json.dumps({"file_name": "a.png", "text": "a dog"})])
    assert open_source(DataConfig(path=str(tmp_path)), "all").captions == ["a dog"]


def test_where_dev_is_missing_some_of_train_is_held_out_and_that_is_said(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"image_id": f"im{k // 2}", "caption": f"dog {k}", "split": "test" if k >= 160 else "train"} for k in range(200)
    ]
    data = config(tmp_path, rows=rows)
    np.save(tmp_path / "pairs.npy", features(100))
    assert list_data_splits(data) == ["train", "dev", "test"]
    parts = {split: open_source(data, split) for split in ("train", "dev", "test", "all")}
    names = {split: set(part.image_ids or ()) for split, part in parts.items()}
    assert names["train"] | names["dev"] == {f"im{k}" for k in range(80)}
    assert not names["train"] & names["dev"]
    assert 2 <= len(names["dev"]) <= 20
    assert names["test"] == {f"im{k}" for k in range(80, 100)}
    assert len(parts["all"].image_of_text) == 200
    for split in ("train", "dev"):
        assert any("has no dev split: 10% of its train images" in note for note in parts[split].notes)
    assert not any("dev split" in note for note in parts["test"].notes)


def test_a_dev_split_of_its_own_is_left_alone(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"image_id": f"im{k}", "caption": f"dog {k}", "split": "val" if k >= 90 else "train"} for k in range(100)
    ]
    data = config(tmp_path, rows=rows)
    assert open_source(data, "dev").image_ids == [f"im{k}" for k in range(90, 100)]
    assert len(open_source(data, "train").image_of_text) == 90


def test_too_few_rows_to_hold_some_out_are_told_what_to_change(tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.csv", ["image_id,caption", "im0,one", "im1,two", "im2,three"])
    np.save(tmp_path / "pairs.npy", features(3))
    with pytest.raises(InputError, match=r"none of 3 rows .*20 of train at least.* --set data\.holdout=\[0\.3,0\.2\]"):
        open_source(DataConfig(path=str(tmp_path / "pairs.csv")), "dev")


def test_splits_are_known_however_they_are_written(tmp_path: Path) -> None:
    names = ["TRAIN", "Training", "Val", "VALIDATION", "Test", "testing", "extra"]
    write_lines(tmp_path / "pairs.csv", ["image_id,caption,split", *(f"im{k},a dog,{n}" for k, n in enumerate(names))])
    np.save(tmp_path / "pairs.npy", features(7))
    data = DataConfig(path=str(tmp_path / "pairs.csv"))
    assert list_data_splits(data) == ["train", "dev", "test", "extra"]
    assert open_source(data, "test").image_ids == ["im4", "im5"]


def test_a_split_column_without_train_is_told_with_a_way_forward(tmp_path: Path) -> None:
    write_lines(tmp_path / "pairs.csv", ["image_id,caption,split", "im0,a dog,test", "im1,a cat,test"])
    np.save(tmp_path / "pairs.npy", features(2))
    with pytest.raises(InputError, match="no rows of split 'train'; expected one of test or all; without a split"):
        open_source(DataConfig(path=str(tmp_path / "pairs.csv")), "train")
