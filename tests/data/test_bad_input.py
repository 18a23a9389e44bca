"""Every unusable input: one sentence that names the place and the remedy, exit code 2, nothing written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.data.bad_input import CASES
from tests.data.samples import listing, precomp, run


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_and_code_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build, fragments = CASES[name]
    arguments = build(tmp_path)
    before = listing(tmp_path)
    ran = run(monkeypatch, capsys, *arguments)
    assert ran.code == 2, (ran.out, ran.err)
    assert ran.err.startswith("mispair: ")
    assert ran.err.count("\n") == 1, "one sentence on one line"
    assert "Traceback" not in ran.err
    assert ran.out == ""
    missing = [fragment for fragment in fragments if fragment not in ran.err]
    assert not missing, f"{missing} not in: {ran.err}"
    assert listing(tmp_path) == before, "nothing may be written"


@pytest.mark.parametrize("file", ["train_ims.npy", "train_caps.txt"])
def test_no_permission(file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Root may read everything, so the check runs as nobody."""
    with tempfile.TemporaryDirectory() as root:
        folder = precomp(Path(root) / "data")
        Path(root).chmod(0o755)
        (folder / file).chmod(0o000)
        was = os.geteuid()
        try:
            if was == 0:
                os.seteuid(65534)
            ran = run(monkeypatch, capsys, "check", folder)
        finally:
            os.seteuid(was)
        assert ran.code == 2
        assert file in ran.err
        assert "no permission" in ran.err
        assert "chmod" in ran.err
