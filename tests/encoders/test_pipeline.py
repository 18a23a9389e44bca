from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.encoders.pipeline import Encodings, PictureItem, encode_pictures, encode_texts, write_failed
from mispair.errors import InputError
from mispair.pictures.decode import Broken
from tests.encoders.tiny import Tokens, mean_colours, pictures, tiny
from tests.pictures.samples import bomb, saved


def values(made: Encodings, output: str = "vector") -> np.ndarray:
    rows = made.rows(output)
    assert (rows >= 0).all()
    return np.asarray(made.tables[output].array()[rows])


def test_rows_are_in_the_order_of_the_items(tmp_path: Path):
    items = pictures(29)
    made = encode_pictures(tiny(), items, tmp_path, batch=4, workers=2)
    for item, row in zip(items, values(made), strict=True):
        path = tmp_path / "x.png"
        path.write_bytes(item.read())
        small = np.asarray(Image.open(path).resize((8, 8), Image.Resampling.BICUBIC))
        assert np.allclose(row, mean_colours(small[None])[0])
    assert made.encoded == 29


def test_the_number_of_workers_changes_no_bit_of_any_file(tmp_path: Path):
    items = pictures(31)
    for workers in (0, 1, 3):
        encode_pictures(Tokens(), items, tmp_path / str(workers), ("vector", "cells"), batch=4, workers=workers)
    folders = [tmp_path / str(workers) for workers in (0, 1, 3)]
    names = sorted(str(path.relative_to(folders[0])) for path in folders[0].rglob("*.bin"))
    assert len(names) == 4
    for name in names:
        assert len({(folder / name).read_bytes() for folder in folders}) == 1, name


def test_the_second_run_encodes_nothing(tmp_path: Path):
    items = pictures(9)
    first = encode_pictures(tiny(), items, tmp_path)
    second = encode_pictures(tiny(), [*items, *items[:3]], tmp_path)
    assert (first.encoded, second.encoded) == (9, 0)
    assert np.array_equal(values(second)[:9], values(first))
    assert np.array_equal(values(second)[9:], values(first)[:3])


def test_equal_pictures_are_encoded_once(tmp_path: Path):
    made = encode_pictures(tiny(), pictures(3) * 5, tmp_path, batch=4)
    assert made.encoded == 3
    assert made.rows("vector").tolist() == [0, 1, 2] * 5


def test_an_output_added_later_does_not_repeat_the_other(tmp_path: Path):
    items = pictures(5)
    before = values(encode_pictures(Tokens(), items[:3], tmp_path))
    made = encode_pictures(Tokens(), items, tmp_path, ("vector", "cells"), batch=2)
    assert np.array_equal(values(made)[:3], before)
    assert values(made, "cells").shape == (5, 4, 3)


def test_broken_pictures_are_listed_and_cost_nobody_else_anything(tmp_path: Path):
    def cannot():
        raise OSError(5, "Input/output error")

    good = pictures(4)
    bad = [
        PictureItem("empty.jpg", lambda: b""),
        PictureItem("bomb, big.png", bomb),
        PictureItem("gone.jpg", lambda: Broken("missing")),
        PictureItem("disk.jpg", cannot),
    ]
    mixed = [item for pair in zip(good, bad, strict=True) for item in pair]
    made = encode_pictures(tiny(), mixed, tmp_path / "a", batch=3, workers=2)
    assert [(failure.position, failure.name) for failure in made.failed] == [
        (1, "empty.jpg"), (3, "bomb, big.png"), (5, "gone.jpg"), (7, "disk.jpg"),
    ]  # fmt: skip
    assert made.rows("vector").tolist() == [0, -1, 1, -1, 2, -1, 3, -1]
    write_failed(tmp_path / "failed.csv", made.failed)
    rows = list(csv.DictReader((tmp_path / "failed.csv").read_text("utf-8").splitlines()))
    assert rows[0]["reason"] == "empty file"
    assert rows[1]["name"] == "bomb, big.png"
    assert rows[1]["reason"].startswith("too large")
    assert rows[3]["reason"] == "cannot be read (Input/output error)"


def test_a_picture_the_encoder_cannot_prepare_is_listed(tmp_path: Path):
    class Picky(type(tiny())):
        def prepare(self, picture):
            if picture.width == 1:
                raise ValueError("mean must have 3 elements")
            return super().prepare(picture)

    encoder = Picky("picky", "1", images=mean_colours, side=8)
    odd = PictureItem("odd.png", lambda: saved(Image.new("RGB", (1, 1)), "PNG"))
    made = encode_pictures(encoder, [*pictures(2), odd], tmp_path)
    assert made.failed[0].reason == "the encoder cannot prepare it (ValueError: mean must have 3 elements)"


def test_a_stream_is_not_held(tmp_path: Path):
    ahead = []

    def stream():
        for k, item in enumerate(pictures(60)):
            ahead.append(k)
            yield item

    def tell(progress):
        assert ahead[-1] <= progress.done + 2 * 5  # two batches ahead, no more

    encode_pictures(tiny(), stream(), tmp_path, batch=5, workers=2, tell=tell)
    assert len(ahead) == 60


def test_progress_counts(tmp_path: Path):
    told = []
    encode_pictures(tiny(), pictures(10), tmp_path, total=10, batch=4, tell=told.append)
    assert [(p.done, p.total, p.encoded, p.failed) for p in told] == [(4, 10, 4, 0), (8, 10, 8, 0), (10, 10, 10, 0)]
    assert told[-1].rate > 0


# Each argument is a folder and, after a colon, the batch at which the encoding into it is killed as it is about to be
# encoded (0: never). What is said of each: how it ended, how many it encoded.
KILLED = """
import os, signal, sys
from pathlib import Path
from mispair.encoders.own import FunctionEncoder
from mispair.encoders.pipeline import encode_pictures
from tests.encoders.tiny import mean_colours, pictures

def run(folder, left):
    def encode(batch):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return mean_colours(batch)

    encoder = FunctionEncoder("tiny", "1", images=encode, side=8)
    items = pictures(120)
    items[50] = type(items[50])("broken", lambda: b"no picture")
    return encode_pictures(encoder, items, Path(folder), batch=4, workers=1).encoded

for argument in sys.argv[1:]:
    folder, _, kill_at = argument.rpartition(":")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, str(run(folder, int(kill_at))).encode())
        os._exit(0)
    os.close(tell)
    encoded = os.read(told, 99).decode()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), encoded or "-", flush=True)
"""


def test_killed_anywhere_it_goes_on_and_ends_with_the_same_bits(tmp_path: Path):
    def run(*folders: str) -> list[list[str]]:
        command = [sys.executable, "-c", KILLED, *(f"{tmp_path}/{folder}" for folder in folders)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return [line.split() for line in ran.stdout.splitlines()]

    killed = [str(-signal.SIGKILL), "-"]
    assert run("whole:0", "killed:5", "killed:2", "killed:9") == [["0", "119"], killed, killed, killed]
    done = _keys(tmp_path / "killed")
    assert 0 < done < 119
    assert run("killed:0") == [["0", str(119 - done)]]
    for name in ("rows.bin", "keys.bin"):
        (a,), (b,) = ((tmp_path / folder).rglob(name) for folder in ("whole", "killed"))
        assert a.read_bytes() == b.read_bytes(), name


def _keys(folder: Path) -> int:
    return sum(path.stat().st_size // 32 for path in folder.rglob("keys.bin"))


def test_texts(tmp_path: Path):
    texts = ["a dog", "", "two cats sleep", "a dog", "\ud800 odd", "dög"] * 3
    made = encode_texts(tiny(), texts, tmp_path, batch=4)
    assert made.encoded == 5
    assert values(made)[2].tolist() == [14.0, 2.0, 1.0]
    assert np.array_equal(values(made)[0], values(made)[3])
    tokens = encode_texts(Tokens(), texts, tmp_path, "tokens", batch=4)
    table = tokens.tables["tokens"]
    assert table.lengths()[tokens.rows("tokens")][:4].tolist() == [2, 1, 3, 2]


def test_what_makes_no_sense_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="batch must be at least 1"):
        encode_pictures(tiny(), [], tmp_path, batch=0)
    with pytest.raises(InputError, match="no output"):
        encode_pictures(tiny(), [], tmp_path, ())
    assert encode_pictures(tiny(), [], tmp_path).keys == []
