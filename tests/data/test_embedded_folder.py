"""The files of an embedded folder lie in it, each under its own name."""

from __future__ import annotations

from pathlib import Path

from mispair.data.embedded_folder import EmbeddedFolder


def test_every_file_has_its_place(tmp_path: Path) -> None:
    folder = EmbeddedFolder(tmp_path)
    files = (folder.table_file, folder.features_file, folder.ids_file, folder.texts_file, folder.failed_file)
    names = ["pairs.parquet", "features.npy", "features_ids.txt", "texts.npy", "failed.csv"]
    assert [file.relative_to(tmp_path).as_posix() for file in files] == names
    assert not folder.begun
    folder.about_file.write_text("{}")
    assert folder.begun
