"""A file that a command reads, and what the makers of good files share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.forks import Forks, Ran


@dataclass(frozen=True)
class Target:
    """A file that is read, and a command that reads it; both inside one folder, which is copied for each case.

    In the command `{}` is the copy. What it writes goes to `{}/out`. A folder stands for any file below it.
    """

    folder: Path
    file: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.command[0]} {self.folder.name}/{self.file}"


def targets(folder: Path, files: str | Iterable[str], *commands: str) -> list[Target]:
    """Every one of the files with every one of the commands; files and words are told apart by spaces."""
    names = files.split() if isinstance(files, str) else list(files)
    return [Target(folder, file, tuple(command.split())) for file in names for command in commands]


def run(forks: Forks, *arguments: object, cache: Path, limit: float) -> Ran:
    """`mispair ARGUMENTS`, with the encoder "colours" among the others."""
    environment = {"MISPAIR_CACHE": str(cache)}
    return forks.run(*arguments, limit=limit, environment=environment, program="tests.fuzz.command_line")


@dataclass(frozen=True)
class Makers:
    """What a maker of good files works with."""

    forks: Forks
    home: Path

    @property
    def cache(self) -> Path:
        """The cache of encodings that all of them share."""
        return self.home / "cache"

    def mispair(self, *arguments: object, cache: Path | None = None) -> None:
        """The command, which must succeed."""
        ran = run(self.forks, *arguments, cache=cache or self.cache, limit=300.0)
        assert ran.code == 0, (arguments, ran)

    def copy_once_made(self, build: Callable[[Makers, Path], None], folder: Path) -> None:
        """What `build` makes, in `folder`; made the first time, copied then."""
        made = self.home / "shared" / build.__name__
        if not made.exists():
            made.mkdir(parents=True)
            build(self, made)
        shutil.copytree(made, folder, dirs_exist_ok=True)
