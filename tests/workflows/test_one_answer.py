"""Training, card, audit and page say one mismatch rate, or why they differ: a small run from end to end."""

from __future__ import annotations

import html
import re

from typer.testing import CliRunner

import mispair
from mispair.auditing.rate_words import training_rate_words
from mispair.auditing.verdicts import Verdicts
from mispair.cli.app import app
from mispair.runtime.run_folder import RunFolder
from mispair.workflows.audit import audit


def test_one_rate_everywhere(tmp_path):
    run = tmp_path / "run"
    small = ["data.scenes.pictures=120", "train.epochs=3", "method.warmup_epochs=1", "train.batch_size=32",
             "method.split.evidence=others"]  # fmt: skip
    told = CliRunner().invoke(
        app,
        ["train", "scenes", "--noise", "0.4", "-o", str(run), *(word for value in small for word in ("--set", value))],
    )
    assert told.exit_code == 0, told.output
    words = training_rate_words(RunFolder(run).summary)
    assert words is not None
    assert "believe the audit" in words  # it may differ, and why is said
    assert words in _plain(told.output)
    assert (
        words in (run / "README.md").read_text()
        if (run / "README.md").exists()
        else RunFolder(run).card_file.read_text()
    )
    assert words in _page(run, tmp_path / "run.html")

    verdicts = audit(run, folds=2)
    verdicts.save(tmp_path / "audit")
    sentence = verdicts.summary().splitlines()[0]
    assert any(sentence == line for line in Verdicts.load(tmp_path / "audit").summary().splitlines())
    page = _page(tmp_path / "audit", tmp_path / "audit.html")
    assert sentence in page
    others = set(re.findall(r"estimated rate is ([\d.]+%)", page)) - set(re.findall(r"rate is ([\d.]+%)", sentence))
    assert not others  # where an audit answers, nobody else does


def _plain(text: str) -> str:
    return " ".join(text.split())


def _page(folder, out) -> str:
    mispair.make_report(folder, out)
    return _plain(html.unescape(re.sub(r"<[^>]+>", "", out.read_text())))
