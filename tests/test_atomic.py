"""Files and folders are there whole or not at all, and what a killed process left is removed."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mispair.atomic import _machine, clear_leftovers, make_atomically, make_folder, refuse_unwritable, write_text
from mispair.errors import InputError

DEAD = 2**22 + 1  # beyond the largest process number


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    out = tmp_path / "a" / "out"
    with pytest.raises(InputError, match="the disk is full: .*out"), make_atomically(out):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(InputError, match="the disk is full"), make_atomically(out):
        raise OSError("3 requested and 0 written")
    with pytest.raises(KeyboardInterrupt), make_atomically(out):
        raise KeyboardInterrupt
    assert list(out.parent.iterdir()) == []


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(InputError, match="exists already"), make_atomically(tmp_path / "out"):
        pass


def test_leftovers_of_the_dead_are_removed_and_of_the_living_are_not(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead = tmp_path / f".out.{_machine()}-{int(gone.stdout)}.tmp"
    alive = tmp_path / f".out.{_machine()}-{os.getppid()}.tmp"
    other = tmp_path / f".other.{_machine()}-{int(gone.stdout)}.tmp"
    for folder in (dead, alive, other):
        (folder / "fixed").mkdir(parents=True)
    with make_atomically(tmp_path / "out"):
        pass
    assert sorted(tmp_path.iterdir()) == sorted([alive, other])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(InputError, match="cannot be written"), make_atomically(tmp_path / "locked" / "out"):
        pass


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    with pytest.raises(InputError, match="cannot be written .File name too long."), make_atomically(long):
        pass


def test_a_leftover_of_a_dead_process_goes_with_the_next_write(tmp_path: Path) -> None:
    (tmp_path / f".a.json.{_machine()}-{DEAD}.tmp").write_text("half")
    (tmp_path / f".a.json.{DEAD}.part").write_text("half")
    other_machine = tmp_path / f".a.json.00000000-{DEAD}.tmp"
    alive = tmp_path / f".a.json.{_machine()}-{os.getppid()}.tmp"
    another_file = tmp_path / f".b.json.{_machine()}-{DEAD}.tmp"
    for kept in (other_machine, alive, another_file):
        kept.write_text("theirs")
    write_text(tmp_path / "a.json", "whole")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a.json", other_machine, alive, another_file])
    clear_leftovers(tmp_path, alone=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.json"]


def test_a_folder_that_cannot_be_made_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "x", tmp_path / ("n" * 300)):
        with pytest.raises(InputError, match="cannot be made"):
            make_folder(place)
        with pytest.raises(InputError, match="cannot be made"):
            write_text(place / "a.json", "")


def test_a_file_name_too_long_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not be written"):
        write_text(tmp_path / ("n" * 300), "")


def test_a_full_disk_says_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mispair import atomic

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(InputError, match=r"the disk is full: .*a.txt could not be written; free some space and run"):
        write_text(tmp_path / "a.txt", "new")
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(InputError, match="what was there before is intact; free some space and go on"):
        write_text(tmp_path / "a.txt", "new", "go on with --resume")
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """Whoever is root may rename over /dev/null, and then no program of the machine has one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "out").symlink_to(pipe)
    for name in ("pipe", "out"):
        with pytest.raises(InputError, match=rf"{name} is a device or a pipe, which a file would replace"):
            write_text(tmp_path / name, "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "later").symlink_to("nowhere")
    write_text(tmp_path / "later", "x")
    assert (tmp_path / "later").read_text() == "x"


def test_a_probe_of_a_killed_process_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / ".probe.99999999.tmp"
    left.touch()
    refuse_unwritable(tmp_path)
    assert not list(tmp_path.iterdir())
