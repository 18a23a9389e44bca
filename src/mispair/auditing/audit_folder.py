"""AuditFolder: the files of an audit. Their names stand here and nowhere else.

audit.parquet    the columns of `verdict_table.SCHEMA`, one row per pair
audit.json       `Facts`; it is written last, so a folder without it is no audit
look.csv         the rows most worth a person's look, where a budget was given
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing

TABLE = "audit.parquet"


@dataclass(frozen=True)
class AuditFolder:
    """Where each file of an audit is."""

    path: Path

    @property
    def table_file(self) -> Path:
        return self.path / TABLE

    @property
    def facts_file(self) -> Path:
        return self.path / "audit.json"

    @property
    def look_file(self) -> Path:
        return self.path / "look.csv"

    @property
    def begun(self) -> bool:
        """Whether there is an audit, whole or not."""
        return os.path.exists(self.facts_file)

    def refuse_second(self) -> None:
        """Raise InputError where the folder holds an audit already."""
        if self.begun:
            raise InputError(f"{self.path} already holds an audit; choose another folder with -o")

    def refuse_unless_whole(self) -> None:
        """Raise InputError where a file that every audit has is missing."""
        if not (self.begun and os.path.exists(self.table_file)):
            if is_missing(self.path):
                raise InputError(f"{does_not_exist(self.path)}; expected an audit folder (mispair audit makes one)")
            raise InputError(
                f"{self.path} is not an audit folder: 'mispair audit' writes {self.facts_file.name} and {TABLE}"
            )
