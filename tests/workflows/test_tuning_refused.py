"""What keeps towers from learning: values that do not fit, other towers than a run's own, pictures that are broken."""

from __future__ import annotations

import json
import shutil

import pytest

from mispair.config.load import load_config
from mispair.data import open_split
from mispair.data.prepared_pictures import PreparedPictures
from mispair.errors import InputError
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.workflows.tower_runs import configured

REFUSED = {
    "features alone": (["model.name=dual", "model.tune=full"], "features alone"),
    "no such layer": (["model.lora.targets=[k_proj, nowhere]"], "no linear layer 'nowhere'"),
    "other towers": (["model.encoder=another"], "are not the towers"),
    "regions": (["train.drop_regions=0.5"], "use train.crop"),
    "no towers": (["data.encoder=basic"], "no towers that can be trained"),
    "no pictures": (["data.images=null", "data.path={hub}/none.csv"], "no pictures that were found.* --tune head"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_tuned_is_refused_in_one_sentence_before_pictures_are_decoded(hub, tmp_path, monkeypatch, what):
    monkeypatch.setattr(PreparedPictures, "examine", lambda *_: pytest.fail("an hour of decoding for nothing"))
    sets, sentence = REFUSED[what]
    sets = [one.format(hub=tmp_path) for one in sets]
    (tmp_path / "none.csv").write_text("filepath,title,split\n" + "a.png,a dog,train\nb.png,a cat,dev\n" * 20)

    def begin():
        config = load_config(sets=sets) if what == "features alone" else configured(hub, "clip", *sets)
        train(config, tmp_path / "run")

    with pytest.raises(InputError, match=sentence) as refused:
        begin()
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_weights_that_are_all_zero_are_refused_before_training(hub, tmp_path):
    rows = (hub / "pairs.csv").read_text().splitlines()
    (tmp_path / "pairs.csv").write_text("\n".join([f"{rows[0]},trust", *(f"{row},0" for row in rows[1:])]))
    with pytest.raises(InputError, match="the weights 'trust' of all 24 training pairs are 0"):
        train(configured(hub, "clip", f"data.path={tmp_path / 'pairs.csv'}", "data.weights=trust"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_whose_encoder_changed_is_refused(hub, tmp_path):
    shutil.copytree(hub / "clip", tmp_path / "clip")
    config = configured(hub, "clip", f"data.encoder={tmp_path / 'clip'}")
    train(config, tmp_path / "run", summarize=False)
    about = json.loads((tmp_path / "clip" / "preprocessor_config.json").read_text())
    (tmp_path / "clip" / "preprocessor_config.json").write_text(json.dumps({**about, "image_mean": [0.1, 0.1, 0.1]}))
    with pytest.raises(InputError, match="trained on other towers"):
        load_run(tmp_path / "run")


def test_a_broken_picture_is_named_before_training(hub, tmp_path):
    shutil.copytree(hub / "pictures", tmp_path / "pictures")
    (tmp_path / "pictures" / "3.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"3\.png"):
        train(configured(hub, "clip", f"data.images={tmp_path / 'pictures'}"), tmp_path / "run")


def test_broken_and_missing_pictures_are_left_out_where_that_is_asked_for_and_listed(hub, tmp_path):
    shutil.copytree(hub / "pictures", tmp_path / "pictures")
    (tmp_path / "pictures" / "3.png").write_bytes(b"no picture")
    (tmp_path / "pictures" / "30.png").unlink()
    config = configured(hub, "clip", f"data.images={tmp_path / 'pictures'}", "data.missing=skip", "data.noise.rate=0.5")
    training = train(config, tmp_path / "run").training
    assert (len(training.data), len(training.data.images), len(training.test)) == (23, 23, 8)
    assert any("left out: " in note and "1 picture cannot be decoded (3.png: " in note for note in training.notes)
    listed = (tmp_path / "run" / "failed.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in listed] == ["name", "3.png", "30.png"]
    with pytest.raises(InputError, match=r"pairs\.csv: train: 1 picture .*3\.png.*; replace.* with --missing skip"):
        open_split(config.data.model_copy(update={"images": str(tmp_path / "pictures"), "missing": "refuse"}), "train")


def test_pictures_that_are_all_broken_are_refused(hub, tmp_path):
    (tmp_path / "pictures").mkdir()
    for k in range(40):
        (tmp_path / "pictures" / f"{k}.png").write_bytes(b"no picture")
    config = configured(hub, "clip", f"data.images={tmp_path / 'pictures'}", "data.missing=skip")
    with pytest.raises(InputError, match=r"24 pictures cannot be decoded .* and no other is left"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
