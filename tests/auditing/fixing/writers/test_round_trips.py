"""Every format that is read is written back: read, fix, read again as `fix` says; and undone, byte for byte."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mispair.auditing.fixing import undo_fix
from mispair.auditing.fixing.actions import Fix
from mispair.auditing.fixing.write import train_arguments, write_fixed
from mispair.auditing.fixing.writers.dispatch import WRITERS, writer_of
from mispair.data import DataConfig, NoiseConfig, list_data_splits, open_source
from mispair.data.readers.dispatch import READERS
from mispair.errors import InputError
from tests.auditing.fixing.writers.own_formats import (
    OWN,
    Maker,
    beside_each,
    data_folder,
    latin_csv,
    latin_tokens,
    opened,
    tokens,
)
from tests.data.picture_formats import MAKERS


@pytest.fixture(params=[*MAKERS, *OWN], ids=lambda make: make.__name__.strip("_"))
def config(request: pytest.FixtureRequest, tmp_path: Path) -> DataConfig:
    made: DataConfig = request.param(data_folder(tmp_path))
    return made


def pairs_of(config: DataConfig, split: str = "all") -> list[tuple[object, str]]:
    """Every pair as what a person sees: the file of the picture, and the words."""
    source = open_source(config, split)
    assert source.pictures is not None
    assert source.captions is not None
    shown = [source.pictures.read(int(row)) for row in source.image_of_text]
    return list(zip(shown, source.captions, strict=True))


def told(config: DataConfig, out: Path, weighted: bool = False) -> DataConfig:
    """What `fix` says to train with, as a configuration."""
    words = shlex.split(train_arguments(config, out, weighted))
    values: dict[str, Any] = {"path": words.pop(0)}
    while words:
        name = words.pop(0)
        if name in ("--image-column", "--caption-column"):
            values.setdefault("columns", {})[name[2:].removesuffix("-column")] = words.pop(0)
            continue
        assert name in ("--images", "--weights", "--missing"), name
        values[name[2:]] = words.pop(0)
    return DataConfig(**values)


def contents(config: DataConfig, home: Path | None = None) -> dict[str, bytes]:
    writer = writer_of(config)
    home = home or writer.home(config)
    assert home is not None
    return {name: (home / name).read_bytes() for name in writer.files(config)}


def test_every_reader_has_a_writer() -> None:
    assert {type(reader) for reader in READERS} == set(WRITERS)


def test_drop_and_swap_then_back(config: DataConfig, tmp_path: Path) -> None:
    before, files = pairs_of(config), contents(config)
    kept = [k for k in range(len(before)) if k != 2]
    shows = [{1: 3, 3: 1}.get(k, k) for k in kept]
    write_fixed(opened(config), Fix("rematch", np.array(kept), np.array(shows)), tmp_path / "fixed")
    assert pairs_of(told(config, tmp_path / "fixed")) == [
        (before[k][0], before[text][1]) for k, text in zip(kept, shows, strict=True)
    ]
    assert contents(config) == files, "the original is read only"
    undo_fix(tmp_path / "fixed", tmp_path / "back")
    assert contents(config, tmp_path / "back") == files
    assert writer_of(told(config, tmp_path / "fixed")) is writer_of(config), "the format it came in"


def test_nothing_to_do_changes_no_byte(config: DataConfig, tmp_path: Path) -> None:
    data = opened(config)
    every = np.arange(len(data.table))
    write_fixed(data, Fix("drop", every, every), tmp_path / "fixed")
    for name, content in contents(config).items():
        if not name.endswith((".parquet", ".arrow", "state.json", "dataset_info.json")):
            assert (tmp_path / "fixed" / name).read_bytes() == content, name


def test_all_of_a_picture_goes_and_ids_stay(config: DataConfig, tmp_path: Path) -> None:
    data = opened(config)
    gone = int(data.source.image_of_text[0])
    kept = np.flatnonzero(data.source.image_of_text != gone)
    write_fixed(data, Fix("drop", kept, kept), tmp_path / "fixed")
    after = open_source(told(config, tmp_path / "fixed"), "all")
    ids = list(data.source.image_ids or ())
    if not any(name.isdecimal() for name in ids):  # rows without a name are called by their number
        assert list(after.image_ids or ()) == [name for row, name in enumerate(ids) if row != gone]
        assert after.text_ids == (None if data.source.text_ids is None else [data.source.text_ids[k] for k in kept])


def test_other_splits_stay(config: DataConfig, tmp_path: Path) -> None:
    splits = list_data_splits(config)
    if splits == ["all"]:
        pytest.skip("has no splits")
    judged = opened(config, splits[0])
    kept = np.arange(1, len(judged.table))
    write_fixed(judged, Fix("drop", kept, kept), tmp_path / "fixed")
    fixed = told(config, tmp_path / "fixed")
    assert pairs_of(fixed, splits[0]) == pairs_of(config, splits[0])[1:]
    for split in splits[1:]:
        assert pairs_of(fixed, split) == pairs_of(config, split)


def test_weights_are_read_by_training(config: DataConfig, tmp_path: Path) -> None:
    splits = list_data_splits(config)
    split = "train" if "train" in splits else "all"
    judged = opened(config, split)
    every = np.arange(len(judged.table))
    write_fixed(judged, Fix("weight", every, every, 0.25 + every / 100), tmp_path / "fixed")
    fixed = told(config, tmp_path / "fixed", weighted=True)
    assert fixed.weights is not None
    source = open_source(fixed, "train")
    expected = dict(zip(list(judged.source.captions or ()), 0.25 + every / 100, strict=True))
    assert source.weights is not None
    assert source.weights.tolist() == pytest.approx([expected[text] for text in source.captions or ()])
    assert len(source.weights) > 0


def test_mismatches_made_on_purpose_are_written_and_come_back(config: DataConfig, tmp_path: Path) -> None:
    if "train" not in list_data_splits(config):
        pytest.skip("noise is made in train")
    noisy = config.model_copy(update={"noise": NoiseConfig(rate=1.0, seed=1)})
    judged = opened(noisy, "train")
    pictures, captions = judged.source.pictures, judged.source.captions
    assert pictures is not None
    assert captions is not None
    given = [
        (pictures.read(int(i)), captions[t])
        for i, t in zip(judged.table.image_rows, judged.table.text_rows, strict=True)
    ]
    kept = np.arange(1, len(given))
    write_fixed(judged, Fix("drop", kept, kept), tmp_path / "fixed")
    assert sorted(map(repr, pairs_of(told(config, tmp_path / "fixed"), "train"))) == sorted(map(repr, given[1:]))
    undo_fix(tmp_path / "fixed", tmp_path / "back")
    assert sorted(map(repr, pairs_of(told(config, tmp_path / "back"), "train"))) == sorted(map(repr, given))


def test_a_caption_a_person_gave(config: DataConfig, tmp_path: Path) -> None:
    before = pairs_of(config)
    every = np.arange(len(before))
    latin = open_source(config, "all").findings != ()
    new = 'ein "neuer" Satz, ' + ("größer" if latin else "猫")
    write_fixed(opened(config), Fix("drop", every, every, captions={1: new}), tmp_path / "fixed")
    after = pairs_of(told(config, tmp_path / "fixed"))
    assert after == [before[0], (before[1][0], new), *before[2:]]


@pytest.mark.parametrize("make", [latin_csv, latin_tokens])
def test_what_latin_1_cannot_write_is_refused(tmp_path: Path, make: Maker) -> None:
    config = make(data_folder(tmp_path))
    with pytest.raises(InputError, match="is Latin-1, in which '猫' cannot be written; save it as UTF-8"):
        write_fixed(opened(config), Fix("drop", np.arange(4), np.arange(4), captions={1: "猫"}), tmp_path / "fixed")


def test_an_image_without_room_for_the_captions_of_another_is_named(tmp_path: Path) -> None:
    config = beside_each(data_folder(tmp_path))
    (tmp_path / "data/train/b.txt").write_text("only one")
    judged = opened(config.model_copy(update={"noise": NoiseConfig(rate=1.0, seed=1)}), "train")
    with pytest.raises(InputError, match="'train/b.png' would have to show more captions"):
        write_fixed(judged, Fix("drop", np.arange(3), np.arange(3)), tmp_path / "fixed")


def test_what_has_no_place_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    config = tokens(data_folder(tmp_path))
    every = np.arange(5)
    with pytest.raises(InputError, match="several lines"):
        write_fixed(opened(config), Fix("drop", every, every, captions={0: "two\nlines"}), tmp_path / "fixed")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("lines", [["1,8,9,2", "1,5,2", "1,7,7,3,2"], ["8,9", "5,4", "7,7,3"]])
def test_token_ids_come_back_as_they_were(lines: list[str], tmp_path: Path) -> None:
    folder = data_folder(tmp_path)
    np.save(folder / "train_ims.npy", np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4))
    (folder / "train_caps.txt").write_text("".join(f"{line}\n" for line in lines))
    config = DataConfig(path=str(folder))
    write_fixed(opened(config, "train"), Fix("rematch", np.array([0, 2]), np.array([2, 0])), tmp_path / "fixed")
    assert (tmp_path / "fixed" / "train_caps.txt").read_text().splitlines() == [lines[2], lines[0]]
    undo_fix(tmp_path / "fixed", tmp_path / "back")
    assert contents(config, tmp_path / "back") == contents(config)
