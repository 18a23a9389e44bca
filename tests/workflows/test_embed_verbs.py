"""Pictures through the verbs: embedded, judged, fixed and trained on from the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mispair.data import DataConfig, open_split
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.encoders import registry
from mispair.errors import InputError
from mispair.workflows import audit_pictures as audit_pictures_module
from mispair.workflows.audit_pictures import audit_pictures
from mispair.workflows.embed import encode_data, encode_jointly
from mispair.workflows.embed_folder import embed
from mispair.workflows.quick_audit import quick_audit_files
from tests.colours import colour_encoder, write_colours
from tests.data.picture_samples import write_tar
from tests.data.samples import features, run
from tests.workflows.encodings import HOW, WORDS, text_values

pytestmark = pytest.mark.usefixtures("colours")


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
    assert np.allclose(every.text_batch(np.arange(94))[0][:, 0], text_values(captions))
    with pytest.raises(InputError, match="exists already"):
        embed(raw, HOW, out)
    assert not list(tmp_path.glob(".features.*")), "nothing half-written is left"


def test_two_arrays_of_one_folder_are_paired_as_its_table_says(raw: DataConfig, tmp_path: Path) -> None:
    table, out = Path(raw.path), tmp_path / "features"
    heading, *lines = table.read_text().splitlines()
    shown = [(lines * 2)[k] for k in np.random.default_rng(0).permutation(2 * len(lines))]  # no image beside itself
    table.write_text("\n".join([heading, *shown]) + "\n")
    embed(raw, HOW, out)
    verdicts = quick_audit_files(out / "joint.npy", out / "texts.npy")
    rows = [tuple(line.split(",")) for line in shown]
    judged = zip(*(verdicts.table[name].to_pylist() for name in ("image_id", "caption")), strict=True)
    assert list(judged) == rows
    assert verdicts.facts.data["path"] == str(out / "pairs.parquet")
    arrays = tmp_path / "texts.npy"
    arrays.write_bytes((out / "texts.npy").read_bytes())
    assert quick_audit_files(out / "joint.npy", arrays).facts.data["format"] == "arrays", "one of them is elsewhere"


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
    pattern = tmp_path / "shards/{train,test}.tar"
    ran = run(monkeypatch, capsys, "audit", pattern, "--encoder", "colours", "-o", tmp_path / "by-pattern")
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


def test_a_damaged_list_of_names_in_the_cache_is_made_again(raw: DataConfig, tmp_path: Path) -> None:
    before = encode_jointly(raw, HOW).config
    assert before.features is not None
    names = Path(before.features).with_name("joint_ids.txt")
    good = names.read_bytes()
    EmbeddedFolder(names.parent).ids_file.write_bytes(b"\xff\xfe\xc4")
    assert encode_jointly(raw, HOW).config == before
    assert names.read_bytes() == good


def test_data_that_was_moved_with_its_pictures_is_fixed_and_says_where_they_are(
    raw: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = ("--images", tmp_path / "photos", "--encoder", "colours", "--workers", 0)
    assert run(monkeypatch, capsys, "audit", raw.path, *pictures, "-o", tmp_path / "audit").code == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "photos").rename(moved / "shown")
    Path(raw.path).rename(moved / "pairs.csv")
    where = ("--data", moved / "pairs.csv", "--images", moved / "shown")
    ran = run(monkeypatch, capsys, "fix", tmp_path / "audit", "--action", "drop", *where, "-o", tmp_path / "fixed")
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert f"mispair train {tmp_path}/fixed/pairs.csv --images {moved}/shown" in said
    ran = run(monkeypatch, capsys, "fix", tmp_path / "audit", "--action", "drop", *where[2:], "-o", tmp_path / "again")
    assert ran.code == 2
    assert "name it with --data" in ran.err
