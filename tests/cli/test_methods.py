"""`mispair methods` and the README say the same."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mispair.cli.app import app
from mispair.methods import method_names

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def listed():
    result = CliRunner().invoke(app, ["methods", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_every_method_is_listed_once(listed):
    assert [method["name"] for method in listed] == method_names()
    assert all(method["networks"] in (1, 2) and method["cost"] >= 1 for method in listed)


def test_nothing_is_cut_off_in_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "…" not in CliRunner().invoke(app, ["methods"]).output


def test_the_table_names_each_with_what_it_does(listed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    result = CliRunner().invoke(app, ["methods"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    for method in listed:
        (line,) = [line for line in lines if f" {method['name']} " in line and method["mismatched"] in line]
        assert str(method["year"]) in line
        assert method["paper"] in line


def test_the_readme_has_that_table(listed):
    text = README.read_text(encoding="utf-8")
    found = text.split("<!-- methods -->")[1].split("<!-- /methods -->")[0].strip()
    rows = [
        "| method | paper | year | networks | cost | a mismatched pair |",
        "|---|---|---:|---:|---:|---|",
        *(
            f"| `{m['name']}` | [{m['paper']}]({m['url']}) ({m['venue']}) | {m['year']} | {m['networks']} "
            f"| {m['cost']:.1f}x | {m['mismatched']} |"
            for m in listed
        ),
    ]
    assert found == "\n".join(rows), "the table is:\n" + "\n".join(rows)
