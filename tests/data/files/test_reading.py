"""What the system or a library says against a file, as one sentence."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from mispair.data.files.reading import read_text, reading, some_names
from mispair.errors import InputError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("Corrupt snappy compressed data."), "a.parquet is damaged; expected a table, so copy it again"),
        (
            OSError(errno.EIO, "Input/output error"),
            r"a.parquet cannot be read \(Input/output error\); expected a table",
        ),
        (PermissionError(errno.EACCES, "x"), "a.parquet may not be read"),
        (FileNotFoundError(errno.ENOENT, "x"), "a.parquet does not exist"),
    ],
)
def test_in_words(error: OSError, said: str) -> None:
    with pytest.raises(InputError, match=said) as found, reading(Path("a.parquet"), "a table"):
        raise error
    assert "Error" not in str(found.value)


def test_text_in_another_encoding_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("a: 1\nb: é\n".encode("latin-1"))
    with pytest.raises(
        InputError, match="a.yaml, line 2: bytes that are not UTF-8; expected YAML in UTF-8.*> new.yaml"
    ):
        read_text(path, "YAML")
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(path, "YAML") == "a: 1"


def test_names_of_any_length_and_number_are_shown_short() -> None:
    assert some_names(["a", "b"]) == "'a', 'b'"
    assert len(some_names(["x" * 300_000] * 5000)) < 300
