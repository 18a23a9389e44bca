"""Cells that a spreadsheet would run as a formula: an apostrophe before such a text says that it is one."""

from __future__ import annotations

import re

FORMULA = r"^('*[=+\-@\t\r])"
QUOTED = r"^'('*[=+\-@\t\r])"


def as_cell(text: str) -> str:
    """The text with an apostrophe before it where it would be run; `QUOTED` finds it on the way back."""
    return re.sub(FORMULA, r"'\1", text)
