"""What `datasets` keeps by its fingerprint must not be found again after a fix."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.fixing.writers.column_files import _corrected_info, _corrected_state


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(b"one")
    correct = _corrected_state(tmp_path, ["a.arrow"])
    first = correct({"_fingerprint": "abc", "n": 1})
    assert first["n"] == 1
    assert first["_fingerprint"] != "abc"
    assert correct({"_fingerprint": "abc", "n": 1}) == first
    (tmp_path / "a.arrow").write_bytes(b"other")
    assert correct({"_fingerprint": "abc", "n": 1}) != first
    assert correct({"n": 1}) == {"n": 1}


def test_the_rows_of_a_split_are_counted_anew() -> None:
    about = {"splits": {"train": {"num_examples": 9}, "test": {"num_examples": 4}}, "features": {}}
    made = _corrected_info(9, 5, weighted=True, several=False)(about)
    assert [split["num_examples"] for split in made["splits"].values()] == [5, 4]
    assert made["features"].keys() == {"weight"}
