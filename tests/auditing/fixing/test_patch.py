"""fix.patch: rebuilds every byte, equal for equal fixes, and whatever is done to it costs one sentence."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mispair.auditing import fixing
from mispair.auditing.fixing import patch as patches
from mispair.auditing.fixing import undo_fix
from mispair.auditing.fixing.patch import NAME, _damage, revert, write_patch
from mispair.errors import InputError

ABOUT = {"action": "drop", "pairs": 9, "kept": 7, "changed": 0}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """An original and a fixed folder: rows of an array left, lines of a text changed, a binary file is another."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    rng = np.random.default_rng(0)
    array = rng.normal(size=(50, 11)).astype(np.float32)
    np.save(before / "a.npy", array)
    np.save(after / "a.npy", array[5:][::-1])
    lines = [f"line {k} {rng.integers(1 << 40)}\n" for k in range(200)]
    (before / "t.txt").write_text("".join(lines))
    (after / "t.txt").write_text("".join(line for k, line in enumerate(lines) if k % 7))
    (before / "p.parquet").write_bytes(rng.bytes(5000))
    (after / "p.parquet").write_bytes(rng.bytes(4000))
    (before / "gone.bin").write_bytes(b"only before")
    write_patch(before, after, ["t.txt", "a.npy", "p.parquet", "gone.bin"], ABOUT)
    return before, after


def test_every_byte_comes_back(folders: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = folders
    patch = undo_fix(after, tmp_path / "back")
    assert patch.kept == 7
    assert {f.name: f.read_bytes() for f in (tmp_path / "back").iterdir()} == {
        f.name: f.read_bytes() for f in before.iterdir()
    }


def test_what_did_not_change_is_only_named(folders: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(folders[1] / NAME) as archive:
        files = json.loads(archive.read("patch.json"))["files"]
        assert sum(length for start, length in files["a.npy"]["segments"] if start < 0) < 5 * 44 + 200
        assert archive.getinfo("blob").file_size < 5000 + 5 * 44 + 30 * 40 + 300


def test_equal_fixes_give_equal_bytes(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = folders
    first = (after / NAME).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("time.localtime", lambda *_: (2033, 5, 18, 3, 33, 20, 2, 138, 0))
    (after / NAME).unlink()
    write_patch(before, after, ["a.npy", "gone.bin", "t.txt", "p.parquet"], ABOUT)
    assert (after / NAME).read_bytes() == first


def test_flipped_bytes_cost_one_sentence(folders: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = folders
    whole = (after / NAME).read_bytes()
    rng = np.random.default_rng(0)
    for k in range(150):
        damaged = bytearray(whole)
        for at in rng.integers(len(whole), size=1 + k % 3):
            damaged[at] ^= int(rng.integers(1, 256))
        (after / NAME).write_bytes(damaged[: int(rng.integers(1, len(whole)))] if k % 5 == 0 else damaged)
        try:
            undo_fix(after, tmp_path / f"back{k}")
        except InputError:
            assert not (tmp_path / f"back{k}").exists()
        else:  # a byte that nobody reads, such as an attribute
            assert (tmp_path / f"back{k}" / "t.txt").read_bytes() == (before / "t.txt").read_bytes()
    assert not [f for f in tmp_path.iterdir() if f.name.startswith(".")], "nothing hidden is left"


def crafted(after: Path, **changes: object) -> None:
    with zipfile.ZipFile(after / NAME) as archive:
        told, blob = json.loads(archive.read("patch.json")), archive.read("blob")
    with zipfile.ZipFile(after / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("blob", blob)
        archive.writestr("patch.json", json.dumps(told | changes))


SHA = "0" * 64


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": "1"},
        {"pairs": "9"},
        {"kept": -1},
        {"files": []},
        {"files": {"a": {}}},
        {"files": {"a": {"sha256": SHA, "segments": [[0]]}}},
        {"files": {"a": {"sha256": SHA, "segments": [["0", 5]]}}},
        {"files": {"a.npy": {"sha256": SHA, "segments": [[0, 1 << 60]]}}},
        {"files": {"a.npy": {"sha256": SHA, "segments": [[-1, 1 << 40]]}}},
        {"files": {"a.npy": {"sha256": SHA, "segments": [[1 << 40, 5]]}}},
        {"files": {"a.npy": {"sha256": SHA, "segments": [[-2, 5]]}}},
        {"files": {"..": {"sha256": SHA, "segments": []}}},
        {"files": {"../x": {"sha256": SHA, "segments": []}}},
        {"files": {"/tmp/x": {"sha256": SHA, "segments": []}}},
        {"files": {"a\0b": {"sha256": SHA, "segments": []}}},
        {"files": {"": {"sha256": SHA, "segments": []}}},
        {"files": {"absent": {"sha256": SHA, "segments": [[0, 3]]}}},
        {"more": 1},
    ],
    ids=str,
)
def test_crafted_patches_cost_one_sentence(folders: tuple[Path, Path], tmp_path: Path, changes: object) -> None:
    _, after = folders
    crafted(after, **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        undo_fix(after, tmp_path / "back")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["after", "before"]


@pytest.mark.parametrize("entry", ["blob", "patch.json"])
def test_a_bomb_does_not_go_off(folders: tuple[Path, Path], tmp_path: Path, entry: str) -> None:
    _, after = folders
    size = 300 << 20
    told = json.dumps({"version": 1, **ABOUT, "files": {"a.npy": {"sha256": SHA, "segments": [[-1, size]]}}})
    with zipfile.ZipFile(after / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("blob", "patch.json"):
            with archive.open(name, "w") as stream:
                if name == "patch.json":
                    stream.write(told.encode())
                if name == entry:
                    for _ in range(300):
                        stream.write(b" " * (1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match="not one of ours|damaged"):
        undo_fix(after, tmp_path / "back")
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.npy", NAME])
def test_a_pipe_is_not_waited_for(folders: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    _, after = folders
    (after / name).unlink()
    os.mkfifo(after / name)
    with pytest.raises(InputError, match="not an ordinary file"):
        undo_fix(after, tmp_path / "back")


def test_only_a_place_that_cannot_be_is_damage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is damaged"), _damage(tmp_path):
        raise OSError(errno.EINVAL, "a place before the beginning")
    with pytest.raises(OSError, match="No space left") as caught, _damage(tmp_path):
        raise OSError(errno.ENOSPC, "No space left")
    assert not isinstance(caught.value, InputError)


def test_a_full_disk_is_not_the_fault_of_the_patch(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, after = folders
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "t.txt").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        revert(after, tmp_path / "target")

    def full(fixed: Path, target: Path) -> None:
        (target / "x").symlink_to("/dev/full")
        (target / "x").write_bytes(b"x" * 100_000)

    monkeypatch.setattr(fixing, "revert", full)
    with pytest.raises(InputError, match="the disk is full: .*back could not be written and nothing is left"):
        undo_fix(after, tmp_path / "back")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["after", "before", "target"]


def test_more_pieces_than_a_fix_writes_are_refused_before_they_are_built(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    _, after = folders
    segments = "[0, 1], " * 4_000_000  # 32 MB that would take half a gigabyte
    told = json.dumps({"version": 1, **ABOUT, "files": {"a.npy": {"sha256": SHA, "segments": []}}})
    with zipfile.ZipFile(after / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("blob", b"")
        archive.writestr("patch.json", told.replace("[]", f"[{segments}[0, 1]]"))
    tracemalloc.start()
    with pytest.raises(InputError, match="more pieces than a fix writes"):
        undo_fix(after, tmp_path / "back")
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def test_a_file_in_more_pieces_than_a_patch_may_name_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped lines that repeat a kept one are a piece each."""
    monkeypatch.setattr(patches, "_MOST_SEGMENTS", 20)
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, often in ((before, 100), (after, 1)):
        folder.mkdir()
        for name in ("a.txt", "b.txt"):
            (folder / name).write_text("no longer available\na dog\n" + "no longer available\n" * often)
    write_patch(before, after, ["a.txt", "b.txt"], ABOUT)
    with zipfile.ZipFile(after / NAME) as archive:
        files = json.loads(archive.read("patch.json"))["files"]
    assert sum(len(file["segments"]) for file in files.values()) <= 20
    assert len(files["a.txt"]["segments"]) > 5
    undo_fix(after, tmp_path / "back")
    for name in ("a.txt", "b.txt"):
        assert (tmp_path / "back" / name).read_bytes() == (before / name).read_bytes()


def test_more_files_than_a_patch_can_name_are_refused_when_it_is_written(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = folders
    monkeypatch.setattr(patches, "_MOST_JSON", 300)
    with pytest.raises(InputError, match="4 files are more than a patch can name"):
        write_patch(before, after, ["t.txt", "a.npy", "p.parquet", "gone.bin"], ABOUT)


@pytest.mark.parametrize("inside", [True, False])
def test_more_names_than_a_fix_writes_are_refused_before_they_are_judged(
    folders: tuple[Path, Path], tmp_path: Path, inside: bool
) -> None:
    _, after = folders
    with zipfile.ZipFile(after / NAME) as archive:
        listing, blob = archive.read("patch.json").decode(), archive.read("blob")
    end = -2 if inside else -1
    names = "".join(f',"{k:x}":{{}}' for k in range(600_000))
    with zipfile.ZipFile(after / NAME, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("blob", blob)
        archive.writestr("patch.json", listing[:end] + names + listing[end:])
    (tmp_path / "back").mkdir()
    with pytest.raises(InputError, match="names more pieces than a fix writes"):
        revert(after, tmp_path / "back")
