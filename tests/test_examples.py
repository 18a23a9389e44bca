"""Every file of examples/ runs as it stands, is short, and shows what it says."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
FILES = sorted(FOLDER.glob("*.py"))


def _run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return capsys.readouterr().out


def test_they_are_short_and_all_of_them_are_run_here() -> None:
    own = Path(__file__).read_text()
    for path in FILES:
        assert len(path.read_text().splitlines()) < 80, path.name
        assert f'"{path.name}"' in own, path.name
    assert len(FILES) >= 5


def test_own_loop(capsys: pytest.CaptureFixture[str]) -> None:
    said = _run("own_loop.py", capsys)
    plain, robust = (float(number) for number in re.findall(r"rSum ([\d.]+)", said))
    assert robust > plain + 20
    assert int(re.findall(r"(\d+)% of the pairs are judged rightly", said)[0]) > 80


def test_own_model(capsys: pytest.CaptureFixture[str]) -> None:
    said = _run("own_model.py", capsys)
    assert float(re.findall(r"rSum ([\d.]+)", said)[0]) > 200
    assert "the same weights: True" in said


def test_own_method() -> None:
    """In a process of its own: a registered method stays for the life of a process."""
    command = [sys.executable, str(FOLDER / "own_method.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    plain, trimmed = (float(number) for number in re.findall(r"rSum ([\d.]+)", ran.stdout))
    assert trimmed > plain
    assert "trimmed" in ran.stdout.splitlines()[0]


def test_audit_embeddings(capsys: pytest.CaptureFixture[str]) -> None:
    said = _run("audit_embeddings.py", capsys)
    assert float(re.findall(r"([\d.]+)% of the pairs are judged rightly", said)[0]) > 97
    assert "page: audit.html" in said


def test_walkthrough(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    said = _run("walkthrough.py", capsys)
    assert "rather:" in said
    assert said.splitlines()[-1] == "True"


def test_clip_finetuning(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    believed, weighted = _shares(_run("clip_finetuning.py", capsys))
    assert weighted > believed + 20


def test_sentence_transformers_training() -> None:
    """In a process of its own: the trainer changes how the process logs."""
    pytest.importorskip("sentence_transformers")
    command = [sys.executable, "-W", "error", str(FOLDER / "sentence_transformers_training.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    believed, weighted = _shares(ran.stdout)
    assert weighted > believed + 50


def _shares(said: str) -> list[int]:
    return [int(share) for share in re.findall(r"(\d+)% with", said)]
