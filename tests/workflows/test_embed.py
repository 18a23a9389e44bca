"""Raw pictures become features once, wherever they come from, and every verb reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mispair.config.choose import choose
from mispair.data import DataConfig, open_split
from mispair.data.picture_store import Pictures
from mispair.data.untrained import untrained_vectors
from mispair.encoders.own import FunctionEncoder
from mispair.encoders.protocol import EncoderOutput
from mispair.errors import InputError
from mispair.workflows import embed as module
from mispair.workflows.embed import Encoding, encode_data, needs_encoding, with_features
from mispair.workflows.embed_folder import embed
from mispair.workflows.raw_inputs import picture_features
from tests.colours import colour_encoder
from tests.data.samples import precomp
from tests.workflows.encodings import HOW, WORDS, text_values

pytestmark = pytest.mark.usefixtures("colours")


def test_features_are_joined_and_the_second_time_read(raw: DataConfig) -> None:
    first = encode_data(raw, HOW)
    assert (first.encoded, first.failures) == (96, ())
    assert encode_data(raw, HOW).encoded == 0
    data = open_split(first.config, "all")
    assert data.images.width == 3
    assert np.allclose(data.image_batch([1])[0][0, 0], np.array([30, 200, 40]) / 255, atol=0.05)
    assert first.config.path == raw.path, "fix must find the files the pictures came with"
    assert (first.config.encoder, first.config.cells) == ("colours", False)


def test_only_raw_data_is_encoded(raw: DataConfig, tmp_path: Path) -> None:
    assert needs_encoding(raw)
    assert with_features(with_features(raw, HOW), HOW).features is not None
    for config in (DataConfig(), DataConfig(path=str(precomp(tmp_path / "f")))):
        assert not needs_encoding(config)
        assert with_features(config, HOW) is config


def test_pictures_without_captions_are_refused_before_they_are_encoded(
    raw: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = DataConfig(path=str(raw.images))
    assert encode_data(alone, WORDS).encoded == 96, "without captions they can be searched"
    monkeypatch.setattr(module, "encode_pictures", lambda *_, **__: pytest.fail("hours of encoding for nothing"))
    for how in (HOW, Encoding("colours", texts=True, workers=0)):
        with pytest.raises(InputError, match="holds pictures and no captions"):
            encode_data(alone, how)


def test_captions_are_read_by_the_encoder_however_many_there_are(raw: DataConfig, tmp_path: Path) -> None:
    heading, *rows = (tmp_path / "pairs.csv").read_text().splitlines()
    (tmp_path / "pairs.csv").write_text("\n".join([heading, *(rows * 525)]) + "\n")
    assert encode_data(raw, WORDS).config.second is None
    assert choose(encode_data(raw, HOW).config).values["model"]["name"] == "dual"
    embed(raw, HOW, tmp_path / "features")
    before = with_features(DataConfig(path=str(tmp_path / "features")))
    assert len(open_split(before, "all")) == 50_400
    assert choose(before).values["model"]["name"] == "dual"


def test_a_configuration_that_names_an_embedded_folder_knows_its_encoder(raw: DataConfig, tmp_path: Path) -> None:
    import mispair as mp

    embed(raw, HOW, tmp_path / "f")
    text = f"data: {{path: {tmp_path / 'f'}, second: {tmp_path / 'f/texts.npy'}}}\nmodel: {{name: dual}}\n"
    (tmp_path / "c.yaml").write_text(text + "train: {epochs: 2, batch_size: 8}\nmethod: {warmup_epochs: 1}\n")
    run = mp.train(config=tmp_path / "c.yaml", out=tmp_path / "run", quiet=True)
    assert (run.config.data.encoder, run.config.data.joint) == ("colours", str(tmp_path / "f/joint.npy"))
    assert run.score([tmp_path / "photos/008.png"], ["a red square"]).shape == (1, 1)
    (tmp_path / "w.yaml").write_text(f"data: {{path: {tmp_path / 'f'}, min_count: 1}}\ntrain: {{epochs: 1}}\n")
    words = mp.train(config=tmp_path / "w.yaml", batch_size=8, out=tmp_path / "words", quiet=True)
    assert (words.config.model.name, words.config.data.second) == ("vse", None), "a file that says words means words"


def test_a_run_on_vectors_reads_captions_and_pictures(raw: DataConfig, tmp_path: Path) -> None:
    import mispair as mp

    run = mp.train(encode_data(raw, HOW).config, epochs=4, out=tmp_path / "run", quiet=True)
    assert run.vocabulary is None
    reads = run.encode_texts(["a red square", "a blue square"])
    assert len(reads.vectors) == 2
    seen = picture_features(run.config.data, [(tmp_path / "photos/008.png").read_bytes()])
    assert np.allclose(seen[0], np.array([220, 30, 30]) / 255, atol=0.05)
    assert run.score(seen, reads).shape == (1, 2)
    by_path = run.encode_images([tmp_path / "photos/008.png"])
    np.testing.assert_array_equal(by_path.vectors, run.encode_images(seen).vectors)
    with pytest.raises(InputError, match="empty file"):
        picture_features(run.config.data, [b""])
    with pytest.raises(InputError, match="no.png"):
        run.encode_images([str(tmp_path / "no.png")])


def test_texts_as_vectors(raw: DataConfig) -> None:
    done = encode_data(raw, Encoding("colours", texts=True, workers=0))
    data = open_split(done.config, "train")
    assert data.vocabulary is None
    assert data.table.captions is not None
    captions = list(data.table.captions)
    assert np.allclose(data.text_batch(np.arange(len(captions)))[0][:, 0], text_values(captions))


def test_pictures_that_fail_are_refused_or_left_out(raw: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "photos/005.png").write_bytes(b"")
    (tmp_path / "photos/009.png").unlink()
    with pytest.raises(InputError, match=r"line 11: 1 picture cannot be had \(first '009.png': missing\)"):
        encode_data(raw, HOW)
    (tmp_path / "photos/009.png").write_bytes(b"<html>")
    with pytest.raises(InputError, match=r"2 pictures cannot be decoded \(005.png: empty file.*--missing skip"):
        encode_data(raw, HOW)
    (tmp_path / "photos/009.png").unlink()
    skipping = raw.model_copy(update={"missing": "skip"})
    done = encode_data(skipping, Encoding("colours", texts=True, workers=0))
    assert [(failure.name, failure.reason) for failure in done.failures] == [
        ("005.png", "empty file"), ("009.png", "missing"),
    ]  # fmt: skip
    data = open_split(done.config, "all")
    assert len(data) == 94
    captions = [(data.table.captions or ())[k] for k in range(94)]
    assert np.allclose(data.text_batch(np.arange(94))[0][:, 0], text_values(captions)), "texts stay with their pictures"
    with pytest.raises(InputError, match="has no row in|have no row in"):
        open_split(done.config.model_copy(update={"missing": "refuse"}), "all")


def test_a_broken_picture_is_refused_before_any_is_encoded(
    raw: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos/095.png").write_bytes(b"<html>")  # the last
    encoded: list[int] = []
    whole = FunctionEncoder.encode_images

    def count(self: FunctionEncoder, prepared: np.ndarray, outputs: tuple[str, ...]) -> object:
        encoded.append(len(prepared))
        return whole(self, prepared, outputs)

    monkeypatch.setattr(FunctionEncoder, "encode_images", count)
    told: list[str] = []
    with pytest.raises(InputError, match=r"1 picture cannot be decoded \(095.png: .*--missing skip"):
        encode_data(raw, HOW, lambda what, done, total: told.append(what))
    assert not encoded
    assert set(told) == {"looking at pictures"}
    told.clear()
    encode_data(raw.model_copy(update={"missing": "skip"}), HOW, lambda what, done, total: told.append(what))
    assert sum(encoded) == 95
    assert "looking at pictures" not in told


def test_pictures_in_the_cache_are_read_once_a_command(raw: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    whole = Pictures.read

    def read(self: Pictures, row: int) -> object:
        reads.append(self.names[row])
        return whole(self, row)

    monkeypatch.setattr(Pictures, "read", read)
    encode_data(raw, HOW)
    first = len(reads)
    encode_data(raw, HOW)
    assert (first, len(reads) - first) == (192, 96)  # to look at and to encode; to look whether it is the same


def test_addresses_on_the_web_are_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("url,caption\nhttps://example.org/a.jpg,a dog\n")
    with pytest.raises(InputError, match="pictures on the web, which are not fetched; download them with img2dataset"):
        encode_data(DataConfig(path=str(tmp_path / "pairs.csv")), HOW)


def test_cells_bring_the_vectors_along(raw: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an audit without training needs costs no second pass of the network."""

    class Cells(FunctionEncoder):
        def encode_images(self, prepared: np.ndarray, outputs: Sequence[str]) -> dict[str, EncoderOutput]:
            vectors = super().encode_images(prepared, ("vector",))["vector"].values
            made = {"vector": vectors, "cells": np.repeat(vectors[:, None], 4, 1)}
            return {output: EncoderOutput(made[output]) for output in outputs}

    one = colour_encoder()
    encoder = Cells("colours", "1", images=one._images, texts=one._texts, joint=True, side=8)
    encoder.images = {"vector": (3,), "cells": (4, 3)}
    assert encode_data(raw, Encoding(encoder, cells=True, workers=0)).encoded == 96
    assert encode_data(raw, Encoding(encoder, workers=0)).encoded == 0


def test_nothing_that_can_be_decoded(raw: DataConfig, tmp_path: Path) -> None:
    for file in (tmp_path / "photos").iterdir():
        file.write_bytes(b"no picture")
    with pytest.raises(InputError, match="none of 96 pictures can be decoded"):
        encode_data(raw.model_copy(update={"missing": "skip"}), HOW)


def test_changed_pictures_are_encoded_again(raw: DataConfig, tmp_path: Path) -> None:
    before = encode_data(raw, HOW).config.features
    (tmp_path / "photos/001.png").write_bytes((tmp_path / "photos/002.png").read_bytes())
    after = encode_data(raw, HOW)
    assert after.encoded == 0, "that file is known already"
    assert after.config.features != before
    rows = np.load(str(after.config.features))
    assert np.array_equal(rows[1], rows[2])


def test_pictures_among_the_texts_are_at_hand_where_pairs_are_judged(raw: DataConfig, tmp_path: Path) -> None:
    config = with_features(raw, HOW)
    every, some = open_split(config, "all"), open_split(config.model_copy(update={"limit": 7}), "all")
    assert every.joint is not None
    assert some.joint is not None
    assert np.allclose(every.joint.take(np.arange(96))[0], every.image_batch(np.arange(96))[0])  # colours are colours
    assert np.array_equal(some.joint.take(np.arange(7))[0], every.joint.take(np.arange(7))[0])
    known = untrained_vectors(every)
    assert known is not None
    assert known.joint is not None
    assert len(known.joint) == 96
    assert open_split(with_features(raw, WORDS), "all").joint is None, "words have no space of the encoder's"
    np.save(tmp_path / "other.npy", np.zeros((95, 3), np.float32))
    with pytest.raises(InputError, match="95 rows 3 wide, but there are 96 rows"):
        open_split(config.model_copy(update={"joint": str(tmp_path / "other.npy")}), "all")


def test_a_folder_of_features_is_read_as_the_pictures_it_came_from(raw: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "features"
    embed(raw, HOW, out)
    read = with_features(DataConfig(path=str(out)))
    assert (read.encoder, read.cells) == ("colours", False)
    assert (read.second, read.joint) == (str(out / "texts.npy"), str(out / "joint.npy"))
    assert choose(read).values["model"]["name"] == "dual"
    words = with_features(DataConfig(path=str(out)), WORDS)
    assert (words.second, words.joint) == (None, None)
    np.save(tmp_path / "mine.npy", np.zeros((96, 3), np.float32))
    own = with_features(DataConfig(path=str(out), second=str(tmp_path / "mine.npy")))
    assert (own.second, own.joint) == (str(tmp_path / "mine.npy"), None)
    for damaged in ('{"encoder": 7}', "[" * 100_000):
        (out / "encoder.json").write_text(damaged)
        with pytest.raises(InputError, match="damaged; embed the data again"):
            with_features(DataConfig(path=str(out)))
