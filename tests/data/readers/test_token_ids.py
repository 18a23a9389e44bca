"""Captions as token ids, as Noise of Web has them: a tiny made-up copy."""

import os

import numpy as np
import pytest

from mispair.data import DataConfig, open_split
from mispair.data.readers.dispatch import open_source, reader_of
from mispair.data.readers.precomp import PrecomputedFolder
from mispair.data.readers.token_ids import TokenIdFolder
from mispair.errors import InputError

LINES = ["1,8,9,586,2", "1,8,2", "1, 9, 33955, 19, 2", "[1, 8, 9, 2]", "1,586,586,2"]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for split in ("train", "dev"):
        np.save(tmp_path / f"{split}_ims.npy", rng.normal(size=(5, 36, 768)).astype(np.float32))
        (tmp_path / f"{split}_caps.txt").write_text("\n".join(LINES) + "\n")
        (tmp_path / f"{split}_ids.txt").write_text("".join(f"{k}\n" for k in range(70, 75)))
    return tmp_path


def test_every_number_is_a_word(folder):
    config = DataConfig(path=str(folder), min_count=1)
    assert isinstance(reader_of(config), TokenIdFolder)
    source = open_source(config, "train")
    assert list(source.captions) == ["8 9 586", "8", "9 33955 19", "8 9", "586 586"]
    assert source.captions_per_image == 1
    assert list(source.image_ids) == ["70", "71", "72", "73", "74"]
    assert any("token ids" in note for note in source.notes)
    data = open_split(config, "train")
    words = data.vocabulary.words
    assert {"8", "9", "586", "33955", "19"} < set(words)
    texts = data.batch(range(5)).texts
    assert [words[k] for k in texts[2].tolist()][1:4] == ["9", "33955", "19"]


@pytest.mark.parametrize(
    "lines",
    [["a dog", "two men", "3", "4", "a, b"], ["1", "2", "3", "4", "5"], ["1,2 dogs", "5,6", "1,2", "1,2", "1,2"]],
)
def test_words_stay_words(folder, lines):
    for split in ("train", "dev"):
        (folder / f"{split}_caps.txt").write_text("\n".join(lines) + "\n")
    config = DataConfig(path=str(folder))
    assert type(reader_of(config)) is PrecomputedFolder
    assert list(open_source(config, "train").captions) == lines


def test_a_line_of_words_among_numbers_is_named(folder):
    many = ["1," + ",".join(["77"] * 3000) + ",2", *LINES[:3], "a dog"]
    (folder / "train_caps.txt").write_text("\n".join(many) + "\n")
    with pytest.raises(InputError, match=r"train_caps.txt, line 5: expected token ids .* got 'a dog'"):
        open_source(DataConfig(path=str(folder)), "train")


def test_an_empty_caption_stays_empty(folder):
    (folder / "train_caps.txt").write_text("\n".join(["1,8,2", "", "1,2", "5", "1,9,2"]) + "\n")
    assert list(open_source(DataConfig(path=str(folder)), "train").captions) == ["8", "", "", "5", "9"]


@pytest.mark.timeout(10)
def test_a_pipe_in_place_of_captions_is_refused(folder):
    (folder / "train_caps.txt").unlink()
    os.mkfifo(folder / "train_caps.txt")
    with pytest.raises(InputError, match=r"train_caps\.txt is not an ordinary file"):
        open_source(DataConfig(path=str(folder)), "train")
