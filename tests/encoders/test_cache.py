from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mispair.encoders.cache import content_key, open_table
from mispair.encoders.protocol import EncoderOutput
from mispair.errors import InputError
from tests.encoders.tiny import Tokens, tiny

KEYS = [content_key(f"item {k}") for k in range(7)]


def fill(table, keys, seed=0):
    values = np.random.default_rng(seed).random((len(keys), *table.shape), np.float32)
    lengths = np.arange(len(keys)) % 4 + 1
    with table.writing() as writer:
        writer.append(keys, EncoderOutput(values, lengths))
    return values


def test_rows_come_back_by_key_in_another_process_too(tmp_path: Path):
    values = fill(open_table(tmp_path, tiny(), "images", "vector"), KEYS)
    again = open_table(tmp_path, tiny(), "images", "vector")
    assert np.array_equal(again.array()[again.rows(KEYS[::-1])], values[::-1])
    assert content_key("other") not in again
    with pytest.raises(KeyError):
        again.rows([content_key("other")])


def test_tokens_keep_their_lengths(tmp_path: Path):
    fill(open_table(tmp_path, Tokens(), "texts", "tokens"), KEYS)
    again = open_table(tmp_path, Tokens(), "texts", "tokens")
    assert again.lengths().tolist() == [1, 2, 3, 4, 1, 2, 3]
    assert again.array().dtype == np.float16


def test_another_encoder_finds_nothing(tmp_path: Path):
    fill(open_table(tmp_path, tiny("1"), "images", "vector"), KEYS)
    assert len(open_table(tmp_path, tiny("2"), "images", "vector")) == 0


def test_the_same_encoder_under_a_name_that_begins_alike_finds_its_rows(tmp_path: Path):
    names = [f"/models/{'folder/' * 12}{end}" for end in ("here", "there")]
    encoders = [tiny(), tiny()]
    for encoder, name in zip(encoders, names, strict=True):
        encoder.name = name
    fill(open_table(tmp_path, encoders[0], "images", "vector"), KEYS)
    assert len(open_table(tmp_path, encoders[1], "images", "vector")) == len(KEYS)


@pytest.mark.parametrize("torn", ["rows.bin", "keys.bin"])
def test_what_a_kill_left_half_written_is_cut_off(tmp_path: Path, torn: str):
    table = open_table(tmp_path, tiny(), "images", "vector")
    first = fill(table, KEYS[:3])
    with open(table.folder / torn, "ab") as file:
        file.write(b"half")
    again = open_table(tmp_path, tiny(), "images", "vector")
    assert len(again) == 3
    second = fill(again, KEYS[3:], seed=1)
    last = open_table(tmp_path, tiny(), "images", "vector")
    assert np.array_equal(last.array()[last.rows(KEYS)], np.concatenate([first, second]))


def test_a_full_disk_says_so_and_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = open_table(tmp_path, tiny(), "images", "vector")
    first = fill(table, KEYS[:3])
    real = os.write

    def full(file, data):
        if len(data) > 20:
            real(file, bytes(data[:20]))
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match="disk is full: 3 rows are safe"):
        fill(table, KEYS[3:])
    monkeypatch.undo()
    assert (table.folder / "rows.bin").stat().st_size == 3 * 12
    again = open_table(tmp_path, tiny(), "images", "vector")
    assert np.array_equal(again.array(), first)


def test_two_cannot_write_at_once(tmp_path: Path):
    table = open_table(tmp_path, tiny(), "images", "vector")
    code = (
        "from pathlib import Path\nimport sys\nfrom mispair.encoders.cache import open_table\n"
        "from mispair.errors import InputError\nfrom tests.encoders.tiny import tiny\n"
        "try:\n    open_table(Path(sys.argv[1]), tiny(), 'images', 'vector').writing().__enter__()\n"
        "except InputError as error:\n    sys.exit(str(error))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with table.writing():
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "another mispair is encoding" in refused.stderr
    assert subprocess.run(command, check=False).returncode == 0


def test_damage_is_refused(tmp_path: Path):
    table = open_table(tmp_path, tiny(), "images", "vector")
    fill(table, KEYS)
    os.truncate(table.folder / "rows.bin", 30)
    with pytest.raises(InputError, match=r"rows\.bin is shorter"):
        open_table(tmp_path, tiny(), "images", "vector")
    (table.folder / "about.json").write_text("{}")
    with pytest.raises(InputError, match="not a cache"):
        open_table(tmp_path, tiny(), "images", "vector")


def test_an_output_that_does_not_exist(tmp_path: Path):
    with pytest.raises(InputError, match="makes no cells of images; what it makes: vector"):
        open_table(tmp_path, tiny(), "images", "cells")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        open_table(blocked, tiny(), "images", "vector").writing().__enter__()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["about.json", "keys.bin", "rows.bin", "lengths.bin"])
def test_a_pipe_in_place_of_a_file_is_refused(tmp_path: Path, name: str):
    table = open_table(tmp_path, Tokens(), "texts", "tokens")
    fill(table, KEYS)
    (table.folder / name).unlink()
    os.mkfifo(table.folder / name)
    with pytest.raises(InputError, match="delete the folder"):
        open_table(tmp_path, Tokens(), "texts", "tokens")


def test_crafted_keys_and_lengths_are_refused(tmp_path: Path):
    table = open_table(tmp_path, Tokens(), "texts", "tokens")
    fill(table, KEYS)
    lengths = (table.folder / "lengths.bin").read_bytes()
    for odd in (-1, 5):
        (table.folder / "lengths.bin").write_bytes(lengths[:-4] + np.array(odd, "<i4").tobytes())
        with pytest.raises(InputError, match=r"lengths.bin .* delete the folder"):
            open_table(tmp_path, Tokens(), "texts", "tokens").lengths()
    (table.folder / "keys.bin").write_bytes(b"".join([*KEYS[:6], KEYS[0]]))
    with pytest.raises(InputError, match="names a row twice; delete the folder"):
        open_table(tmp_path, Tokens(), "texts", "tokens")
