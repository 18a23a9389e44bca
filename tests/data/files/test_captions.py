"""Captions with their ids, an id, a tab and a caption per line: of any length, quotes that never end named."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mispair.data.files.captions import read_captions
from mispair.errors import InputError
from tests.data.samples import write_lines


@pytest.mark.parametrize("quoted", [True, False])
def test_a_caption_of_a_megabyte_is_a_caption(tmp_path: Path, quoted: bool) -> None:
    long = ("dog " * 250_000).strip()
    path = write_lines(tmp_path / "train_caps.tsv", [f'a\t"{long}"' if quoted else f"a\t{long}", "b\ta cat"])
    assert read_captions(path).captions == [long, "a cat"]
    assert csv.field_size_limit() == 131_072, "the limit is one for the whole process"


def test_an_endless_quote_is_named_where_it_starts(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train_caps.tsv", ["a\ta cat", 'b\t"a dog', *["c\t" + "dog " * 100] * 400])
    with pytest.raises(InputError, match=r"train_caps.tsv, line 2: an unclosed quote"):
        read_captions(path)
