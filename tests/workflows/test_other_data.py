"""Data a run was not trained on: read as its own was, alike from Python and from the command line."""

import json
import shutil

import pytest

import mispair as mp
from mispair.data import DataConfig
from mispair.workflows.other_data import like_own
from tests.encoders import hubs


def copied(photos, name):
    """The same pictures and captions at another place, the pictures beside the table; two captions each."""
    folder = photos / name
    shutil.copytree(photos / "photos", folder)
    heading, *lines = (photos / "pairs.csv").read_text().splitlines()
    (folder / "pairs.csv").write_text("\n".join([heading, *lines, *(f"{line} again" for line in lines)]) + "\n")
    return folder / "pairs.csv"


def test_sides_words_and_encoder_are_taken_over_and_nothing_else():
    own = DataConfig(
        path="a.csv",
        images="photos",
        sides=("film", "plot"),
        min_count=1,
        max_words=7,
        encoder="e",
        cells=True,
        limit=9,
    )
    read = like_own(own, DataConfig(path="b.csv", missing="skip"))
    assert (read.sides, read.min_count, read.max_words, read.encoder, read.cells) == (("film", "plot"), 1, 7, "e", True)
    assert (read.path, read.images, read.limit, read.missing) == ("b.csv", None, None, "skip")


def test_missing_pictures_are_left_out_as_the_run_left_them_out():
    own = DataConfig(path="a.csv", missing="skip")
    assert like_own(own, DataConfig(path="b.csv")).missing == "skip"
    assert like_own(own, DataConfig(path="b.csv", missing="refuse")).missing == "refuse"


def test_pictures_at_another_place_are_encoded_as_those_of_the_run(photos, mispair):
    run = mp.train(
        copied(photos, "own"), encoder="colours", method="plain", model="vse", epochs=1, batch_size=8,
        out=photos / "run", quiet=True,
    )  # fmt: skip
    other = copied(photos, "other")
    code, said = mispair("evaluate", photos / "run", "--data", other, "--split", "test", "--json")
    assert code == 0, said.err
    assert (
        mp.evaluate(run, data=other)["rsum"] == json.loads(said.out)["rsum"] == pytest.approx(mp.evaluate(run)["rsum"])
    )
    assert len(mp.audit(run, other, split="all", folds=0)) == 48


def test_towers_that_learned_read_the_pictures_of_other_data_too(photos):
    hubs.clip(photos / "clip")
    run = mp.train(
        copied(photos, "own"), encoder=str(photos / "clip"), tune="lora", method="plain", epochs=1, batch_size=8,
        out=photos / "run", quiet=True,
    )  # fmt: skip
    assert run.config.data.live
    assert mp.evaluate(run, data=copied(photos, "other"))["rsum"] == pytest.approx(mp.evaluate(run)["rsum"])


def test_vectors_by_another_encoder_are_refused_and_those_of_the_same_under_another_name_are_not(photos, mispair):
    data = copied(photos, "doubled"), "--images", photos / "doubled"
    hubs.clip(photos / "own")
    hubs.clip(photos / "other")
    preparation = photos / "other" / "preprocessor_config.json"
    preparation.write_text(json.dumps(json.loads(preparation.read_text()) | {"image_mean": [0.1, 0.1, 0.1]}))
    shutil.copytree(photos / "own", photos / "moved")
    for name in ("own", "other", "moved"):
        code, said = mispair("embed", *data, "--encoder", photos / name, "-o", photos / f"by-{name}")
        assert code == 0, said.err
    code, said = mispair(
        "train", photos / "by-own", "--method", "plain", "--epochs", 1, "--batch-size", 8, "-o", photos / "run"
    )
    assert code == 0, said.err
    place = "--shard", "1/1", "--statistics", photos / "s"
    for verb in (
        ("evaluate",),
        ("audit", "-o", photos / "audit", "--folds", 0),
        ("audit", *place),
        ("index", "-o", photos / "index"),
    ):
        asked = verb[0], photos / "run", *verb[1:], "--data"
        code, said = mispair(*asked, photos / "by-other")
        assert (code, said.err.count("\n")) == (2, 1), (verb, said)
        assert (
            f"by the encoder '{photos / 'other'}', and the run learned from vectors by '{photos / 'own'}'" in said.err
        )
        assert not [name for name in ("audit", "s", "index") if (photos / name).exists()]
    assert mispair("evaluate", photos / "run", "--data", photos / "by-moved")[0] == 0
    shutil.rmtree(photos / "by-own")
    assert mispair("evaluate", photos / "run", "--data", photos / "by-other")[0] == 2, "the encoder itself is asked"
    shutil.rmtree(photos / "own")
    assert mispair("evaluate", photos / "run", "--data", photos / "by-other")[0] == 0, "nobody can tell"
