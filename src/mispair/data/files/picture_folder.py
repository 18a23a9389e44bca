"""Pictures as files below a folder: which file a name means, and reading it. No name leads out of the folder."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mispair.data.picture_store import PictureIndex
from mispair.pictures.containment import contained
from mispair.pictures.decode import FORMATS, UNREADABLE, Broken, read_picture

ENDINGS = (*(ending for endings in FORMATS.values() for ending in endings), *UNREADABLE)
OUTSIDE = "lies outside the folder of pictures (--allow-outside lets it in)"
_LISTED_FROM = 1_000  # names from which on directories are listed instead of looking for every file
UNNAMED = "no picture is named"
CLAIMED = "missing: the only picture called so is in another folder, as another name says"
AMBIGUOUS = "missing: one picture is called so, and names with other folders could mean it as well"
SEVERAL = "several pictures are called so: write the folder before it as it is"
ADDRESS = "is an address on the web, which is not fetched: download the pictures with img2dataset"

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True)
class FolderStore:
    """Reads the files below `root`; places are paths relative to it, or absolute ones where those are allowed."""

    root: Path
    allow_outside: bool = False

    def read(self, place: str) -> bytes | Broken:
        path = self.resolve(place)
        return Broken(OUTSIDE) if path is None else read_picture(path)

    def resolve(self, name: str) -> Path | None:
        """The file behind a name, links followed; None where it lies outside and may not."""
        inside = contained(self.root, name)
        if inside is None and self.allow_outside and name and "\0" not in name:
            return self.root / name
        return inside


def index_folder(root: Path, names: Iterable[str], allow_outside: bool = False) -> PictureIndex:
    """Where the picture of each name lies: as the name says, by its file name alone, or with an ending added."""
    store = FolderStore(root, allow_outside)
    places: dict[str, str] = {}
    missing: dict[str, str] = {}
    asked = dict.fromkeys(names)
    listed = _ListedFiles(root) if len(asked) > _LISTED_FROM else None
    for name in asked:
        plain = name.replace("\\", "/")
        place = plain if listed is not None and plain in listed else _find(store, name)
        if isinstance(place, Broken):
            missing[name] = place.reason
        else:
            places[name] = place
    if missing:
        _scan_below(store, places, missing)
    settle_claims(places, missing, lambda place: (os.path.dirname(place),))
    return PictureIndex(store, places, missing, str(root))


class _ListedFiles:
    """The ordinary files below a folder, reached through no link: a directory is listed once for all names in it.

    Looking up a million names one by one takes minutes. What is not in here is looked up that way.
    """

    def __init__(self, root: Path) -> None:
        self._home = os.path.realpath(root)
        self._names: dict[str, frozenset[str]] = {}  # by directory, as names write it

    def __contains__(self, name: str) -> bool:
        parent, _, base = name.rpartition("/")
        if parent not in self._names:
            self._names[parent] = self._list(parent)
        return base in self._names[parent]

    def _list(self, parent: str) -> frozenset[str]:
        folder = os.path.join(self._home, parent) if parent else self._home
        try:
            inside = folder == self._home or folder.startswith(os.path.join(self._home, ""))
            if not inside or os.path.realpath(folder) != folder:  # an absolute name, a link, "..", "//"
                return frozenset()
            with os.scandir(folder) as entries:
                return frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except (OSError, ValueError):  # no such directory, a name that is no path
            return frozenset()


def is_picture_name(name: str) -> bool:
    """Whether a file of this name should hold a picture."""
    return name.lower().endswith(ENDINGS) and not os.path.basename(name).startswith(".")


def walk_pictures(root: Path) -> list[str]:
    """All pictures below `root`, as paths relative to it, in order; links to folders are not followed."""
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(folder, root)
        files += [name if below == "." else os.path.join(below, name) for name in names if is_picture_name(name)]
    return sorted(files)


def _find(store: FolderStore, name: str) -> str | Broken:
    if not name:
        return Broken(UNNAMED)
    if "://" in name[:12]:
        return Broken(ADDRESS)
    plain = name.replace("\\", "/")
    tried = [plain, plain.rsplit("/", 1)[-1]]
    if not is_picture_name(plain):
        tried += [f"{one}{ending}" for one in tried for ending in ENDINGS]
    outside = False
    for one in dict.fromkeys(tried):
        path = store.resolve(one)
        if path is None:
            outside = outside or os.path.lexists(os.path.join(store.root, one)) if "\0" not in one else outside
        elif os.path.isfile(path):
            return one
        elif os.path.lexists(path) and not os.path.isdir(path):
            return one  # a device or a pipe: reading it says so
    return Broken(OUTSIDE if outside else "missing")


def _scan_below(store: FolderStore, places: dict[str, str], missing: dict[str, str]) -> None:
    """Names that lie deeper than they say, found by file name where there is only one of that name.

    An é in a table is one letter, and in names of files that a Mac wrote often an e with an accent behind it. Where
    a.jpg was written on a system that takes A.JPG for the same, either is found by the other.
    """
    by_name: dict[str, str | None] = {}
    in_any_case: dict[str, str | None] = {}
    for path in walk_pictures(store.root):
        base = composed(os.path.basename(path))
        for key in (base, base.rsplit(".", 1)[0]):
            by_name[key] = path if key not in by_name else None
            folded = key.casefold()
            in_any_case[folded] = path if folded not in in_any_case else None
    for name in [name for name, reason in missing.items() if reason == "missing"]:
        base = composed(name.replace("\\", "/").rsplit("/", 1)[-1])
        deeper = by_name[base] if base in by_name else in_any_case.get(base.casefold())
        if deeper is None and (base in by_name or base.casefold() in in_any_case):
            missing[name] = SEVERAL
        if deeper is not None and store.resolve(deeper) is not None:
            places[name] = deeper
            del missing[name]


def settle_claims(
    places: dict[str, Place], missing: dict[str, str], folders_of: Callable[[Place], tuple[str, ...]]
) -> None:
    """Of names that were taken for one picture those keep it that say its folder; else all, if they say the same one.

    Where x/1.jpg is missing, y/1.jpg is not it: its caption would stand beside a picture of another.

    Args:
        folders_of: how the folder of the picture at a place may be written.
    """
    names_of: dict[Place, list[str]] = {}
    for name, place in places.items():
        names_of.setdefault(place, []).append(name)
    for place, names in names_of.items():
        if len(names) == 1:
            continue
        said = {name: _folder(name.replace("\\", "/").rpartition("/")[0]) for name in names}
        written = {_folder(folder) for folder in folders_of(place)}
        right = {name for name in names if said[name] in written}
        if right or len(set(said.values())) > 1:
            missing.update({name: CLAIMED if right else AMBIGUOUS for name in names if name not in right})
            for name in set(names) - right:
                del places[name]


def _folder(written: str) -> str:
    """A folder in the one way of several to write it."""
    plain = os.path.normpath(composed(written)).casefold()
    return "" if plain == "." else plain


def composed(name: str) -> str:
    """The name with every letter and its accents as one."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)
