"""The files of an audit lie in its folder, and a folder that lacks one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mispair.auditing.audit_folder import AuditFolder
from mispair.errors import InputError


def test_every_file_has_its_place(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path)
    files = (folder.table_file, folder.facts_file, folder.look_file)
    assert [file.relative_to(tmp_path).as_posix() for file in files] == ["audit.parquet", "audit.json", "look.csv"]


def test_an_audit_is_whole_or_refused(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path)
    folder.refuse_second()
    for file in (folder.facts_file, folder.table_file):
        with pytest.raises(InputError, match="is not an audit folder"):
            folder.refuse_unless_whole()
        file.touch()
    folder.refuse_unless_whole()
    with pytest.raises(InputError, match="already holds an audit"):
        folder.refuse_second()
