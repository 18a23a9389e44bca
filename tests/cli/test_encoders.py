from __future__ import annotations

import json

from typer.testing import CliRunner

from mispair.cli.app import app


def test_the_list_says_what_is_here(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = CliRunner().invoke(app, ["encoders"])
    assert shown.exit_code == 0, shown.output
    for word in ("basic", "siglip2-base", "Apache-2.0", "54 MB", "packages of the registry"):
        assert word in shown.output
    told = json.loads(CliRunner().invoke(app, ["encoders", "--json"]).output)
    assert told[0]["name"] == "basic"
    assert told[0]["here"] is True
    assert set(told[0]) == {"name", "good_for", "joint", "megabytes", "licence", "source", "here", "remedy"}
