"""Every file of every format that holds pictures, damaged: `check` answers, or refuses in one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.data.picture_formats import MAKERS
from tests.data.samples import run, write_lines
from tests.fuzz.damage import damage

CASES = 12


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__.strip("_"))
def test_damaged_files_get_an_answer(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    config = make(good)
    files = sorted(path.relative_to(good) for path in good.rglob("*") if path.is_file())
    images = [] if config.images is None else ["--images", str(config.images).replace(str(good), str(bad))]
    for case in range(CASES):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        rng = np.random.default_rng([len(files), case])
        # pictures are many and alike: the files that hold or name them are damaged more often
        tables = [file for file in files if file.suffix != ".png"] or files
        chosen = tables if rng.random() < 0.8 else files
        file = chosen[rng.integers(len(chosen))]
        said = damage(bad / file, rng)
        ran = run(monkeypatch, capsys, "check", config.path.replace(str(good), str(bad)), *images)
        assert ran.code in (0, 1, 2), (file, said, ran)
        assert ran.code != 2 or ran.err.startswith("mispair: "), (file, said, ran)


@pytest.mark.parametrize("case", range(20))
def test_damaged_token_files(
    case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "x.token", [f"{k}.png#{k % 5}\ta dog number {k}" for k in range(9)])
    damage(path, np.random.default_rng(case))
    assert run(monkeypatch, capsys, "check", path).code in (0, 1, 2)
