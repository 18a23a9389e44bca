"""Detectors side by side: every one is asked about the same pairs, figures are kept, and the table says who is best."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

from mispair.auditing.fixed_rules import all_but_best, cosine_distance, lemon, neg_clip_loss
from mispair.cli.app import app
from mispair.errors import InputError
from mispair.experiments.detectors import DETECTORS, _DetectorAnswer, _measure, run_detectors
from mispair.experiments.runner import LOCK
from mispair.experiments.spec import load_spec
from mispair.functional.detection import auroc
from mispair.runtime.lock import claimed
from tests.auditing.planted import planted

SMALL = {"data.scenes.pictures": 60, "train.epochs": 2, "train.batch_size": 16, "method.warmup_epochs": 1}


@pytest.fixture
def spec(tmp_path):
    rows = {"cosine-30": {"label": "cosine"}, "quick-audit": {}, "split": {}}
    values = {
        "name": "small", "title": "Small", "shows": "who tells", "compares": "detectors", "rows": rows,
        "columns": {"0": {"set": {"data.noise.rate": 0.0}}, "0.4": {"set": {"data.noise.rate": 0.4}}},
        "data": {"scenes": {"set": SMALL}}, "quick": ["column=0.4"],
    }  # fmt: skip
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def test_all_are_asked_and_what_was_found_is_kept(spec, tmp_path):
    out = tmp_path / "out"
    heard = []
    table = run_detectors(str(spec), "scenes", out, say=heard.append)
    assert len(heard) == 6
    assert table.count("\n| ") == 4
    assert "**" in table
    assert (out / "tables" / "small.md").read_text() == table
    for row in ("cosine-30", "quick-audit", "split"):
        found = json.loads((out / "cells" / row / "0.4" / "seed-0.json").read_text())
        assert 0 <= found["auroc"] <= 1
        none = json.loads((out / "cells" / row / "0" / "seed-0.json").read_text())
        assert none["auroc"] is None
        assert none["rate_error"] >= 0
    heard.clear()
    assert (
        CliRunner().invoke(app, ["experiments", "run", str(spec), "-o", str(out), "--seeds", "1"]).output
        == table + "\n"
    )
    assert not heard


def test_figures_by_hand():
    wrong = np.array([False, False, True, True])
    found = _measure(_DetectorAnswer(np.array([0.1, 0.3, 0.2, 0.9]), np.array([False, True, True, True]), 0.6), wrong)
    assert found.auroc == pytest.approx(0.75)
    assert found.f1 == pytest.approx(2 * 2 / (3 + 2))
    assert found.rate_error == pytest.approx(0.1)
    assert found.average_precision == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_rules_of_others_tell_and_decide():
    a, b, wrong, _ = planted(pairs=499, gap=0.0)
    a, b = (torch.nn.functional.normalize(torch.from_numpy(side), dim=1) for side in (a, b))
    for rule in (cosine_distance, neg_clip_loss, lemon):
        found = rule(a, b)
        assert auroc(found, wrong) > 0.9
        assert all_but_best(found).mean() == pytest.approx(0.7, abs=0.01)


def test_the_shipped_spec_names_every_detector():
    spec, _ = load_spec("detectors")
    assert list(spec.rows) == list(DETECTORS)


def test_mistakes_are_input_errors(spec, tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist"):
        run_detectors(str(spec), "nowhere", tmp_path / "out")
    values = yaml.safe_load(spec.read_text())
    values["rows"] = {"guess": {}}
    spec.write_text(yaml.safe_dump(values))
    with pytest.raises(InputError, match="no detector 'guess'"):
        run_detectors(str(spec), "scenes", tmp_path / "out")


@pytest.mark.parametrize("content", ["{", "[]", '{"auroc": "x"}', '{"auroc": 1, "average_precision": 1, "f1": NaN}'])
def test_a_damaged_figure_costs_one_sentence(spec, tmp_path, content):
    kept = tmp_path / "out/cells/cosine-30/0.4/seed-0.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(content)
    with pytest.raises(InputError, match=r"seed-0.json is damaged; remove it"):
        run_detectors(str(spec), "scenes", tmp_path / "out", only=["row=cosine-30", "column=0.4"])


def test_a_folder_in_use_is_refused(spec, tmp_path):
    with claimed(tmp_path / "out" / LOCK, "another"), pytest.raises(InputError, match="in use by another"):
        run_detectors(str(spec), "scenes", tmp_path / "out", only=["row=cosine-30", "column=0.4"])


@pytest.mark.parametrize("option", ["--dry-run", "--keep", "--redo", "--jobs=2", "--as=scenes"])
def test_options_of_trainings_are_refused(spec, tmp_path, option):
    """--dry-run was passed over, and everything was run."""
    ran = CliRunner().invoke(app, ["experiments", "run", str(spec), "-o", str(tmp_path / "out"), option])
    assert isinstance(ran.exception, InputError)
    assert f"leave {option.partition('=')[0]} out" in str(ran.exception)
    assert not (tmp_path / "out").exists()
