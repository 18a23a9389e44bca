"""Pictures inside tar files, read in place: an index of where each member starts, nothing unpacked."""

from __future__ import annotations

import os
import tarfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mispair.data.files.picture_folder import ADDRESS, UNNAMED, composed, is_picture_name, settle_claims
from mispair.data.files.reading import plain_file, reading
from mispair.data.picture_store import PictureIndex
from mispair.errors import InputError
from mispair.pictures.decode import MOST_BYTES, Broken

_WHAT = "a tar file of pictures"
SEVERAL = "several pictures in the tars are called so: write the tar or the folder before it"
TarPlace = tuple[int, int, int]  # which tar, where the content starts, how long it is


@dataclass(frozen=True)
class Member:
    """One ordinary file inside a tar."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class TarListing:
    """The ordinary files of a tar, in order, and what is wrong with it (None: nothing)."""

    members: tuple[Member, ...]
    trouble: str | None = None


@dataclass(eq=False)
class TarStore:
    """Reads members of several tars by place; may be used from threads."""

    paths: tuple[Path, ...]
    _files: dict[int, int] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self, place: TarPlace) -> bytes | Broken:
        tar, offset, size = place
        if size > MOST_BYTES:
            return Broken(f"too large: {size >> 20:,} MB")
        try:
            data = os.pread(self._file(tar), size, offset)
        except OSError as error:
            return Broken(f"cannot be read ({error.strerror})")
        return data if len(data) == size else Broken("truncated: the tar file ends before it")

    def _file(self, tar: int) -> int:
        with self._lock:
            if tar not in self._files:
                self._files[tar] = os.open(self.paths[tar], os.O_RDONLY | os.O_CLOEXEC)
            return self._files[tar]

    def __del__(self) -> None:
        for file in self._files.values():
            os.close(file)


def list_tar(path: Path) -> TarListing:
    """The members of a tar, without reading their contents. Links, folders and devices are left out.

    Raises:
        InputError: a file that is no tar, or a compressed one, in which nothing can be found without unpacking.
    """
    plain_file(path, _WHAT)
    with reading(path, _WHAT):
        status = os.stat(path)
        with path.open("rb") as file:
            start = file.read(6)
    if start[:2] == b"\x1f\x8b" or start[:3] == b"BZh" or start == b"\xfd7zXZ\x00" or start[:4] == b"(\xb5/\xfd":
        raise InputError(f"{path} is compressed; expected a plain tar, so unpack it once: gunzip (or bunzip2, unxz)")
    return _list(path, status.st_size, status.st_mtime_ns)


def headers(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The headers of a tar one after the other; the library would keep every one of them in memory."""
    for info in tar:
        tar.members = []  # type: ignore[attr-defined]
        yield info


@lru_cache(maxsize=4096)
def _list(path: Path, size: int, changed: int) -> TarListing:
    members: list[Member] = []
    trouble = None
    try:
        with tarfile.open(path, "r:") as tar:
            for info in headers(tar):
                if info.isreg() and not info.issparse() and info.size >= 0:
                    if info.offset_data + info.size > size:
                        trouble = f"truncated inside {info.name!r}"
                        break
                    members.append(Member(info.name.removeprefix("./"), info.offset_data, info.size))
            else:
                trouble = _no_end(path, tar.offset, size, members)
    except (tarfile.TarError, OSError, ValueError, EOFError, OverflowError, MemoryError, RecursionError) as error:
        if not members:
            raise InputError(f"{path} is not readable as a tar ({_reason(error)}); expected {_WHAT}") from None
        trouble = f"damaged after {members[-1].name!r} ({_reason(error)})"
    return TarListing(tuple(members), trouble)


def _no_end(path: Path, stopped: int, size: int, members: list[Member]) -> str | None:
    """What is wrong where the library found no further header: it takes a damaged one, and none at all, for the end."""
    with path.open("rb") as file:
        file.seek(stopped)
        block = file.read(tarfile.BLOCKSIZE)
    if not members or block == bytes(tarfile.BLOCKSIZE):
        return None
    if stopped + tarfile.BLOCKSIZE > size:
        return f"cut off after {members[-1].name!r}: it has no end"
    return f"damaged after {members[-1].name!r}, and what follows is lost"


def index_tars(paths: Sequence[Path], names: Iterable[str]) -> PictureIndex:
    """Where the picture of each name lies in the tars: as the name stands, below the name of its tar, by file name.

    The ending may be left out, and capitals may differ where that leaves one. A name that pictures of several folders
    or tars have is nobody's: the first would be as good as any.
    """
    known, by_file_name, in_any_case = _Places(), _Places(), _Places()
    folder_of: dict[TarPlace, str] = {}
    for tar, path in enumerate(paths):
        for name, member in {member.name: member for member in list_tar(path).members}.items():  # the last of a name
            folder, slash, base = composed(name).rpartition("/")
            place = (tar, member.offset, member.size)
            folder_of[place] = folder
            shown = [base, *([base.split(".", 1)[0], base.rsplit(".", 1)[0]] if is_picture_name(name) else [])]
            for one in dict.fromkeys(shown):
                known.add(f"{folder}{slash}{one}", folder, place)
                known.add(f"{composed(path.stem)}/{folder}{slash}{one}", folder, place)
                by_file_name.add(one, folder, place)
                in_any_case.add(one.casefold(), name, place)
    places: dict[str, TarPlace] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(names):
        parts = composed(name.replace("\\", "/")).split("/")
        found = known.get("/".join(parts)) or known.get("/".join(parts[-2:])) or by_file_name.get(parts[-1])
        found = found or in_any_case.get(parts[-1].casefold())
        if found is None:
            missing[name] = UNNAMED if not name else ADDRESS if "://" in name[:12] else "missing"
        elif isinstance(found, Broken):
            missing[name] = found.reason
        else:
            places[name] = found
    settle_claims(places, missing, lambda place: (folder_of[place], f"{paths[place[0]].stem}/{folder_of[place]}"))
    return PictureIndex(TarStore(tuple(paths)), places, missing, ", ".join(path.name for path in paths[:3]))


class _Places:
    """Places by name. Of the pictures that one folder of a tar has under a name the first counts."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TarPlace, str] | Broken] = {}

    def add(self, name: str, folder: str, place: TarPlace) -> None:
        before = self._known.setdefault(name, (place, folder))
        if not isinstance(before, Broken) and (before[0][0], before[1]) != (place[0], folder):
            self._known[name] = Broken(SEVERAL)

    def get(self, name: str) -> TarPlace | Broken | None:
        """Where the picture of this name lies, why it cannot be told; None where nothing is called so."""
        found = self._known.get(name)
        return found[0] if isinstance(found, tuple) else found


def _reason(error: BaseException) -> str:
    return str(error).split("\n")[0][:60] or type(error).__name__
