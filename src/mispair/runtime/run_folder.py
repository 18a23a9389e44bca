"""RunFolder: the files of a run. Their names stand here and nowhere else.

config.yaml            what was asked for; with it the run can be repeated
vocabulary.json        the words of the train split, where there are words
metrics.jsonl          one line per event, epochs among them
split.parquet/         what the method thought of every pair, one file per epoch
last/state.pt          everything to go on from
model.safetensors      the networks of the best epoch
alignment.json         how rematching distributed its mass in the last epoch
metrics.json           the summary; it is written at the end, so a run that has one is finished
README.md              the model card
tensorboard/           curves, where TensorBoard is installed
.lock                  held by the process that trains
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.atomic import clear_leftovers, write_atomically, write_text
from mispair.data.files.reading import plain_file
from mispair.data.vocabulary import Vocabulary
from mispair.errors import InputError
from mispair.memory import refuse_beyond_memory
from mispair.missing_path import does_not_exist, is_missing
from mispair.runtime.alignment_file import AlignmentContent, read_alignment
from mispair.runtime.summary_file import read_summary

CONFIG = "config.yaml"
SPLITS = "split.parquet"
GO_ON = "go on with --resume"  # what to do about a disk that was full
PairColumns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RunFolder:
    """Where each file of a run is, and the readers of those that need no network."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config_file(self) -> Path:
        return self.path / CONFIG

    @property
    def vocabulary_file(self) -> Path:
        return self.path / "vocabulary.json"

    @property
    def journal_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def summary_file(self) -> Path:
        return self.path / "metrics.json"

    @property
    def model_file(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def state_file(self) -> Path:
        return self.path / "last" / "state.pt"

    @property
    def splits_folder(self) -> Path:
        return self.path / SPLITS

    @property
    def alignment_file(self) -> Path:
        return self.path / "alignment.json"

    @property
    def card_file(self) -> Path:
        return self.path / "README.md"

    @property
    def board_folder(self) -> Path:
        return self.path / "tensorboard"

    @property
    def lock_file(self) -> Path:
        return self.path / ".lock"

    @property
    def written(self) -> list[Path]:
        """Everything a training writes here."""
        files = [self.config_file, self.vocabulary_file, self.journal_file, self.summary_file, self.model_file]
        folders = [self.state_file.parent, self.splits_folder, self.board_folder]
        return [*files, *folders, self.alignment_file, self.card_file, self.lock_file]

    # ------------------------------------------------------------------------------------------------- how it stands

    @property
    def begun(self) -> bool:
        """Whether a run was started here."""
        return _there(self.config_file)

    @property
    def resumable(self) -> bool:
        """Whether it was saved at least once."""
        return _there(self.state_file)

    @property
    def finished(self) -> bool:
        return _there(self.summary_file)

    def refuse_unless_begun(self) -> None:
        if not self.begun:
            if is_missing(self.path):
                raise InputError(f"{does_not_exist(self.path)}; expected a run folder (mispair train makes one)")
            inside = RunFolder(self.path / "run")  # as audit --train leaves it
            hint = f"but {inside.path} is one" if inside.begun else "mispair train makes one"
            raise InputError(f"{self.path} is not a run folder: it has no {CONFIG} ({hint})")

    def clear_leftovers(self) -> None:
        """Remove what a killed process was writing when it was killed; for whoever holds the lock."""
        for folder in (self.path, self.state_file.parent, self.splits_folder):
            clear_leftovers(folder, alone=True)

    # -------------------------------------------------------------------------------------------------- what it holds

    @property
    def summary(self) -> dict[str, Any]:
        """What the run wrote of itself at its end; empty while it is not finished."""
        if not os.path.lexists(self.summary_file):
            return {}
        return read_summary(self.summary_file, _damaged(self.summary_file))

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_text(self.summary_file, json.dumps(summary, indent=2) + "\n", GO_ON)

    def epochs(self) -> list[dict[str, Any]]:
        """The lines of the epochs in order, of an epoch that was repeated the last; keys epoch, dev, train, seconds."""
        try:
            lines = _text(self.journal_file, errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{self.journal_file} cannot be read: {error.strerror}") from None
        by_epoch: dict[int, dict[str, Any]] = {}
        for line in lines:
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue  # a kill can cut the last line; it is written again on resume
            if isinstance(event, dict) and event.get("event") == "epoch" and _epoch_holds(event):
                by_epoch[event["epoch"]] = event
        return [by_epoch[epoch] for epoch in sorted(by_epoch)]

    def splits(self) -> dict[int, Path]:
        """Epoch -> the file with what the method thought of every pair then."""
        stems = {file.stem.removeprefix("epoch-"): file for file in self.splits_folder.glob("epoch-*.parquet")}
        numbered = {int(stem): file for stem, file in stems.items() if stem.isdecimal() and len(stem) < 9}
        return dict(sorted(numbered.items()))

    def split(self, epoch: int) -> PairColumns:
        """The columns recorded at an epoch, each (N,) by pair id; signal, posterior and mismatched among them."""
        return self._read_split(self.splits()[epoch])

    def split_names(self, epoch: int) -> list[str]:
        """The names of the columns recorded at an epoch."""
        return list(self._read_split(self.splits()[epoch], names_alone=True))

    def _read_split(self, file: Path, names_alone: bool = False) -> PairColumns:
        import pyarrow as pa
        import pyarrow.parquet as pq

        damaged = f"{file} is damaged; delete it, or train the run again"
        plain_file(file, "what a method thought of every pair")
        try:
            with pq.ParquetFile(file) as parquet:
                names, rows = parquet.schema_arrow.names, parquet.metadata.num_rows
                if names_alone:
                    return dict.fromkeys(names, np.empty(0))
                refuse_beyond_memory(8 * rows * len(names), f"{file} with {rows:,} rows", "it is not one of ours")
                table = parquet.read()
                columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        except (OSError, pa.ArrowException):
            raise InputError(damaged) from None
        if "pair_id" in columns and not np.array_equal(columns["pair_id"], np.arange(rows)):
            raise InputError(damaged)
        return columns

    def last_split(self) -> PairColumns | None:
        """Those of the last epoch that recorded any; None where the method does not judge pairs."""
        epochs = self.splits()
        return self.split(max(epochs)) if epochs else None

    def write_split(self, epoch: int, columns: PairColumns) -> None:
        """columns (N,) by pair id. Readers of Parquet open the folder of all epochs as one table."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        length = len(next(iter(columns.values())))
        numbered = {"epoch": np.full(length, epoch, np.int32), "pair_id": np.arange(length, dtype=np.int64), **columns}
        file = self.splits_folder / f"epoch-{epoch:04d}.parquet"
        write: Callable[[Path], object] = lambda path: pq.write_table(pa.table(numbered), path)  # noqa: E731
        write_atomically(file, write, GO_ON)

    def alignments(self) -> tuple[int, dict[str, list[float]]]:
        """The last epoch that rematched, and the mass by rank of its transported and untransported images.

        (0, {}) where nothing was rematched.
        """
        epochs = self._alignment().epochs
        last = max(epochs, key=int, default=None)
        if last is None:
            return 0, {}
        sides = {"transported": epochs[last].transported, "untransported": epochs[last].untransported}
        return int(last), {side: values for side, values in sides.items() if values}

    def rematching(self) -> dict[str, float] | None:
        """Shares of the transported mass in the last epoch that lie on true partners; None where nobody can know."""
        judged = self._alignment().rematching
        return None if judged is None else judged.model_dump()

    def _alignment(self) -> AlignmentContent:
        if not os.path.lexists(self.alignment_file):
            return AlignmentContent()
        return read_alignment(self.alignment_file, _damaged(self.alignment_file))

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words of the run; None where the second side has none."""
        return Vocabulary.load(self.vocabulary_file) if _there(self.vocabulary_file) else None


def _damaged(file: Path) -> str:
    return f"{file} is damaged; train the run again, or delete the file and go on with --resume"


def _there(path: Path) -> bool:
    return os.path.isfile(path)


def _text(path: Path, errors: str = "strict") -> str:
    """The text of an ordinary file: a pipe or a device in its place could be read for ever. Raises OSError."""
    if os.path.exists(path) and not _there(path):
        raise OSError(errno.EINVAL, "it is not an ordinary file")
    return path.read_text(encoding="utf-8", errors=errors)


def _epoch_holds(event: dict[str, Any]) -> bool:
    """Whether a line is what a trainer writes: another is passed over like one that was cut."""
    epoch, dev, train = event.get("epoch"), event.get("dev"), event.get("train", {})
    if type(epoch) is not int or epoch < 0 or not isinstance(dev, dict) or not isinstance(train, dict):
        return False
    spent = [event[key] for key in ("lr", "seconds", "cpu", "waited") if key in event]
    numbers = all(map(_is_number, [*dev.values(), *train.values(), *spent]))
    return numbers and "rsum" in dev and math.isfinite(dev["rsum"])


def _is_number(value: object) -> bool:
    """One that a float can hold; NaN is one."""
    return isinstance(value, float) or (type(value) is int and abs(value) < 1 << 1000)
