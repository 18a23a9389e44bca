"""Patterns of shards, as webdataset users type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data import DataConfig, open_source
from mispair.data.files.tar_names import is_tar_pattern, names_nothing, tars_named
from mispair.errors import InputError
from tests.data.picture_samples import picture, write_tar
from tests.data.samples import write_lines


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for k in (0, 1, 2, 10):
        write_tar(tmp_path / f"s-{k:05d}.tar", {f"{k}.png": picture(k), f"{k}.txt": f"words {k}".encode()})
    (tmp_path / "s-00001.txt").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("s-{00000..00002}.tar", [0, 1, 2]),
        ("s-{00002..00000}.tar", [2, 1, 0]),
        ("s-0000{0,2}.tar", [0, 2]),
        ("s-000{00,10,01}.tar", [0, 10, 1]),
        ("s-{0..0}00{01..02}.tar", [1, 2]),
        ("*.tar", [0, 1, 2, 10]),
        ("s-0000?.tar", [0, 1, 2]),
        ("s-0000[02].tar", [0, 2]),
        ("{s-*1,s-*2}.tar", [1, 2]),
    ],
)
def test_what_a_pattern_means(shards: Path, pattern: str, numbers: list[int]) -> None:
    assert [tar.name for tar in tars_named(shards / pattern)] == [f"s-{k:05d}.tar" for k in numbers]
    source = open_source(DataConfig(path=str(shards / pattern)), "all")
    assert list(source.captions or ()) == [f"words {k}" for k in numbers]
    assert source.pictures is not None
    assert list(source.pictures) == [picture(k) for k in numbers]


def test_a_pattern_is_something_though_no_path(shards: Path) -> None:
    names = ("s-*.tar", "s-{00000..00001}.tar", "s-00000.tar", ".")
    assert not any(names_nothing(str(shards / name)) for name in names)
    assert not names_nothing("scenes")
    assert names_nothing(str(shards / "other.tar"))
    assert names_nothing(str(shards / "pairs*.csv"))


def test_a_name_is_itself_first(tmp_path: Path) -> None:
    odd = write_tar(tmp_path / "{0..1}.tar", {"a.png": picture(0), "a.txt": b"words"})
    assert not is_tar_pattern(str(odd))
    assert tars_named(odd) == [odd]
    assert tars_named(tmp_path / "plain.tar") == [tmp_path / "plain.tar"]
    assert tars_named(tmp_path) == [odd]


def test_a_shard_that_is_not_there_is_missed(shards: Path) -> None:
    with pytest.raises(InputError, match=r"s-00003\.tar does not exist"):
        open_source(DataConfig(path=str(shards / "s-{00000..00003}.tar")), "all")
    with pytest.raises(InputError, match="fits no file"):
        open_source(DataConfig(path=str(shards / "x-*.tar")), "all")
    with pytest.raises(InputError, match="more than 100,000"):
        tars_named(shards / "{0..99999}{0..99999}.tar")


def test_the_pictures_of_a_table_may_lie_in_a_pattern(shards: Path) -> None:
    write_lines(shards / "pairs.csv", ["filepath,title", "0.png,words", "2.png,more"])
    config = DataConfig(path=str(shards / "pairs.csv"), images=str(shards / "s-{00000..00002}.tar"))
    source = open_source(config, "all")
    assert source.pictures is not None
    assert list(source.pictures) == [picture(0), picture(2)]
