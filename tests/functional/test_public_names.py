import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mispair.functional
from mispair import functional


@pytest.mark.parametrize("name", functional.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(functional, name)
    assert value.__name__ == name
    assert value.__doc__


def test_the_formulas_of_the_papers_are_public():
    """Whatever PAPERS.md maps a formula to can be imported from here; two are parts of others."""
    papers = (Path(__file__).parents[2] / "PAPERS.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`functional\.\w+\.(\w+)[`(]", papers))
    beside = {name for line in papers.splitlines() if "`functional." in line for name in re.findall(r", `(\w+)`", line)}
    assert len(named | beside) > 20
    assert (named | beside) - {"extended", "em"} <= set(functional.__all__)


def test_the_names_cost_nothing_before_they_are_used():
    code = "import sys, mispair.functional; assert 'torch' not in sys.modules; mispair.functional.triplet"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'tripletz'"):
        mispair.functional.tripletz  # noqa: B018


def test_the_example_runs():
    assert doctest.testmod(functional).failed == 0
