"""train, evaluate, runs as a person uses them: killed, stopped, resumed, mistaken."""

import json
import os
import subprocess
import sys

import pytest
from safetensors import safe_open

from mispair.cli.app import main
from tests.runtime.trainings import epochs
from tests.synthetic import TINY

SETS = [
    f"--set={s}" for s in (*TINY, "data.noise.rate=0.5", "method.split.mixture=gaussian", "train.save_minutes=1e-6")
]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "COLUMNS": "160", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def mispair(forks):
    def call(*arguments):
        ran = forks.run(*arguments, limit=280)
        return ran.code, ran.out, ran.err

    return call


@pytest.fixture(scope="module")
def whole(tmp_path_factory, mispair):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    code, out, error = mispair("train", *SETS, "-o", folder)
    assert code == 0, error
    assert "rSum" in out
    return folder


def test_a_run_folder_holds_what_it_should(whole):
    names = {path.name for path in whole.iterdir()}
    assert {
        "config.yaml", "metrics.jsonl", "metrics.json", "model.safetensors", "last", "split.parquet", "README.md",
        "vocabulary.json",
    } <= names  # fmt: skip
    summary = json.loads((whole / "metrics.json").read_text())
    assert summary["noise"]["rate"] == pytest.approx(0.5, abs=0.1)
    assert len(summary["noise"]["hash"]) == 64
    assert 0 <= summary["mismatch_rate"] <= 1
    cost = summary["cost"]
    assert (cost["networks_trained"], cost["networks_scored"]) == (1, 1)
    assert 1 < cost["passes"] < 12  # all pairs in warm-up; then matched, mismatched and what comes along
    assert cost["forward_passes"] >= 3  # a survey after each epoch of warm-up
    assert 0 <= summary["detection"]["auroc"] <= 1
    card = (whole / "README.md").read_text()
    assert "rSum" in card
    assert summary["noise"]["hash"][:16] in card


def test_the_written_configuration_repeats_the_run(whole, tmp_path, mispair):
    code, _, error = mispair("train", "--config", whole / "config.yaml", "-o", tmp_path / "again")
    assert code == 0, error
    assert epochs(tmp_path / "again") == epochs(whole)


def test_evaluate_gives_what_training_reported(whole, mispair):
    code, out, _ = mispair("evaluate", whole, "--json")
    assert code == 0
    summary = json.loads((whole / "metrics.json").read_text())
    assert json.loads(out)["rsum"] == pytest.approx(summary["test"]["rsum"])
    code, out, _ = mispair("evaluate", whole, whole, "--json")
    assert json.loads(out)["networks"] == 2
    assert json.loads(out)["rsum"] == pytest.approx(summary["test"]["rsum"])
    code, out, _ = mispair("evaluate", whole, "--split", "dev", "--folds", "2")
    assert "mean of 2 folds" in out


def test_two_stage_ranking_needs_few_cells_and_says_what_it_missed(tmp_path, mispair):
    folder = tmp_path / "sgr"
    small = ("model.name=sgr", "model.embed=16", "model.sim=8", "model.word_dim=8", "model.stand_in=8")
    sets = [*TINY, "method.name=plain", "method.loss=infonce", "train.epochs=1"]
    sets = [s for s in sets if not s.startswith(("model.", "method.warmup", "data.scenes."))] + [*small]
    sets.append("data.scenes.pictures=60")
    code, _, error = mispair("train", *(f"--set={s}" for s in sets), "-o", folder)
    assert code == 0, error
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata()["polished"] == "yes"
    code, out, _ = mispair("evaluate", folder, "--json")
    exhaustive = json.loads(out)
    assert exhaustive["rsum"] == pytest.approx(json.loads((folder / "metrics.json").read_text())["test"]["rsum"])
    assert "shortlist" not in exhaustive
    code, out, _ = mispair("evaluate", folder, "--shortlist", 3, "--json")
    told = json.loads(out)["shortlist"]
    assert told["candidates"] == 3
    assert 0 < told["share"] < 1
    assert 0 < told["recall_i2t"] <= 1
    code, out, _ = mispair("evaluate", folder, "--shortlist", 1000, "--json")
    assert json.loads(out)["rsum"] == pytest.approx(exhaustive["rsum"])
    code, out, _ = mispair("evaluate", folder, "--shortlist", 3)
    assert "Two stages: the full model scored" in out
    code, _, error = mispair("evaluate", folder, folder, "--shortlist", 3)
    assert code == 2
    assert "--shortlist ranks with one run" in error


def test_runs_compares(whole, mispair):
    code, out, _ = mispair("runs", whole.parent)
    assert code == 0
    assert "whole" in out
    code, out, _ = mispair("runs", whole.parent, "--json")
    assert json.loads(out)[0]["finished"] is True


@pytest.mark.parametrize(
    ("known", "estimated"),
    [
        ({"conclusive": True}, 0.696),
        ({"conclusive": False}, None),
        ({}, None),
        ({"conclusive": True, "mended": {}}, 0.696),
        ({"conclusive": True, "mended": {"action": "drop", "wrong": 0.04}}, None),
    ],
)
def test_a_rate_stands_alone_only_where_it_is_supported(whole, tmp_path, known, estimated, mispair):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text((whole / "config.yaml").read_text())
    summary = json.loads((whole / "metrics.json").read_text())
    del summary["conclusive"]
    (run / "metrics.json").write_text(json.dumps({**summary, "mismatch_rate": 0.696, **known}))
    code, out, error = mispair("runs", tmp_path, "--json")
    assert code == 0, error
    assert json.loads(out)[0]["estimated_rate"] == estimated


def test_mistakes_get_one_sentence_and_write_nothing(whole, tmp_path, monkeypatch, capsys):
    cases = [
        (["train", "--method", "magic"], "there is no method 'magic'"),
        (["train", "--model", "resnet"], "there is no model 'resnet'"),
        (["train", "--set", "method.transport.mass=0"], "method.transport.mass: input should be greater than 0, got 0"),
        (["train", "--set", "method.masss=1"], "did you mean method.transport.mass?"),
        (["train", "--epochs", "3", "--set", "method.warmup_epochs=3"], "leaves nothing of train.epochs=3"),
        (["train", tmp_path / "nowhere"], "does not exist"),
        (["train", "-o", whole], "already holds a run"),
        (["train", "--resume", tmp_path], "is not a run folder"),
        (["train", "--resume", whole, "--epochs", "9"], "--resume goes on with a run as it was"),
        (["train", "--config", tmp_path / "none.yaml"], "does not exist"),
        (["train", "-c", whole / "config.yaml", "--encoder", "basic"], "encode the pictures of data: name the data"),
        (["train", "--set", "engine.precision=fp16"], "fp16 needs a CUDA device"),
        (["train", "--set", "train.batch_size=100000"], "fewer than one batch of 100000"),
        (["evaluate", tmp_path], "is not a run folder"),
        (["evaluate", whole, "--folds", "7"], "folds must divide"),
        (["evaluate", whole, "--split", "nonsense"], "nonsense"),
        (["runs", tmp_path / "nowhere"], "does not exist"),
        (["runs", tmp_path], "holds no runs"),
    ]
    before = sorted(tmp_path.iterdir())
    for arguments, sentence in cases:
        extra = ["--set=data.scenes.pictures=120", "-o", tmp_path / "new"] if arguments[:1] == ["train"] else []
        if "-o" in arguments or "--resume" in arguments:
            extra = []
        monkeypatch.setattr(sys, "argv", ["mispair", *map(str, [*arguments, *extra])])
        with pytest.raises(SystemExit) as stopped:
            main()
        error = capsys.readouterr().err
        assert stopped.value.code == 2, (arguments, error)
        assert sentence in error, (arguments, error)
        assert "Traceback" not in error
        assert error.startswith("mispair: ") or "\nmispair: " in error
        assert sorted(tmp_path.iterdir()) == before, arguments


def test_a_corrupt_model_gets_one_sentence(whole, tmp_path, mispair):
    import shutil

    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[:64] = b"\xff" * 64
    (folder / "model.safetensors").write_bytes(content)
    code, _, error = mispair("evaluate", folder)
    assert code == 2
    assert "is damaged" in error


def test_places_that_cannot_be_written_get_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    small = ["--set=data.scenes.pictures=120", "--method", "plain", "--epochs", "1"]
    cases = [
        ["train", *small, "-o", tmp_path / "file" / "x"],
        ["train", *small, "-o", tmp_path / ("n" * 300)],
        ["train", *small, "-o", tmp_path / "file"],
        ["train", "--resume", tmp_path / ("n" * 300)],
        ["train", "--resume", tmp_path / "file"],
        ["train", "-c", tmp_path / ("n" * 300)],
        ["train", "x" * 300],
        ["demo", "-o", tmp_path / "file"],
        ["demo", "-o", tmp_path / "file" / "x"],
        ["demo", "-o", tmp_path / ("n" * 300)],
        ["evaluate", tmp_path / ("n" * 300)],
        ["runs", tmp_path / ("n" * 300)],
        ["runs", tmp_path / "file"],
        ["report", tmp_path / ("n" * 300)],
    ]
    for arguments in cases:
        monkeypatch.setattr(sys, "argv", ["mispair", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        error = capsys.readouterr().err
        assert stopped.value.code == 2, (arguments, error)
        assert "mispair: " in error, (arguments, error)
        if arguments[0] == "train" and "-o" in arguments:
            assert "; choose another" in error, (arguments, error)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_output_that_nobody_takes_gets_one_sentence():
    command = f"{sys.executable} -m mispair methods --json > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 2
    assert done.stderr == "mispair: the output cannot be used: No space left on device\n"
    command = f"{sys.executable} -m mispair methods --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.stderr == ""


def test_one_epoch_is_enough(tmp_path, mispair):
    small = ("--set=data.scenes.pictures=60", "--set=model.embed=16", "--batch-size", "32", "--device", "cpu")
    for method in ("l2rm", "ncr", "plain"):
        code, _, error = mispair("train", *small, "--method", method, "--epochs", 1, "-o", tmp_path / method)
        assert code == 0, error
    assert "all warm-up" in mispair("train", *small, "--epochs", 1, "--lr", "0.01", "-o", tmp_path / "chosen")[1]


def test_what_was_not_given_is_not_what_was(whole, tmp_path, monkeypatch, capsys, mispair):
    """ "scenes" said and nothing said are two things."""
    monkeypatch.setattr(sys, "argv", ["mispair", "train", "scenes", "--resume", str(whole)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "leave the other options out" in capsys.readouterr().err
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(f"data: {{path: {tmp_path / 'nowhere'}}}\ntrain: {{epochs: 1}}\nmethod: {{name: plain}}\n")
    small = ("--set=data.scenes.pictures=120", "--set=model.embed=16")
    code, _, error = mispair("train", "-c", elsewhere, *small, "-o", tmp_path / "a")
    assert code == 2
    assert "nowhere does not exist" in error
    code, _, error = mispair("train", "scenes", "-c", elsewhere, *small, "-o", tmp_path / "b")
    assert code == 0, error


def test_runs_fit_into_eighty_columns(tmp_path, monkeypatch, capsys):
    for number in range(2):
        folder = tmp_path / f"scenes-l2rm-official-vse-with-a-long-name-{number}"
        folder.mkdir()
        (folder / "config.yaml").write_text("method: {name: l2rm}\ndata: {noise: {rate: 0.4}}\n")
        rate = {"mismatch_rate": 0.375, "conclusive": True}
        summary = {"test": {"rsum": 1234.5}, **rate, "noise": {"text": "", "rate": 0.4}, "seconds": 1.0}
        (folder / "metrics.json").write_text(json.dumps(summary) if number else "{}")
        (folder / "metrics.jsonl").write_text('{"event": "epoch", "epoch": 0, "dev": {"rsum": 567.8}}\n')
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["mispair", "runs", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[1:])) <= 80
    for figure in ("1234.5", "567.8", "0.375", "0.40", "1/20"):
        assert figure in out, out
    assert "…" not in out


def test_one_damaged_run_does_not_hide_the_others(tmp_path, monkeypatch, capsys):
    for name, content in (("good", "method: {name: plain}\n"), ("bad", "data: [1]\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(content)
    monkeypatch.setattr(sys, "argv", ["mispair", "runs", str(tmp_path), "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, error = capsys.readouterr()
    assert stopped.value.code in (0, None)
    assert [run["run"] for run in json.loads(out)] == ["good"]
    assert "left out: " in error
