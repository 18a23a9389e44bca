"""Raw pictures become features once, wherever they come from, and every verb reads them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mispair.config.choose import choose
from mispair.data import DataConfig, open_split
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.picture_store import Pictures
from mispair.data.untrained import untrained_vectors
from mispair.encoders import registry
from mispair.encoders.own import FunctionEncoder
from mispair.encoders.protocol import EncoderOutput
from mispair.errors import InputError
from mispair.workflows import audit_pictures as audit_pictures_module
from mispair.workflows import embed as module
from mispair.workflows.audit_pictures import audit_pictures
from mispair.workflows.embed import Encoding, encode_data, needs_encoding, with_features
from mispair.workflows.embed_folder import embed
from mispair.workflows.raw_inputs import picture_features
from tests.colours import colour_encoder, write_colours
from tests.data.picture_samples import write_tar
from tests.data.samples import features, precomp, run

HOW = Encoding("colours", workers=0)
WORDS = Encoding("colours", texts=False, workers=0)


@pytest.fixture(autouse=True)
def _encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def raw(tmp_path: Path) -> DataConfig:
    return DataConfig(path=str(write_colours(tmp_path)), images=str(tmp_path / "photos"))


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


def test_few_captions_are_read_by_the_encoder_and_many_as_words(
    raw: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encode_data(raw, HOW).config.second is not None
    assert encode_data(raw, Encoding("colours", texts=False, workers=0)).config.second is None
    monkeypatch.setattr(module, "FEW_PAIRS", 96)
    assert encode_data(raw, HOW).config.second is None


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
    assert np.allclose(data.text_batch(np.arange(len(captions)))[0][:, 0], _expected(captions))


def _expected(captions: list[str]) -> np.ndarray:
    return colour_encoder().encode_texts(captions, ("vector",))["vector"].values


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
    assert np.allclose(data.text_batch(np.arange(94))[0][:, 0], _expected(captions)), "texts stay with their pictures"
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


def test_embed_writes_a_folder_every_verb_reads(raw: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "photos/003.png").unlink()
    (tmp_path / "photos/=003.png").write_bytes(b"GIF8 broken")
    table = tmp_path / "pairs.csv"
    table.write_text(table.read_text().replace("003.png", "=003.png"))
    (tmp_path / "photos/050.png").unlink()
    (tmp_path / "photos/050.png").symlink_to("/etc/hostname")
    out = tmp_path / "features"
    done = embed(raw.model_copy(update={"missing": "skip"}), HOW, out)
    names = [
        "encoder.json",
        "failed.csv",
        "features.npy",
        "features_ids.txt",
        "joint.npy",
        "pairs.parquet",
        "texts.npy",
    ]
    assert sorted(file.name for file in out.iterdir()) == names
    assert json.loads((out / "encoder.json").read_text())["encoder"] == "colours"
    with (out / "failed.csv").open() as stream:
        failed = [(row["row"], row["name"], row["reason"].partition(" ")[0]) for row in csv.DictReader(stream)]
    assert failed == [("3", "'=003.png", "damaged"), ("", "050.png", "lies")]
    about = json.loads((out / "encoder.json").read_text())
    assert (about["pictures"], about["failed"]) == (96, 2)
    data = open_split(DataConfig(path=str(out), missing="skip"), "train")
    assert done.config.path == str(out)
    same = open_split(encode_data(raw.model_copy(update={"missing": "skip"}), WORDS).config, "train")
    assert list(data.table.captions or ()) == list(same.table.captions or ())
    assert np.array_equal(data.image_batch(np.arange(9))[0], same.image_batch(np.arange(9))[0])
    every = open_split(DataConfig(path=str(out), second=str(out / "texts.npy")), "all")
    assert len(every) == 94, "pairs without a picture are in none of the files, so nobody need skip them again"
    captions = [(every.table.captions or ())[k] for k in range(94)]
    assert np.allclose(every.text_batch(np.arange(94))[0][:, 0], _expected(captions))
    with pytest.raises(InputError, match="exists already"):
        embed(raw, HOW, out)
    assert not list(tmp_path.glob(".features.*")), "nothing half-written is left"


def test_an_encoder_without_a_common_space_cannot_judge(raw: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(**options: object) -> object:
        made = colour_encoder()
        made.joint = False
        return made

    monkeypatch.setitem(registry._REGISTERED, "colours", apart)
    with pytest.raises(InputError, match="no common space.*--train"):
        audit_pictures(raw, HOW)


def test_a_joint_encoder_judges_without_training(raw: DataConfig) -> None:
    verdicts = audit_pictures(raw, HOW)
    worst = {verdict.pair for verdict in verdicts.worst(8)}
    assert len(worst & set(range(8))) >= 6
    assert len(verdicts) == 96


def test_an_audit_says_what_it_left_out_and_is_mended_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_colours(tmp_path)
    (tmp_path / "photos/005.png").write_bytes(b"")
    (tmp_path / "photos/009.png").unlink()
    monkeypatch.chdir(tmp_path)
    pictures = ("--images", "photos", "--encoder", "colours", "--workers", 0, "--missing", "skip")
    ran = run(monkeypatch, capsys, "audit", "pairs.csv", *pictures, "-o", tmp_path / "audit")
    assert "2 pairs were left out and not judged: the pictures cannot be used (1 empty file, 1 missing)." in ran.out
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ran = run(monkeypatch, capsys, "fix", tmp_path / "audit", "--action", "drop", "-o", tmp_path / "fixed")
    assert ran.code == 0, ran.err


def test_the_command_line_from_pictures_to_a_fixed_table(
    raw: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = ("--images", tmp_path / "photos", "--encoder", "colours", "--workers", 0)
    ran = run(monkeypatch, capsys, "audit", raw.path, *pictures, "-o", tmp_path / "audit")
    assert ran.code == 0, ran.err
    assert "nothing is trained" in ran.err
    ran = run(monkeypatch, capsys, "fix", tmp_path / "audit", "--action", "drop", "-o", tmp_path / "fixed")
    assert ran.code == 0, ran.err
    kept = (tmp_path / "fixed/pairs.csv").read_text().splitlines()
    assert kept[0] == "filepath,title"
    assert 60 <= len(kept) < 97


def test_the_command_line_trains_evaluates_and_judges_other_pictures(
    raw: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = ("--images", tmp_path / "photos", "--encoder", "colours", "--workers", 0)
    out = tmp_path / "run"
    ran = run(monkeypatch, capsys, "train", raw.path, *pictures, "--epochs", 3, "-o", out)
    assert ran.code == 0, ran.err
    other = write_colours(tmp_path / "other", 48, 4)
    ran = run(
        monkeypatch, capsys, "evaluate", out, "--data", other, "--images", tmp_path / "other/photos", "--split", "all"
    )
    assert ran.code == 0, ran.err
    ran = run(monkeypatch, capsys, "train", tmp_path / "x.npy", "--encoder", "colours", "-o", tmp_path / "r2")
    assert ran.code == 2


def test_features_and_an_encoder_at_once_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_colours(tmp_path, 8, 0)
    np.save(tmp_path / "pairs.npy", features(8))
    ran = run(monkeypatch, capsys, "train", tmp_path / "pairs.csv", "--encoder", "colours", "-o", tmp_path / "run")
    assert ran.code == 2
    assert "brings its features" in ran.err
    assert not (tmp_path / "run").exists()


def test_tar_shards_are_judged_fixed_and_trained_on(
    raw: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path(raw.path).read_text().splitlines()[1:]
    for number, split in enumerate(("train", "test")):
        members: dict[str, bytes] = {}
        for k in range(48):  # the same keys in both shards: a key alone does not say which picture is meant
            name, caption = lines[48 * number + k].split(",")
            members |= {f"{k:04d}.png": (tmp_path / "photos" / name).read_bytes(), f"{k:04d}.txt": caption.encode()}
        write_tar(tmp_path / f"shards/{split}.tar", members)
    audit, fixed = tmp_path / "audit", tmp_path / "fixed"
    ran = run(monkeypatch, capsys, "audit", tmp_path / "shards", "--encoder", "colours", "--workers", 0, "-o", audit)
    assert ran.code == 0, ran.err
    ran = run(monkeypatch, capsys, "fix", audit, "--action", "drop", "-o", fixed)
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split()).split("mispair train ")[1].split(" Back again")[0]
    assert said == f"{fixed} --encoder colours"
    quick = ("--epochs", 1, "--workers", 0, "-o", tmp_path / "run")
    assert run(monkeypatch, capsys, "train", *said.split(), *quick).code == 0
    config = DataConfig(path=str(fixed))
    given = encode_data(DataConfig(path=str(tmp_path / "shards")), HOW).config
    before, after = open_split(given, "all"), open_split(encode_data(config, HOW).config, "all")
    assert 60 <= len(after) < 96
    rows = {name: k for k, name in enumerate(before.table.image_ids or ())}
    for k, name in enumerate(after.table.image_ids or ()):
        assert np.array_equal(after.image_batch([k])[0], before.image_batch([rows[name]])[0])
    assert sorted(path.name for path in fixed.iterdir()) == ["fix.patch", "test.tar", "train.tar"]


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


def test_without_training_which_pictures_are_alike_counts_too(raw: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    files = audit_pictures_module.quick_audit_files
    monkeypatch.setattr(
        audit_pictures_module, "quick_audit_files", lambda *a, **k: asked.append(k["seen"]) or files(*a, **k)
    )
    audit_pictures(raw, HOW)
    assert asked[0].name == "features.npy"
    assert np.load(asked[0]).shape == (96, 3)


def test_a_folder_of_features_is_judged_as_its_pictures_are(raw: DataConfig, tmp_path: Path) -> None:
    embed(raw, HOW, tmp_path / "features")
    folder, pictures = audit_pictures(DataConfig(path=str(tmp_path / "features"))), audit_pictures(raw, HOW)
    assert np.array_equal(folder.p_mismatch, pictures.p_mismatch)
    assert folder.table["image_id"].to_pylist() == pictures.table["image_id"].to_pylist()
    folder.fix("drop", tmp_path / "clean")
    files = EmbeddedFolder(tmp_path / "features")
    clean = DataConfig(path=str(tmp_path / "clean"), features=str(files.features_file), ids=str(files.ids_file))
    assert len(open_split(clean, "all")) == 96 - int(folder.is_mismatch_issue.sum())
