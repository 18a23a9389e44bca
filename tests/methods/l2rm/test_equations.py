"""PAPERS.md maps every equation of L2RM to a function: it cites the equation, and training as written calls it."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from mispair.methods.l2rm import L2RMConfig
from tests.methods.l2rm.samples import make

PAPERS = Path(__file__).parents[3] / "PAPERS.md"


def rows() -> list[tuple[str, list[FunctionType]]]:
    """The first table of PAPERS.md: what the paper has, and the functions it became."""
    table = PAPERS.read_text(encoding="utf-8").split("\n## L2RM\n")[1].split("Values of `L2RMConfig`")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if re.match(r"\| (Eq|App|Alg)", line)]
    return [(paper, list(functions(where))) for paper, where in lines]


def functions(where: str) -> Iterator[FunctionType]:
    for name in re.findall(r"`((?:functional|methods)\.[\w.]+)`", where):
        *module, owner, last = name.split(".")
        try:
            holder = importlib.import_module(".".join(["mispair", *module, owner]))
        except ModuleNotFoundError:
            holder = getattr(importlib.import_module(".".join(["mispair", *module])), owner)
        yield getattr(holder, last)


def numbers(text: str) -> set[int]:
    """ "Eq. 7-9" and "Eq. 6" as {6, 7, 8, 9}."""
    spans = [(int(a), int(b or a)) for a, b in re.findall(r"Eq\. (\d+)(?:-(\d+))?", text)]
    return {number for first, last in spans for number in range(first, last + 1)}


def test_every_equation_of_the_paper_has_its_row() -> None:
    assert set.union(*(numbers(paper) for paper, _ in rows())) == set(range(1, 12))


@pytest.mark.parametrize(("paper", "found"), rows(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_functions_cite_their_equations(paper: str, found: list[FunctionType]) -> None:
    assert found
    owners = [getattr(sys.modules[one.__module__], one.__qualname__.split(".")[0]) for one in found]
    cited = "\n".join(str(one.__doc__) for one in (*found, *owners))
    assert numbers(paper) <= numbers(cited), f"{paper} is not cited by {[one.__qualname__ for one in found]}"


def test_training_as_written_calls_every_one_of_them(data) -> None:
    called = set()
    method, run = make(data, two_groups=True, config=L2RMConfig.paper().model_copy(update={"warmup_epochs": 1}))
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        method.epoch(0, run)
        method.epoch(1, run)
    finally:
        sys.setprofile(None)
    for paper, found in rows():
        for one in found:
            assert one.__code__ in called, f"{paper}: {one.__qualname__} is never called"
