"""JSON lines: columns by key, and every row knows the line that a person finds it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.data.files.json_lines import read_json_lines
from mispair.errors import InputError
from tests.data.samples import write_lines


def test_rows_know_their_lines(tmp_path: Path) -> None:
    rows = read_json_lines(write_lines(tmp_path / "a.jsonl", ['{"a": 1}', "", '{"b": 2}']))
    assert rows.columns == {"a": [1, None], "b": [None, 2]}
    assert list(rows.lines) == [1, 3]


@pytest.mark.parametrize(
    ("line", "said"), [("{", "not JSON"), ("[1]", "a list"), ('{"a": "\\ud800"}', "half of a character")]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=f"line 2: {said}"):
        read_json_lines(write_lines(tmp_path / "a.jsonl", ['{"a": 1}', line]))
