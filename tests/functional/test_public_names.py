import doctest
import subprocess
import sys

import pytest

import mispair.functional
from mispair import functional


@pytest.mark.parametrize("name", functional.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(functional, name)
    assert value.__name__ == name
    assert value.__doc__


def test_the_names_cost_nothing_before_they_are_used():
    code = "import sys, mispair.functional; assert 'torch' not in sys.modules; mispair.functional.triplet"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'tripletz'"):
        mispair.functional.tripletz  # noqa: B018


def test_the_example_runs():
    assert doctest.testmod(functional).failed == 0
