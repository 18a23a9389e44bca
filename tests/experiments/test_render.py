"""Text in tables: in LaTeX every mark prints as itself."""

from __future__ import annotations

import pytest

from mispair.experiments.content import Page
from mispair.experiments.render import FORMATS, _tex


@pytest.mark.parametrize(
    ("mark", "said"),
    [("<", r"\textless{}"), (">", r"\textgreater{}"), ("|", r"\textbar{}"), ("_", r"\_"), ("\\", r"\textbackslash{}")],
)
def test_marks_of_latex(mark: str, said: str) -> None:
    assert _tex(f"a {mark} b") == f"a {said} b"


def test_a_spreadsheet_runs_no_name() -> None:
    records = ({"row": "=HYPERLINK(1)", "column": "-0.5", "rsum": -1.0, "code": "@x"},)
    page = Page("n", "t", (), (), (), records)
    assert FORMATS["csv"](page) == "row,column,rsum,code\n'=HYPERLINK(1),-0.5,-1.0,'@x\n"


def test_a_command_in_a_note_is_copied_as_it_is() -> None:
    notes = ("A_b, made by `mispair experiments run main --data f30k_precomp -o out`. <i>", "one ` alone_")
    said = FORMATS["md"](Page(name="n", title="t", about=(), tables=(), notes=notes, records=()))
    assert "- A\\_b, made by `mispair experiments run main --data f30k_precomp -o out`. \\<i\\>\n" in said
    assert "- one \\` alone\\_\n" in said
