"""Pictures with captions beside them: what a link leads to elsewhere is not written into the mended set."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.fixing.writers.picture_files import PictureFilesWriter
from mispair.data import DataConfig
from tests.data.picture_samples import write_pictures
from tests.data.samples import write_lines


def test_what_lies_elsewhere_is_no_part_of_what_is_mended(tmp_path: Path) -> None:
    write_pictures(tmp_path / "private", ["secret.png"])
    write_lines(tmp_path / "private/secret.txt", ["a secret"])
    write_pictures(tmp_path / "photos", ["a.png", "x/b.png"])
    for name in ("a", "x/b"):
        write_lines(tmp_path / f"photos/{name}.txt", ["a dog"])
    for ending in ("png", "txt"):
        (tmp_path / f"photos/c.{ending}").symlink_to(tmp_path / f"private/secret.{ending}")
    config = DataConfig(path=str(tmp_path / "photos"))
    assert sorted(PictureFilesWriter().files(config)) == ["a.png", "a.txt", "x/b.png", "x/b.txt"]
    everything = config.model_copy(update={"allow_outside": True})
    assert sorted(PictureFilesWriter().files(everything)) == ["a.png", "a.txt", "c.png", "c.txt", "x/b.png", "x/b.txt"]
