"""Every format that holds or names pictures gives the same pairs, and the pictures byte for byte."""

from __future__ import annotations

import io
import pickle
import tarfile
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.data import DataConfig, list_data_splits, open_source, open_split
from mispair.data.files.picture_tar import list_tar
from mispair.data.readers.dispatch import open_pairing
from mispair.errors import InputError
from mispair.pictures.decode import Broken
from tests.data.picture_formats import CAPTIONS, COUNT, MAKERS, NAMES
from tests.data.picture_samples import picture, write_pictures, write_tar
from tests.data.samples import features, write_lines


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__.strip("_"))
def config(request: pytest.FixtureRequest, tmp_path: Path) -> DataConfig:
    made: DataConfig = request.param(tmp_path)
    return made


def test_splits_captions_and_pictures(config: DataConfig) -> None:
    assert list_data_splits(config) == ["train", "dev", "test"]
    for split, rows in (("train", [0, 1, 2]), ("dev", [3]), ("test", [4])):
        source = open_source(config, split)
        assert list(source.captions or ()) == [CAPTIONS[k] for k in rows]
        assert source.image_of_text.tolist() == list(range(len(rows)))
        assert source.images is None
        assert source.pictures is not None
        assert [source.pictures.read(row) for row in range(len(rows))] == [picture(k) for k in rows]
        assert len(set(source.image_ids or ())) == len(rows)
        assert not source.findings


def test_pictures_can_be_had_in_any_order_and_again(config: DataConfig) -> None:
    pictures = open_source(config, "all").pictures
    assert pictures is not None
    order = [4, 0, 3, 0, 1]
    wanted = {picture(k) for k in range(COUNT)}
    first = [pictures.read(row) for row in order]
    assert len({one for one in first if isinstance(one, bytes)} & wanted) == 4
    assert first == [pictures.subset(np.array(order)).read(k) for k in range(5)]


def test_features_given_by_name_take_their_place(config: DataConfig, tmp_path: Path) -> None:
    """What an encoder makes of the pictures is joined by image id, in every format."""
    ids = list(open_source(config, "all").image_ids or ())
    np.save(tmp_path / "vectors.npy", features(len(ids), 0, 6))
    write_lines(tmp_path / "vectors_ids.txt", ids)
    encoded = config.model_copy(update={"features": str(tmp_path / "vectors.npy")})
    data = open_split(encoded, "train")
    assert data.images.width == 6
    rows = [ids.index(name) for name in data.table.image_ids or ()]
    assert np.array_equal(data.image_batch(np.arange(3))[0][:, 0].numpy(), features(len(ids), 0, 6)[rows])


def test_without_features_the_way_forward_is_named(config: DataConfig) -> None:
    with pytest.raises(InputError, match="holds pictures and no features.*mispair embed"):
        open_split(config, "train")


def test_flickr_tokens(tmp_path: Path) -> None:
    write_pictures(tmp_path / "Images", ["1.png", "2.png"])
    lines = ["1.png#0\ta dog", "1.png#1\tan animal", "", "2.png#0\ta cat # 3"]
    source = open_source(DataConfig(path=str(write_lines(tmp_path / "results.token", lines))), "all")
    assert source.captions == ["a dog", "an animal", "a cat # 3"]
    assert source.image_of_text.tolist() == [0, 0, 1]
    assert source.lines is not None
    assert source.lines.tolist() == [1, 2, 4]
    assert source.pictures is not None
    assert source.pictures.read(1) == picture(1)
    write_lines(tmp_path / "results.token", ["1.png#0\ta dog", "2.png a cat"])
    with pytest.raises(InputError, match="results.token, line 2"):
        open_source(DataConfig(path=str(tmp_path / "results.token")), "all")


def test_a_caption_beside_each_picture(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["train/a.png", "train/b.png", "test/c.png"])
    (tmp_path / "train/a.txt").write_text("a dog\nan animal\n")
    (tmp_path / "test/c.txt").write_text("a cat")
    config = DataConfig(path=str(tmp_path))
    assert list_data_splits(config) == ["train", "test"]
    source = open_source(config, "train")
    assert source.captions == ["a dog", "an animal"]
    assert source.image_ids == ["train/a.png"]
    (finding,) = source.findings
    assert "'train/b.png'" in finding.text


def test_img2dataset_output_is_its_tars(tmp_path: Path) -> None:
    write_tar(tmp_path / "00000.tar", {"000.png": picture(0), "000.txt": b"a dog", "000.json": b"{}"})
    table = {"key": ["000", "001"], "caption": ["a dog", "gone"], "status": ["success", "failed_to_download"]}
    pq.write_table(pa.table(table), tmp_path / "00000.parquet")
    (tmp_path / "00000_stats.json").write_text("{}")
    source = open_source(DataConfig(path=str(tmp_path)), "all")
    assert source.captions == ["a dog"]


def test_one_image_with_several_rows_is_one_image(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png"])
    lines = ["filepath,title", "a.png,one", "a.png,two", "b.png,three"]
    source = open_source(DataConfig(path=str(write_lines(tmp_path / "p.csv", lines))), "all")
    assert source.image_of_text.tolist() == [0, 0, 1]
    assert source.pictures is not None
    assert len(source.pictures) == 2


def test_a_file_column_beside_an_id(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png"])
    lines = ["image_id,file_name,caption", "7,a.png,one", "9,b.png,two"]
    source = open_source(DataConfig(path=str(write_lines(tmp_path / "p.csv", lines))), "all")
    assert source.image_ids == ["7", "9"]
    assert source.pictures is not None
    assert source.pictures.read(1) == picture(1)


def test_missing_pictures_are_refused_or_skipped(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", ["a.png"])
    lines = ["filepath,title", "a.png,one", "gone.png,two", "https://example.org/c.png,three"]
    path = write_lines(tmp_path / "p.csv", lines)
    config = DataConfig(path=str(path), images=str(tmp_path / "photos"))
    source = open_source(config, "all")
    assert source.captions == ["one"]
    (finding,) = source.findings
    assert (finding.kind, finding.count, finding.rows, finding.left_out) == ("pictures missing", 2, (3, 4), True)
    assert "'gone.png': missing" in finding.text
    with pytest.raises(InputError, match="none.*does not exist.*--images"):
        open_source(config.model_copy(update={"images": str(tmp_path / "none")}), "all")
    write_lines(path, ["filepath,title", "https://example.org/c.png,three"])
    with pytest.raises(InputError, match="img2dataset"):
        open_source(config, "all")


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["secret.png", "photos/a.png", "photos/deep/b.png"])
    (tmp_path / "photos/link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "photos/inner.png").symlink_to("a.png")
    names = ["a.png", "../secret.png", str(tmp_path / "secret.png"), "link.png", "inner.png", "deep/../a.png"]
    path = write_lines(tmp_path / "p.csv", ["filepath,title", *(f"{name},text {k}" for k, name in enumerate(names))])
    config = DataConfig(path=str(path), images=str(tmp_path / "photos"))
    source = open_source(config, "all")
    assert source.image_ids == ["a.png", "inner.png", "deep/../a.png"]
    (finding,) = source.findings
    assert finding.count == 3
    assert "--allow-outside" in finding.text
    allowed = open_source(config.model_copy(update={"allow_outside": True}), "all")
    assert allowed.image_ids == names
    assert allowed.pictures is not None
    assert allowed.pictures.read(1) == allowed.pictures.read(3) == picture(0)


def test_a_link_that_is_turned_outward_later_is_not_followed(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["secret.png", "photos/a.png"])
    path = write_lines(tmp_path / "p.csv", ["filepath,title", "a.png,one"])
    pictures = open_source(DataConfig(path=str(path), images=str(tmp_path / "photos")), "all").pictures
    assert pictures is not None
    (tmp_path / "photos/a.png").unlink()
    (tmp_path / "photos/a.png").symlink_to(tmp_path / "secret.png")
    assert isinstance(pictures.read(0), Broken)


def test_pictures_deeper_than_the_table_says_are_found_by_name(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", ["x/a.png", "y/b.png", "y/c.png", "x/c.png"])
    path = write_lines(tmp_path / "p.csv", ["image_id,title", "a,one", "b.png,two", "c.png,three"])
    source = open_source(DataConfig(path=str(path), images=str(tmp_path / "photos")), "all")
    assert source.image_ids == ["a", "b.png"], "two files are called c.png"


@pytest.mark.parametrize("start", [b"\x1f\x8b\x08\0", b"hello, no tar at all" * 60])
def test_files_that_are_no_plain_tar(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(start)
    with pytest.raises(InputError, match="x.tar is (compressed|not readable as a tar)"):
        open_source(DataConfig(path=str(tmp_path / "x.tar")), "all")


def test_a_truncated_tar_gives_what_is_whole(tmp_path: Path) -> None:
    members = {f"{k}.{kind}": picture(k) if kind == "png" else b"dog" for k in range(3) for kind in ("png", "txt")}
    path = write_tar(tmp_path / "x.tar", members)
    path.write_bytes(path.read_bytes()[: 512 * 9 + 20])
    source = open_source(DataConfig(path=str(path)), "all")
    assert source.pictures is not None
    assert 1 <= len(source.pictures) < 3
    assert any(finding.kind == "damaged tar" for finding in source.findings)


def test_pictures_without_captions_can_be_checked_and_not_trained_on(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png", "b.png"])
    source = open_source(DataConfig(path=str(tmp_path)), "all")
    assert source.captions is None
    assert any("no captions" in note for note in source.notes)
    np.save(tmp_path / "v.npy", features(2))
    with pytest.raises(InputError, match="holds no captions"):
        open_split(DataConfig(path=str(tmp_path), features=str(tmp_path / "v.npy")), "all")


def test_a_column_of_embeddings_is_features(tmp_path: Path) -> None:
    vectors = features(5, 0, 4)
    table = pa.table({"key": NAMES, "caption": CAPTIONS, "image_embedding": vectors.tolist()})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
    data = open_split(DataConfig(path=str(tmp_path / "p.parquet")), "all")
    assert "features from 'image_embedding'" in data.notes[0]
    assert np.allclose(data.image_batch(np.arange(5))[0][:, 0].numpy(), vectors)
    ragged = pa.table({"key": NAMES[:2], "caption": CAPTIONS[:2], "embedding": [[1.0, 2.0], [1.0]]})
    pq.write_table(ragged, tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q.parquet, row 1.*lengths \[1, 2\]"):
        open_source(DataConfig(path=str(tmp_path / "q.parquet")), "all")


def test_a_pickle_among_the_pictures_is_just_broken(tmp_path: Path) -> None:
    write_pictures(tmp_path, ["a.png"])
    (tmp_path / "b.png").write_bytes(pickle.dumps([1]))
    source = open_source(DataConfig(path=str(tmp_path)), "all")
    assert source.pictures is not None
    assert len(source.pictures) == 2


def test_a_tar_cut_off_after_it_was_opened_gives_no_half_pictures(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", {"a.png": picture(0), "a.txt": b"dog", "b.png": picture(1), "b.txt": b"cat"})
    pictures = open_source(DataConfig(path=str(path)), "all").pictures
    assert pictures is not None
    with path.open("r+b") as file:
        file.truncate(600)
    read = [pictures.read(row) for row in range(2)]
    assert all(isinstance(one, Broken) and "truncated" in one.reason for one in read)


@pytest.mark.parametrize("where", ["folder", "tar"])
def test_names_of_pictures_that_are_no_text_are_refused(tmp_path: Path, where: str) -> None:
    """A file named in Latin-1: its bytes go into no table and no list of ids."""
    names = {f"{k}\udce9.png": picture(k) for k in range(3)} | {f"{k}\udce9.txt": b"a dog" for k in range(3)}
    data = tmp_path / "data"
    if where == "folder":
        data.mkdir()
        for name, content in names.items():
            (data / name).write_bytes(content)
    else:
        data = write_tar(tmp_path / "data.tar", names)
    for read in (open_source, open_pairing):
        with pytest.raises(InputError, match=r"the name of the picture 0\\xe9.* is not UTF-8; rename it"):
            read(DataConfig(path=str(data)), "all")


def _samples(count: int) -> dict[str, bytes]:
    return {f"{k}.{end}": content for k in range(count) for end, content in (("png", picture(k)), ("txt", b"a dog"))}


def test_a_tar_without_an_end_is_not_clean(tmp_path: Path) -> None:
    """The library takes a header that is cut off or damaged for the end, and says nothing."""
    tar = write_tar(tmp_path / "pairs.tar", _samples(6))
    whole = tar.read_bytes()
    places = {member.name: member.offset - 512 for member in list_tar(tar).members}
    assert list_tar(tar).trouble is None
    broken = bytearray(whole)
    broken[places["3.png"] + 5] ^= 0xFF
    for content, said in {
        whole[: places["3.png"]]: "cut off after '2.txt': it has no end",
        whole[: places["3.png"] + 100]: "cut off after '2.txt'",
        bytes(broken): "damaged after '2.txt', and what follows is lost",
    }.items():
        tar.write_bytes(content)
        source = open_source(DataConfig(path=str(tar)), "all")
        assert len(source.image_of_text) == 3
        assert [finding.kind for finding in source.findings] == ["damaged tar"]
        assert said in source.findings[0].text


def test_captions_in_a_tar_that_are_no_utf_8_and_names_that_repeat_are_told(tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "pairs.tar", _samples(4) | {"2.txt": "un café".encode("latin-1")})
    source = open_source(DataConfig(path=str(tar)), "all")
    assert list(source.captions or ()) == ["a dog", "a dog", "un café", "a dog"]
    assert [(finding.kind, finding.count) for finding in source.findings] == [("bytes that are not UTF-8", 1)]
    assert "1 caption (first of '2')" in source.findings[0].text
    with tarfile.open(tar, "a") as more:
        more.addfile(more.getmember("1.txt"), io.BytesIO(b"a cat"))
    source = open_source(DataConfig(path=str(tar)), "all")
    assert list(source.captions or ())[1] == "a cat"
    assert "1 name (first '1.txt') more than once; the last one counts" in source.findings[0].text


def test_letters_with_accents_are_found_however_they_are_written(tmp_path: Path) -> None:
    names = [f"caf\u00e9 {k}.png" for k in range(3)]
    write_pictures(tmp_path / "photos", [unicodedata.normalize("NFD", name) for name in names])
    write_lines(tmp_path / "pairs.csv", ["file,caption", *(f"{name},a dog" for name in names)])
    source = open_source(DataConfig(path=str(tmp_path / "pairs.csv"), images=str(tmp_path / "photos")), "all")
    assert source.image_ids == names
    assert source.pictures is not None
    assert [source.pictures.read(k) for k in range(3)] == [picture(k) for k in range(3)]
