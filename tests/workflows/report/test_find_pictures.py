"""Pictures by image id: found by name and by file name, in every likely place, and never outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data import DataConfig, ScenesConfig
from mispair.errors import InputError
from mispair.workflows.report.find_pictures import PicturesById
from tests.report.samples import png

GOOD = "data:image/webp"


def table(folder: Path, **more: object) -> DataConfig:
    return DataConfig(path=str(folder / "pairs.csv"), **more)  # type: ignore[arg-type]


def test_beside_a_table(tmp_path: Path) -> None:
    for name in ("a.jpg", "images/b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(png())
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    os.mkfifo(tmp_path / "pipe.jpg")
    good = ["a", "a.jpg", "b", "b.png", "images/b.png", str(tmp_path / "a.jpg")]
    bad = ["broken.jpg", "pipe.jpg", "absent", "", "\0", "http://example.com/a.jpg", "x" * 5000, "../../etc/passwd"]
    for name in good:
        pictures = PicturesById(table(tmp_path), "train", [name, *bad])
        assert pictures.present
        assert (pictures.get(name, 32) or "").startswith(GOOD), name
    for name in bad:
        assert pictures.get(name, 32) == "", name


def test_the_guides_own_command(tmp_path: Path) -> None:
    """Ids that name the folder, and that very folder as an option."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "x.png").write_bytes(png())
    elsewhere = table(tmp_path / "nowhere")
    pictures = PicturesById(elsewhere, "all", ["images/x.png", "images/y.png"], folder=tmp_path / "images")
    assert (pictures.get("images/x.png", 32) or "").startswith(GOOD)
    assert pictures.said().startswith(f"1 of 2 found; looked in {tmp_path / 'images'}")


def test_near_a_run_and_where_the_configuration_says(tmp_path: Path) -> None:
    for place in ("run", "photos"):
        (tmp_path / place).mkdir()
    (tmp_path / "run" / "a.png").write_bytes(png())
    (tmp_path / "photos" / "b.png").write_bytes(png())
    config = table(tmp_path / "nowhere", images=str(tmp_path / "photos"))
    pictures = PicturesById(config, "all", ["a.png", "b.png"], near=[tmp_path / "run"])
    assert pictures.complete
    assert str(tmp_path / "run") in pictures.said()


def test_data_without_pictures_has_none_and_says_where_it_looked(tmp_path: Path) -> None:
    pictures = PicturesById(table(tmp_path), "train", ["a", "b"])
    assert not pictures.present
    assert pictures.get("a", 32) is None
    assert pictures.said() == f"none of 2 was found; looked in {tmp_path}; name their folder with --pictures"


def test_pictures_that_are_gone_since_are_not_counted_as_found(tmp_path: Path) -> None:
    """A table whose folder of pictures was moved after the audit still opens; its pictures do not."""
    (tmp_path / "pairs.csv").write_text("image,caption\nimages/a.png,one\nimages/b.png,two\n", encoding="utf-8")
    np.save(tmp_path / "pairs.npy", np.ones((2, 3), np.float32))  # what was encoded of them is still there
    config = table(tmp_path, images=str(tmp_path))
    gone = PicturesById(config, "all", ["images/a.png", "images/b.png"])
    assert gone.said() == f"none of 2 was found; looked in {tmp_path}; name their folder with --pictures"
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "b.png").write_bytes(png())
    half = PicturesById(config, "all", ["images/a.png", "images/b.png"])
    assert half.said().startswith("1 of 2 found")
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "a.png").write_bytes(png())
    both = PicturesById(config, "all", ["images/a.png", "images/b.png"], near=[tmp_path / "moved"])
    assert both.complete, "what the table no longer has is looked for elsewhere"


def test_bytes_in_the_data_itself(tmp_path: Path) -> None:
    images = [{"bytes": png(9, 9), "path": f"im{k}.png"} for k in range(3)]
    pq.write_table(pa.table({"image": images, "caption": ["a", "b", "c"]}), tmp_path / "pairs.parquet")
    pictures = PicturesById(DataConfig(path=str(tmp_path / "pairs.parquet")), "all", ["im0.png", "im2.png"])
    assert pictures.complete
    assert (pictures.get("im2.png", 32) or "").startswith(GOOD)


def test_a_folder_a_person_names_comes_first(tmp_path: Path) -> None:
    (tmp_path / "train_000000.png").write_bytes(png(9, 9))
    config = DataConfig(scenes=ScenesConfig(pictures=40))
    ids = ["train_000000.png", "train_000001.png", "train_999999.png"]
    drawn, named = PicturesById(config, "train", ids), PicturesById(config, "train", ids, folder=tmp_path)
    assert drawn.get(ids[0], 32) != named.get(ids[0], 32) != ""
    assert drawn.get(ids[1], 32) == named.get(ids[1], 32) != ""
    assert drawn.get(ids[2], 32) == ""


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder of pictures, and names that lead out of it: above, absolute, by a link to a file and to a folder."""
    private, home = tmp_path / "private", tmp_path / "data"
    for folder in (private, home / "images"):
        folder.mkdir(parents=True)
    (private / "secret.png").write_bytes(png())
    (home / "images" / "fine.png").write_bytes(png())
    (home / "images" / "link.png").symlink_to(private / "secret.png")
    (home / "images" / "folder").symlink_to(private)
    above = ["../private/secret.png", "../../private/secret.png", str(private / "secret.png")]
    return home, [*above, "link.png", "folder/secret.png"]


@pytest.mark.parametrize("named", [False, True])
def test_no_name_leads_out(hostile: tuple[Path, list[str]], named: bool) -> None:
    home, out = hostile
    folder = home / "images" if named else None
    pictures = PicturesById(table(home), "all", ["fine.png", *out], folder=folder)
    assert (pictures.get("fine.png", 32) or "").startswith(GOOD)
    for name in out:
        assert pictures.get(name, 32) == "", name
        assert pictures.read(name) is None, name
    assert pictures.outside >= 2
    assert f"Left out: {pictures.outside} outside these folders (--allow-outside" in pictures.said()


def test_a_person_may_let_them_in_and_a_file_may_not(hostile: tuple[Path, list[str]]) -> None:
    home, out = hostile
    asked = PicturesById(table(home), "all", ["fine.png", *out], folder=home / "images", allow_outside=True)
    assert (asked.get(out[2], 32) or "").startswith(GOOD)
    assert (asked.get("link.png", 32) or "").startswith(GOOD)
    crafted = PicturesById(table(home, allow_outside=True), "all", ["fine.png", *out])
    assert not any(crafted.get(name, 32) for name in out), "a configuration in a stranger's audit.json does not count"


def test_what_a_person_names_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("x")
    with pytest.raises(InputError, match="neither a folder nor a .tar"):
        PicturesById(table(tmp_path), "all", ["a"], folder=tmp_path / "page.html")
