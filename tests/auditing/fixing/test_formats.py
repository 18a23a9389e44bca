"""What is written back: every image once, whoever shows it; a disk that is too small costs one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.write import train_arguments, write_fixed
from mispair.data import DataConfig, open_split
from mispair.data.splits import open_pairs
from mispair.errors import InputError
from tests.data.samples import precomp, write_lines


def opened(config: DataConfig, split: str = "train") -> JudgedData:
    return JudgedData(config, *open_pairs(config, split))


def dropped(kept: list[int], caption_of: list[int] | None = None) -> Fix:
    return Fix("rematch", np.array(kept), np.array(caption_of or kept))


KEPT = [0, 2, 3, 5, 6, 7, 8, 9, 20, 21, 34]


@pytest.mark.parametrize("ids", [True, False])
def test_a_folder_keeps_every_image_once(tmp_path: Path, ids: bool) -> None:
    folder = precomp(tmp_path / "data", splits=("train", "dev"))
    if ids:
        write_lines(folder / "train_ids.txt", [f"im{k}" for k in range(7)])
    config = DataConfig(path=str(folder), min_count=1)
    write_fixed(opened(config), dropped(KEPT, [*KEPT[1:], KEPT[0]]), tmp_path / "fixed")
    given = open_split(config, "train")
    fixed = open_split(DataConfig(path=str(tmp_path / "fixed"), min_count=1), "train")
    shown = sorted({k // 5 for k in KEPT})
    assert len(fixed.images) == len(shown) == len(np.load(tmp_path / "fixed" / "train_ims.npy"))
    assert [shown[row] for row in fixed.table.image_rows] == [k // 5 for k in KEPT]
    assert np.array_equal(fixed.images.take(np.arange(len(shown)))[0], given.images.take(np.array(shown))[0])
    assert fixed.table.image_ids == ([f"im{k}" for k in shown] if ids else None)


def test_a_fixed_folder_is_the_same_data_as_a_table_of_its_pairs(tmp_path: Path) -> None:
    """What training sees: images, identity, order and words."""
    folder = precomp(tmp_path / "data")
    config = DataConfig(path=str(folder), min_count=1)
    given = open_split(config, "train")
    assert given.table.captions is not None
    write_fixed(opened(config), dropped(KEPT), tmp_path / "fixed")
    lines = [f'im{k // 5},"{given.table.captions[k]}"' for k in KEPT]
    table = write_lines(tmp_path / "pairs.csv", ["image_id,caption", *lines])
    np.save(tmp_path / "pairs.npy", np.load(folder / "train_ims.npy"))
    write_lines(tmp_path / "pairs_ids.txt", [f"im{k}" for k in range(7)])
    one = open_split(DataConfig(path=str(tmp_path / "fixed"), min_count=1), "train")
    other = open_split(DataConfig(path=str(table), min_count=1), "all")
    assert one.content_hash == other.content_hash
    assert one.captions_per_image == other.captions_per_image
    for name in ("image_rows", "text_rows"):
        assert np.array_equal(getattr(one.table, name), getattr(other.table, name))
    a, b = one.batch(np.arange(len(KEPT))), other.batch(np.arange(len(KEPT)))
    assert a.images.equal(b.images)
    assert a.texts.equal(b.texts)


def test_a_fixed_folder_can_be_fixed_again(tmp_path: Path) -> None:
    folder = precomp(tmp_path / "data")
    config = DataConfig(path=str(folder), min_count=1)
    write_fixed(opened(config), dropped(KEPT), tmp_path / "one")
    again = DataConfig(path=str(tmp_path / "one"), min_count=1)
    write_fixed(opened(again), dropped([0, 3, 8]), tmp_path / "two")
    fixed = open_split(DataConfig(path=str(tmp_path / "two"), min_count=1), "train")
    texts = open_split(config, "train").table.captions
    assert texts is not None
    assert list(fixed.table.captions or ()) == [texts[KEPT[k]] for k in (0, 3, 8)]
    assert len(fixed.images) == 3
    assert not (tmp_path / "two" / "train_image_of.npy").exists(), "one caption each: counting says it"


def test_a_second_side_of_a_table_goes_along(tmp_path: Path) -> None:
    table = write_lines(tmp_path / "pairs.csv", ["image_id", *(f"im{k}" for k in range(9))])
    rng = np.random.default_rng(0)
    np.save(tmp_path / "pairs.npy", rng.normal(size=(9, 4)).astype(np.float32))
    np.save(tmp_path / "sound.npy", rng.normal(size=(9, 5)).astype(np.float32))
    config = DataConfig(path=str(table), second=str(tmp_path / "sound.npy"))
    write_fixed(opened(config, "all"), dropped([1, 2, 8], [1, 8, 2]), tmp_path / "fixed")
    fixed = open_split(
        DataConfig(path=str(tmp_path / "fixed/pairs.csv"), second=str(tmp_path / "fixed/sound.npy")), "all"
    )
    assert fixed.table.image_ids == ["im1", "im2", "im8"]
    sound = np.load(tmp_path / "sound.npy")
    assert np.array_equal(fixed.texts.take(fixed.table.text_rows)[0][:, 0], sound[[1, 8, 2]])


def test_the_second_side_of_all_splits_stays_with_its_captions(tmp_path: Path) -> None:
    """As `embed` writes it: one vector per caption of every split; only train was judged."""
    splits = ["train"] * 5 + ["test"] * 2 + ["train"]
    rows = [f"im{k},caption {k},{split}" for k, split in enumerate(splits)]
    table = write_lines(tmp_path / "pairs.csv", ["image_id,caption,split", *rows])
    for name in ("features.npy", "texts.npy"):
        np.save(tmp_path / name, np.arange(8, dtype=np.float32)[:, None] + np.zeros((8, 3), np.float32))
    write_lines(tmp_path / "features_ids.txt", [f"im{k}" for k in range(8)])
    config = DataConfig(path=str(table), second=str(tmp_path / "texts.npy"), holdout=(0.0, 0.0))
    judged = opened(config, "train")
    assert len(judged.table) == 6
    write_fixed(judged, dropped([0, 1, 3, 5], [1, 0, 3, 5]), tmp_path / "fixed")
    assert np.load(tmp_path / "fixed/texts.npy")[:, 0].tolist() == [1, 0, 3, 5, 6, 7]
    words = train_arguments(config, tmp_path / "fixed").split()
    assert words == [str(tmp_path / "fixed/pairs.csv"), str(tmp_path / "fixed/texts.npy")]
    fixed = open_split(DataConfig(path=words[0], second=words[1], holdout=(0.0, 0.0)), "train")
    said = [int(text.split()[1]) for text in fixed.table.captions or ()]
    assert said == fixed.texts.take(fixed.table.text_rows)[0][:, 0, 0].astype(int).tolist() == [1, 0, 3, 7]
    with pytest.raises(InputError, match="has no vector in the second side"):
        write_fixed(judged, Fix("drop", np.arange(6), np.arange(6), captions={0: "new"}), tmp_path / "again")


FULL = """
import resource, sys
from pathlib import Path
from tests.auditing.fixing.test_formats import DataConfig, dropped, opened, write_fixed
from mispair.errors import InputError
data = opened(DataConfig(path=sys.argv[1], min_count=1))
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
try:
    write_fixed(data, dropped(list(range(0, 500, 2))), Path(sys.argv[2]))
except InputError as error:
    print(error)
"""


def test_a_disk_that_is_too_small_costs_one_sentence(tmp_path: Path) -> None:
    """No bus error, and no hidden copy of the data."""
    folder = precomp(tmp_path / "data", images=500, per_image=1)
    command = [sys.executable, "-c", FULL, str(folder), str(tmp_path / "fixed")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "fixed cannot be written (File too large)" in ran.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_with_a_table_of_captions_keeps_its_kind(tmp_path: Path, named: bool) -> None:
    folder = precomp(tmp_path / "data", images=7, per_image=1, splits=("train", "dev"))
    (folder / "train_caps.txt").unlink()
    names = [f"im{k}.jpg" if named else str(k) for k in range(7)]
    write_lines(folder / "train_caps.tsv", [f"{name}\ta dog number {k}" for k, name in enumerate(names)])
    config = DataConfig(path=str(folder), min_count=1)
    write_fixed(opened(config), dropped([0, 2, 5], [2, 0, 5]), tmp_path / "fixed")
    lines = (tmp_path / "fixed" / "train_caps.tsv").read_text().splitlines()
    assert lines == [f"{names[k]}\ta dog number {c}" for k, c in ((0, 2), (2, 0), (5, 5))]
    assert not (tmp_path / "fixed" / "train_caps.txt").exists()
    assert (tmp_path / "fixed" / "dev_caps.txt").read_bytes() == (folder / "dev_caps.txt").read_bytes()
    assert (tmp_path / "fixed" / "train_ims.npy").exists()
