"""Killed at a write, whichever it is: going on leads to the same bits, and nothing half-written is left."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.colours import write_colours
from tests.data.samples import listing, precomp, write_lines
from tests.forks import Forks, Ran
from tests.synthetic import TINY

SETS = [
    f"--set={s}" for s in (*TINY, "data.noise.rate=0.5", "method.split.mixture=gaussian", "train.save_minutes=1e-6")
]


@pytest.fixture(scope="module")
def whole(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A run that nobody disturbed, and how many times it wrote."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    ran = forks.run("train", *SETS, "-o", folder, folder=folder)
    assert ran.code == 0, ran.err
    assert ran.writes > 40
    return folder, ran.writes


def _timeless(folder: Path) -> dict[str, object]:
    """What a run holds, without what a clock or its place says."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    epochs = {
        line["epoch"]: {**line, "seconds": 0, "cpu": 0, "waited": 0} for line in lines if line["event"] == "epoch"
    }
    summary = json.loads((folder / "metrics.json").read_text())
    files = {name: content for name, content in listing(folder).items() if name.startswith(("model", "split", "al"))}
    return {"epochs": epochs, "summary": {**summary, "seconds": 0}, **files}


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_a_killed_training_goes_on_to_the_same_bits(
    kills: int, whole: tuple[Path, int], forks: Forks, tmp_path: Path
) -> None:
    expected = _timeless(whole[0])
    rng = np.random.default_rng(kills)
    for number in range(kills):
        folder = tmp_path / f"killed-{number}"
        moment = 1 + int(rng.integers(whole[1]))
        ran = forks.run("train", *SETS, "-o", folder, folder=folder, kill_at=moment, tear=bool(rng.integers(2)))
        assert ran.code == -signal.SIGKILL, (moment, ran)
        for _ in range(int(rng.integers(3))):  # and killed again, and again
            forks.run("train", "--resume", folder, folder=folder, kill_at=1 + int(rng.integers(whole[1] // 3)))
        if (folder / "config.yaml").exists():
            ran = forks.run("train", "--resume", folder)
        else:
            ran = forks.run("train", *SETS, "-o", folder)
        assert ran.code == 0, (moment, ran)
        assert _timeless(folder) == expected, moment
        assert not [path for path in folder.rglob(".*") if path.suffix in (".tmp", ".part")], moment
        shutil.rmtree(folder)


def test_sigterm_saves_and_says_how_to_go_on(whole: tuple[Path, int], forks: Forks, tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    ran = forks.run("train", *SETS, "-o", folder, folder=folder, kill_at=whole[1] // 2, by=signal.SIGTERM)
    assert ran.code == 130, ran
    assert f"mispair train --resume {folder}" in ran.err.replace("\n", "")
    assert forks.run("train", "--resume", folder).code == 0
    assert _timeless(folder) == _timeless(whole[0])


@pytest.fixture(scope="module")
def data(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, a table and an audit of embeddings to work on."""
    root = tmp_path_factory.mktemp("data")
    precomp(root / "folder", images=40, splits=("train", "dev"))
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(root / f"{name}.npy", rng.normal(size=(60, 8)).astype(np.float32))
    write_lines(root / "pairs.csv", ["image_id,caption", *(f"{k},a dog number {k}" for k in range(60))])
    np.save(root / "pairs.npy", rng.normal(size=(60, 8)).astype(np.float32))
    ran = forks.run("audit", "--embeddings", root / "a.npy", root / "b.npy", "-o", root / "audit")
    assert ran.code == 0, ran.err
    return root


COMMANDS = {
    "corrupt a folder": "corrupt {}/folder --rate 0.4 -o {out}",
    "corrupt a table": "corrupt {}/pairs.csv --rate 0.4 -o {out}",
    "audit": "audit --embeddings {}/a.npy {}/b.npy -o {out}",
    "report": "report {}/audit -o {out}/report.html",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("every", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_killed_command_can_be_given_again(
    command: str, every: bool, data: Path, forks: Forks, tmp_path: Path
) -> None:
    def run(out: Path, kill_at: int | None = None) -> tuple[int, int]:
        words = [word.replace("{out}", str(out)).replace("{}", str(data)) for word in command.split()]
        ran = forks.run(*words, folder=tmp_path, kill_at=kill_at)
        assert kill_at or ran.code == 0, ran
        return ran.code, ran.writes

    _, writes = run(tmp_path / "whole")
    expected = sorted(listing(tmp_path / "whole"))
    assert writes >= 2
    rng = np.random.default_rng(0)
    for moment in range(1, writes + 1) if every else [1 + int(rng.integers(writes))]:
        out = tmp_path / f"killed-{moment}"
        assert run(out, moment)[0] == -signal.SIGKILL
        complete = out.exists() and sorted(listing(out)) == expected  # killed after the last file was in its place
        if not complete:
            run(out)
        assert sorted(listing(out)) == expected, moment
        left = {path.name for path in tmp_path.iterdir()} - {"whole", *(f"killed-{k}" for k in range(writes + 1))}
        assert not left, (moment, left)


@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_pictures_that_are_encoded_trained_on_and_judged_in_one_go(kills: int, forks: Forks, tmp_path: Path) -> None:
    """Killed while it encodes, trains or judges: the same command goes on, to the same bits."""
    table = write_colours(tmp_path, 40, 4)
    encode = ("--images", tmp_path / "photos", "--texts", "words", "--batch", 8, "--workers", 0)
    options = (*encode, "--train", "--epochs", 2, "--folds", 0, "--set", "data.min_count=1", "--set", "model.embed=16")

    def run(number: int, kill_at: int | None = None) -> Ran:
        place = tmp_path / f"place-{number}"
        place.mkdir(exist_ok=True)
        return forks.run(
            "audit", table, *options, "-o", place / "audit", folder=place, kill_at=kill_at, limit=300,
            environment={"MISPAIR_CACHE": str(place / "cache")},
        )  # fmt: skip

    def made(number: int) -> dict[str, object]:
        place = tmp_path / f"place-{number}"
        rows = {name: content for name, content in listing(place / "cache").items() if name.endswith((".bin", ".npy"))}
        return {**rows, **_timeless(place / "audit/run"), "audit": listing(place / "audit")["audit.parquet"]}

    ran = run(0)
    assert ran.code == 0, ran.err
    rng = np.random.default_rng(kills)
    for number in range(1, kills + 1):
        moment = 1 + int(rng.integers(ran.writes))
        assert run(number, moment).code == -signal.SIGKILL, moment
        again = run(number)
        assert again.code == 0, (moment, again)
        assert made(number) == made(0), moment
        assert not list((tmp_path / f"place-{number}").rglob(".*.tmp")), moment
