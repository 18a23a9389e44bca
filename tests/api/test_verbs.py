"""One import does what the command line does: every verb has its functions, and what lists things lists them."""

import pytest

import mispair as mp
from mispair.cli.app import VERBS
from tests.synthetic import tiny_config

FUNCTIONS = {
    "audit": ("audit", "quick_audit", "audit_pictures", "audit_shard", "audit_on_ray"),
    "check": ("check",),
    "corrupt": ("corrupt",),
    "doctor": ("inspect_machine",),
    "embed": ("embed",),
    "encoders": ("list_encoders",),
    "evaluate": ("evaluate",),
    "experiments": ("list_experiments", "run_experiment"),
    "export": ("export",),
    "fix": ("fix", "undo_fix"),
    "index": ("index", "open_index"),
    "merge": ("merge_audit", "merge_embedded"),
    "methods": ("list_methods",),
    "report": ("make_report",),
    "review": ("review", "review_status", "export_decisions", "import_decisions"),
    "runs": ("list_runs",),
    "search": ("search",),
    "serve": ("serve",),
    "train": ("train",),
}
FOR_A_TERMINAL = {"demo": "a tour that prints as it goes; its steps are train, audit and make_report"}
NO_VERB = {"load", "register"}  # objects to work with, which a command line has not


def test_every_verb_has_its_functions():
    assert FUNCTIONS.keys() | FOR_A_TERMINAL.keys() == VERBS.keys()
    named = {name for names in FUNCTIONS.values() for name in names}
    assert named | NO_VERB == set(mp.api.__all__)


def test_what_is_there_is_listed(tmp_path):
    from mispair.workflows.train import train

    assert {"basic", "clip-b32"} <= {encoder.name for encoder in mp.list_encoders()}
    assert "main" in {spec.name for spec in mp.list_experiments()}
    assert {"python", "torch"} <= {check.name for check in mp.inspect_machine()}
    with pytest.raises(mp.InputError, match="does not exist"):
        mp.list_runs(tmp_path / "none")
    train(tiny_config("train.epochs=1", "method.name=plain"), tmp_path / "runs/a")
    (tmp_path / "runs/b").mkdir()
    (tmp_path / "runs/b/config.yaml").write_text("seed: [")
    with pytest.warns(UserWarning, match="left out: .*runs/b"):
        (listed,) = mp.list_runs(tmp_path / "runs")
    assert (listed["run"], listed["method"], listed["finished"]) == ("a", "plain", True)
    together = mp.evaluate([tmp_path / "runs/a", mp.load(tmp_path / "runs/a")])
    assert together == mp.evaluate(tmp_path / "runs/a")
    with pytest.raises(mp.InputError, match="at least one run"):
        mp.evaluate([])
