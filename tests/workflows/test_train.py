"""One training in one folder: who may work there, what is known before the first step, where a killed run goes on."""

import fcntl
import json
import os
import shutil
import signal

import numpy as np
import pytest

from mispair.config.load import load_config
from mispair.errors import InputError
from mispair.runtime.run_folder import RunFolder
from mispair.workflows import train as module
from mispair.workflows.train import train
from mispair.workflows.trained_run import load_run
from tests.data.samples import precomp
from tests.synthetic import stopping_engine, tiny_config

SHORT = ("method.name=plain", "train.epochs=2")
SPLITS = ("train", "dev", "test")
L2RM = (
    "data.noise.rate=0.5",
    "train.epochs=3",
    "train.lr=0.01",
    "method.split.mixture=gaussian",
    "method.siblings.when=never",
)


def folder_of_data(folder, images=40):
    return precomp(folder, images, splits=SPLITS)


def short_config(*sets):
    return load_config(
        sets=[
            "data.scenes.pictures=120", "data.min_count=1", "model.embed=16", "model.word_dim=8", "train.batch_size=32",
            *SHORT, *sets,
        ]
    )  # fmt: skip


def test_on_epoch_hears_every_epoch_before_it_is_saved(tmp_path):
    heard = []
    run = RunFolder(tmp_path / "run")
    train(short_config(), run.path, on_epoch=lambda report: heard.append((report, run.resumable)))
    assert [(report.epoch, report.epochs, report.last) for report, _ in heard] == [(0, 2, False), (1, 2, True)]
    assert [saved for _, saved in heard] == [False, True]  # the save of the epoch before
    assert heard[0][0].dev == run.epochs()[0]["dev"]


def test_patience_makes_an_earlier_epoch_the_last(tmp_path):
    last = []
    config = short_config("train.epochs=20", "train.patience=1", "train.lr=1e-9")
    train(config, tmp_path / "run", on_epoch=lambda report: last.append(report.last), summarize=False)
    assert len(last) < 20
    assert last == [False] * (len(last) - 1) + [True]


def test_a_folder_in_use_is_refused_with_who_uses_it(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / ".lock").open("w") as held:
        held.write("mispair\x1b train (process 77 on elsewhere)")  # whatever a terminal would obey is left out
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"in use by mispair train \(process 77 on elsewhere\)"):
            train(short_config(), folder)
        assert [file.name for file in folder.iterdir()] == [".lock"]
    train(short_config(), folder, summarize=False)  # the system released it


def test_the_lock_is_held_while_training(tmp_path):
    folder = tmp_path / "run"

    def second(report):
        with pytest.raises(InputError, match=rf"process {os.getpid()} "):
            train(short_config(), folder, resume=True)

    train(short_config(), folder, on_epoch=second, summarize=False)


def test_killed_before_the_first_save_resume_starts_over(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(ZeroDivisionError):
        train(short_config(), folder, on_epoch=lambda report: 1 / 0)
    run = RunFolder(folder)
    assert run.begun
    assert not run.resumable
    with pytest.raises(InputError, match="go on with --resume"):
        train(short_config(), folder)
    result = train(short_config(), folder, resume=True)
    assert result.summary["dev"]
    assert [line["epoch"] for line in run.epochs()] == [0, 1]


@pytest.mark.parametrize(
    ("instead", "said"), [(os.mkdir, "is damaged"), (os.mkfifo, "is damaged"), (None, "is finished and kept no state")]
)
def test_a_finished_run_without_its_state_is_not_begun_again(tmp_path, instead, said):
    run = train(short_config("train.epochs=1"), tmp_path / "run").folder
    kept = run.model_file.read_bytes()
    run.state_file.unlink()
    if instead is not None:
        instead(run.state_file)
    with pytest.raises(InputError, match=said):
        train(short_config("train.epochs=1"), run.path, resume=True)
    assert run.model_file.read_bytes() == kept


def test_a_run_refused_before_its_first_save_leaves_nothing(tmp_path, monkeypatch):
    def refused(self, *arguments):
        raise InputError("losses must be finite")

    monkeypatch.setattr("mispair.runtime.trainer.Trainer._validate", refused)
    with pytest.raises(InputError, match="losses must be finite"):
        train(short_config(), tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sets", "sentence"),
    [
        (("data.limit=3",), "cannot be told apart in fewer than 20"),
        (("model.embed=1000000000",), "needs .* of memory"),
        (("model.embed=1000000000000000000",), "too large for any memory"),
        (("train.batch_size=4000",), "fewer than one batch"),
    ],
)
def test_what_is_known_before_the_first_step(tmp_path, sets, sentence):
    with pytest.raises(InputError, match=sentence):
        train(short_config(*sets), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_broken_features_are_named_before_the_first_step(tmp_path):
    data = tmp_path / "data"
    folder_of_data(data, images=40)
    features = np.load(data / "train_ims.npy")
    features[7] = np.nan
    np.save(data / "train_ims.npy", features)
    config = short_config(f"data.path={data}", "train.batch_size=8")
    with pytest.raises(InputError, match=r"train_ims.npy: 1 row \(7\) holds NaN"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_where_a_run_was_killed_after_its_last_epoch_does_not_show(tmp_path, monkeypatch):
    config = tiny_config(*L2RM)
    whole = train(config, tmp_path / "whole").folder
    assert json.loads(whole.alignment_file.read_text())["rematching"] is not None

    def killed(training):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "finish", killed)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed")
    monkeypatch.undo()
    again = train(config, tmp_path / "killed", resume=True).folder
    assert again.alignment_file.read_bytes() == whole.alignment_file.read_bytes()
    assert again.summary["rematching"] == whole.summary["rematching"]
    assert again.model_file.read_bytes() == whole.model_file.read_bytes()


# ------------------------------------------------------------------------------------------------- data and places


@pytest.fixture
def trained(tmp_path):
    """Data and a run on it, in one folder that can be moved; the run was started from there, by relative paths."""
    home = tmp_path / "home"
    folder_of_data(home / "data")
    before = os.getcwd()
    os.chdir(home)
    try:
        result = train(short_config("data.path=data", "train.batch_size=8"), home / "runs" / "a")
    finally:
        os.chdir(before)
    return home, result.summary["dev"]["rsum"]


def test_a_run_works_from_any_directory(trained, monkeypatch):
    home, rsum = trained
    monkeypatch.chdir(home / "runs" / "a")
    run = load_run(".")
    assert run.evaluate("dev")["rsum"] == pytest.approx(rsum)


def test_a_run_works_after_it_was_moved_with_its_data(trained, tmp_path):
    home, rsum = trained
    home.rename(tmp_path / "new")
    assert load_run(tmp_path / "new" / "runs" / "a").evaluate("dev")["rsum"] == pytest.approx(rsum)


def test_a_run_works_after_it_was_moved_alone(trained, tmp_path):
    home, rsum = trained
    shutil.move(home / "runs" / "a", tmp_path / "b")
    assert load_run(tmp_path / "b").evaluate("dev")["rsum"] == pytest.approx(rsum)


def stopped(tmp_path, data):
    config = short_config(f"data.path={data}", "train.batch_size=8")
    assert train(config, tmp_path / "run", engine=stopping_engine(config.engine, 3)).stopped
    return config


@pytest.mark.parametrize("file", [f"{split}_{what}" for split in SPLITS for what in ("ims.npy", "caps.txt")])
def test_resuming_notices_any_change_of_the_data(tmp_path, file):
    data = tmp_path / "data"
    folder_of_data(data, images=200)
    config = stopped(tmp_path, data)
    if file.endswith(".npy"):
        features = np.load(data / file)
        features[101 % len(features)] += 0.25
        np.save(data / file, features)
    else:
        lines = (data / file).read_text().splitlines()
        lines[3], lines[4] = "another caption altogether", lines[3]
        (data / file).write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"what it was started with has changed \(.*data"):
        train(config, tmp_path / "run", resume=True)


def test_a_broken_test_split_is_known_before_the_first_step(tmp_path):
    data = folder_of_data(tmp_path / "data")
    features = np.load(data / "test_ims.npy")
    features[7] = np.nan
    np.save(data / "test_ims.npy", features)
    with pytest.raises(InputError, match=r"test_ims.npy: 1 row \(7\)"):
        train(short_config(f"data.path={data}", "train.batch_size=8"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_resuming_notices_other_words_before_it_trains(tmp_path):
    data = tmp_path / "data"
    folder_of_data(data, images=40)
    config = stopped(tmp_path, data)
    file = tmp_path / "run" / "vocabulary.json"
    given = file.read_text()
    exchange_words(file)
    with pytest.raises(InputError, match="is not the vocabulary this run was started with"):
        train(config, tmp_path / "run", resume=True)
    file.unlink()
    train(config, tmp_path / "run", resume=True)
    assert file.read_text() == given
    load_run(tmp_path / "run")


def exchange_words(file):
    content = json.loads(file.read_text())
    words = list(content["word2idx"])
    words[4], words[5] = words[5], words[4]
    changed = {"word2idx": {w: k for k, w in enumerate(words)}, "idx2word": {str(k): w for k, w in enumerate(words)}}
    file.write_text(json.dumps({**changed, "idx": len(words)}))


def test_other_words_are_noticed(tmp_path):
    data = tmp_path / "data"
    folder_of_data(data, images=40)
    config = short_config(f"data.path={data}", "train.batch_size=8")
    run = train(config, tmp_path / "run").folder
    exchange_words(run.vocabulary_file)
    with pytest.raises(InputError, match="is not the vocabulary"):
        load_run(run.path)


def test_an_unfinished_run_says_so(tmp_path):
    config = short_config("train.epochs=5")

    def enough(report):
        if report.epoch == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    assert train(config, tmp_path / "run", on_epoch=enough).stopped
    run = load_run(tmp_path / "run")
    assert "not finished, 2 of 5 epochs" in repr(run)
    note = run.unfinished_note()
    assert note is not None
    assert "2 of 5 epochs" in note


def test_equal_runs_are_equal_files(tmp_path):
    """To the byte, so that their hashes say so; one epoch is enough of a run."""
    for name in ("one", "other"):
        train(tiny_config("train.epochs=1"), tmp_path / name)
    for file in ("model.safetensors", "vocabulary.json", "split.parquet/epoch-0000.parquet"):
        one, other = (tmp_path / name / file for name in ("one", "other"))
        assert one.exists() == other.exists()
        assert not one.exists() or one.read_bytes() == other.read_bytes(), file
    assert (tmp_path / "one" / "metrics.json").exists()
