"""Text in tables: in LaTeX every mark prints as itself."""

from __future__ import annotations

import pytest

from mispair.experiments.render import _tex


@pytest.mark.parametrize(
    ("mark", "said"),
    [("<", r"\textless{}"), (">", r"\textgreater{}"), ("|", r"\textbar{}"), ("_", r"\_"), ("\\", r"\textbackslash{}")],
)
def test_marks_of_latex(mark: str, said: str) -> None:
    assert _tex(f"a {mark} b") == f"a {said} b"
