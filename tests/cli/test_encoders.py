from __future__ import annotations

import json

from typer.testing import CliRunner

from mispair.cli.app import app
from mispair.encoders import registry


def test_the_remedy_names_what_is_missing(monkeypatch):
    told = {about.remedy for about in registry.list_encoders() if about.source.startswith("hub:") and not about.here}
    assert told
    assert all(remedy.startswith("hf download ") for remedy in told), "transformers is installed here"
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert "pip install 'mispair[hub]'; then: hf download " in registry.list_encoders()[1].remedy


def test_nobody_says_no_of_an_encoder_that_was_not_asked(monkeypatch):
    monkeypatch.setitem(registry._REGISTERED, "ours", lambda device, cells: None)
    joint = {about.name: about.joint for about in registry.list_encoders()}
    assert (joint["basic"], joint["minilm"], joint["ours"]) == (True, False, None)
    shown = CliRunner().invoke(app, ["encoders"]).output
    assert "ours: here, one space: unknown until it is used\n" in shown
    assert "minilm: not here, 91 MB, Apache-2.0, no common space\n" in shown


def test_the_list_says_what_is_here(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = CliRunner().invoke(app, ["encoders"])
    assert shown.exit_code == 0, shown.output
    assert "basic: here, 54 MB, Apache-2.0, one space\n    the default: verdicts from pictures" in shown.output
    assert "\n    weights from packages of the registry\n" in shown.output
    hub = "google/siglip2-base-patch16-224"
    assert f"\n    weights from hub: {hub}; for it: hf download {hub}\n" in shown.output
    told = json.loads(CliRunner().invoke(app, ["encoders", "--json"]).output)
    assert told[0]["name"] == "basic"
    assert told[0]["here"] is True
    assert set(told[0]) == {"name", "good_for", "joint", "megabytes", "licence", "source", "here", "remedy"}
