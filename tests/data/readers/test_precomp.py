"""Precomputed folders: redundant and plain arrays give the same table, counts come from the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mispair.data.features import FeatureStore
from mispair.data.files.captions import CaptionFile
from mispair.data.readers.precomp import _remedy, list_splits, open_precomp, repeats
from mispair.errors import InputError
from tests.data.samples import captions, features, precomp, write_lines


@pytest.mark.parametrize("per_image", [1, 2, 5, 7])
def test_redundant_and_plain_give_the_same_table(tmp_path: Path, per_image: int) -> None:
    plain, redundant = tmp_path / "plain", tmp_path / "redundant"
    for folder, repeat in ((plain, 1), (redundant, per_image)):
        folder.mkdir()
        np.save(folder / "test_ims.npy", np.repeat(features(11), repeat, 0))
        write_lines(folder / "test_caps.txt", captions(11 * per_image))
    one, other = open_precomp(plain, "test"), open_precomp(redundant, "test")
    assert one.captions_per_image == other.captions_per_image == per_image
    assert np.array_equal(one.image_of_text, other.image_of_text)
    assert one.images is not None
    assert other.images is not None
    assert len(one.images) == len(other.images) == 11
    assert np.array_equal(one.images.take(np.arange(11))[0], other.images.take(np.arange(11))[0])


def test_two_equal_neighbours_do_not_hide_the_repetition() -> None:
    array = features(4)
    array[1] = array[0]
    assert repeats(FeatureStore(np.repeat(array, 5, 0))) == 5


def test_an_accidental_copy_is_not_a_repetition() -> None:
    array = features(10)
    array[1] = array[0]
    assert repeats(FeatureStore(array)) == 1


def test_all_rows_alike_is_a_broken_array_not_one_image() -> None:
    assert repeats(FeatureStore(np.zeros((50, 3, 4), np.float32))) == 1
    assert repeats(FeatureStore(np.ones((5, 3, 4), np.float32))) == 5


def test_rows_of_different_real_regions_differ() -> None:
    array = np.repeat(features(3), 2, 0)
    assert repeats(FeatureStore(array, lengths=np.array([3, 3, 2, 2, 1, 1]))) == 2
    assert repeats(FeatureStore(array, lengths=np.array([3, 1, 3, 1, 3, 1]))) == 1


def test_nan_rows_still_repeat() -> None:
    array = features(4)
    array[2, 0, 0] = np.nan
    assert repeats(FeatureStore(np.repeat(array, 5, 0))) == 5


def test_repetition_is_found_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.repeat(features(3000, 0, 4000), 3, 0)  # several blocks of 4,000 rows
    assert repeats(FeatureStore(array)) == 3


def test_vectors_are_one_region(tmp_path: Path) -> None:
    np.save(tmp_path / "train_ims.npy", features(6, 0, 5, "float16"))
    write_lines(tmp_path / "train_caps.txt", captions(12))
    source = open_precomp(tmp_path, "train")
    assert source.images is not None
    assert (source.images.regions, source.images.width, source.captions_per_image) == (1, 5, 2)


def test_tsv_with_quotes_and_ids(tmp_path: Path) -> None:
    np.save(tmp_path / "train_ims.npy", features(3))
    write_lines(tmp_path / "train_caps.tsv", ["7\ta dog", '8\t"tab\there"', "9\t a cat "])
    source = open_precomp(tmp_path, "train")
    assert source.captions == ["a dog", "tab\there", "a cat"]
    assert source.image_ids == ["7", "8", "9"]


def test_lines_end_at_newlines_only(tmp_path: Path) -> None:
    precomp(tmp_path, images=2, per_image=1)
    (tmp_path / "train_caps.txt").write_bytes("\ufeffone\u2028still one\r\ntwo\x0bstill two".encode())
    assert open_precomp(tmp_path, "train").captions == ["one\u2028still one", "two\x0bstill two"]


def test_spaces_around_a_caption_are_not_part_of_it(tmp_path: Path) -> None:
    precomp(tmp_path, images=2, per_image=1)
    (tmp_path / "train_caps.txt").write_text("  one \n\ttwo\n")
    assert open_precomp(tmp_path, "train").captions == ["one", "two"]


@pytest.mark.parametrize("count", [3, 6])
def test_ids_by_image_or_by_caption(tmp_path: Path, count: int) -> None:
    precomp(tmp_path, images=3, per_image=2)
    write_lines(tmp_path / "train_ids.txt", [f"p{k * 3 // count}.jpg" for k in range(count)])
    source = open_precomp(tmp_path, "train")
    assert source.image_ids == ["p0.jpg", "p1.jpg", "p2.jpg"]
    assert not source.findings


def test_ids_of_another_count_are_a_finding(tmp_path: Path) -> None:
    precomp(tmp_path, images=3, per_image=2)
    write_lines(tmp_path / "train_ids.txt", ["a", "b"])
    source = open_precomp(tmp_path, "train")
    assert source.image_ids is None
    assert [finding.kind for finding in source.findings] == ["count mismatch"]


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path: Path) -> None:
    precomp(tmp_path, images=3, per_image=1)
    (tmp_path / "train_caps.txt").write_bytes(b"fine\ncaf\xe9\nna\xc3\xafve \xff\n")
    source = open_precomp(tmp_path, "train")
    assert source.captions == ["fine", "café", "naïve \ufffd"]
    assert source.findings[0].rows == (2, 3)


def test_splits_in_order_and_imram_names(tmp_path: Path) -> None:
    for name in ("testall_ims.npy", "train_ims.npy", "dev_feat.npy", "extra_ims.npy"):
        np.save(tmp_path / name, features(2))
    assert list_splits(tmp_path) == ["train", "dev", "testall", "extra"]


def test_a_missing_split_lists_those_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this folder has train$"):
        open_precomp(precomp(tmp_path), "test")
    with pytest.raises(InputError, match="has train; take some images of train for it, with their captions$"):
        open_precomp(tmp_path, "dev")


@pytest.mark.parametrize(
    ("lines", "blank", "ids", "rows", "remedy"),
    [
        (4, 1, False, 4, "so remove the 1 blank line at its end"),
        (8, 2, False, 4, "so remove the 2 blank lines at its end"),
        (7, 2, False, 4, "so remove the 2 blank lines at its end"),  # one of them is enough
        (5, 1, False, 4, "so remove 2 captions or add 2"),  # the blank one is not enough
        (2, 3, False, 4, "so remove 1 caption or add 3"),  # what is left would be too few
        (9, 0, True, 4, "so remove the heading in its first line"),
        (9, 0, False, 4, "so remove 1 caption or add 3"),
        (3, 0, False, 4, "so 1 caption is missing"),
        (11, 0, True, 4, "so remove 3 captions or add 1"),
    ],
)
def test_captions_that_do_not_divide_get_their_remedy(
    lines: int, blank: int, ids: bool, rows: int, remedy: str
) -> None:
    texts = [*(f"a dog {k}" for k in range(lines)), *[""] * blank]
    file = CaptionFile(Path("train_caps.tsv"), texts, [str(k) for k in range(len(texts))] if ids else None)
    assert _remedy(file, len(texts), rows).startswith(remedy)
