"""An index from Python: made by an encoder alone, asked by words, pictures in any form, vectors and pairs."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mispair as mp
from mispair.encoders import registry
from tests.colours import colour_encoder, write_colours


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "_REGISTERED", {"colours": lambda device, cells: colour_encoder()})
    write_colours(tmp_path, 24, 0)
    return tmp_path


def test_an_index_answers_whatever_shows_or_says_it(folder):
    index = mp.index(data=folder / "pairs.csv", images=folder / "photos", encoder="colours", out=folder / "index")
    assert len(repr(index)) < 200
    assert "24 pairs, 3 numbers a side, exact, encoder colours" in repr(index)
    assert index.search("a red square", k=2).hits[0].caption.startswith("a red")
    photo = folder / "photos/002.png"
    by_path = index.search(photo, k=3)
    assert all(hit.caption.startswith("a blue") for hit in by_path.hits)
    with Image.open(photo) as opened:
        assert index.search(opened, k=3) == by_path
    assert index.search(photo.read_bytes(), k=3) == mp.search(folder / "index", photo, k=3) == by_path
    vector = index.vectors["images"][2]
    by_vector = index.search(vector, k=3)
    assert by_vector == index.search(vector.tolist(), k=3)
    assert {hit.pair for hit in by_vector.hits} == {hit.pair for hit in by_path.hits}
    assert (index.nearest(index.vectors["images"][:5], "images", 1).rows[:, 0] % 8).tolist() == [0, 1, 2, 3, 4]
    assert index.search(pair=2, k=1, side="texts").hits[0].caption.startswith("a blue")
    mp.search(index, "blue", k=3, html=folder / "answers.html")
    assert "<title>blue" in (folder / "answers.html").read_text()
    assert index.to_parquet(folder / "vectors.parquet") == 24
    assert pq.read_metadata(folder / "vectors.parquet").num_rows == 24


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda index: index.search(), "ask by words"),
        (lambda index: index.search("red", pair=1), "ask by words"),
        (lambda index: index.search(index.folder / "none.png"), "none.png does not exist; give a picture file"),
        (lambda index: index.search(np.ones((2, 3))), "one vector of 3 numbers"),
        (lambda index: index.search("red", side="captions"), "no side 'captions' of an index; it is images or texts"),
        (lambda index: index.search({"a": 1}), "a string, a picture .* or a vector, got dict"),
        (lambda index: mp.index(encoder="colours"), "name the data and no run"),
        (lambda index: mp.index(), "say what to index with"),
        (lambda index: mp.index("run", images="photos"), "name it with data="),
    ],
)
def test_what_cannot_be_asked_costs_a_sentence(folder, ask, sentence):
    index = mp.index(data=folder / "pairs.csv", images=folder / "photos", encoder="colours", out=folder / "index")
    with pytest.raises(mp.InputError, match=sentence):
        ask(index)


def test_a_run_reads_pictures_in_any_form(folder):
    data = mp.embed(folder / "pairs.csv", images=folder / "photos", encoder="colours", workers=0)
    run = mp.train(data, epochs=1, out=folder / "run", quiet=True)
    photo = folder / "photos/001.png"
    expected = run.encode_images([photo]).vectors
    jpeg = io.BytesIO()
    with Image.open(photo) as opened:
        forms = (photo, str(photo), photo.read_bytes(), opened, [opened], [opened.convert("RGBA")])
        for form in forms:
            np.testing.assert_array_equal(run.encode_images(form).vectors, expected)
        turned = opened.rotate(90, expand=True)  # upright again by what its EXIF says
        exif = Image.Exif()
        exif[0x0112] = 6
        turned.save(jpeg, "PNG", exif=exif)
    with Image.open(jpeg) as opened:
        np.testing.assert_array_equal(run.encode_images(opened).vectors, run.encode_images(jpeg.getvalue()).vectors)
