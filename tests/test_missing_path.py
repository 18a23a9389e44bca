"""What is said about a path that is not there."""

from __future__ import annotations

from pathlib import Path

from mispair.missing_path import does_not_exist, is_missing


def test_the_nearest_name_beside_it_is_suggested(tmp_path: Path) -> None:
    for name in ("pairs.csv", "photos", "Notes.txt"):
        (tmp_path / name).touch()
    assert (
        does_not_exist(tmp_path / "pair.csv")
        == f"{tmp_path}/pair.csv does not exist (did you mean {tmp_path}/pairs.csv?)"
    )
    assert does_not_exist(tmp_path / "notes.txt").endswith("Notes.txt?)")  # another case is the nearest of all
    assert does_not_exist(tmp_path / "weather") == f"{tmp_path}/weather does not exist"


def test_hidden_files_are_not_suggested_for_names_that_are_not_hidden(tmp_path: Path) -> None:
    (tmp_path / ".pairs.csv").touch()
    assert "did you mean" not in does_not_exist(tmp_path / "pairs.csv")
    assert does_not_exist(tmp_path / ".pair.csv").endswith(".pairs.csv?)")


def test_a_missing_folder_above_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pairs.csv").touch()
    said = does_not_exist(tmp_path / "dta" / "pairs.csv")
    assert f"there is no folder {tmp_path}/dta; did you mean {tmp_path}/data/pairs.csv?" in said
    assert f"did you mean {tmp_path}/data?" in does_not_exist(tmp_path / "dta" / "other.csv")
    assert does_not_exist(tmp_path / "x" / "y").endswith(f"(there is no folder {tmp_path}/x)")


def test_a_link_that_leads_nowhere_is_missing_and_says_where_it_led(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to("gone.csv")
    assert is_missing(link)
    assert does_not_exist(link).endswith("link.csv does not exist: it is a link to gone.csv, which is not there")


def test_names_no_file_can_have_get_a_sentence(tmp_path: Path) -> None:
    assert "does not exist" in does_not_exist(tmp_path / ("x" * 300))
    assert "does not exist" in does_not_exist(tmp_path / "a\0b")
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert is_missing(loop / "x")
    assert "does not exist" in does_not_exist(loop / "x")
