"""On a generated world with 60 % of the pairs mismatched, every robust method beats plain training. Minutes."""

import pytest
from benchmarks.quality import reach, show
from rich.console import Console

from mispair.methods import about_method, method_names

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def reached(tmp_path_factory, request):
    found = {name: reach(name, tmp_path_factory.mktemp(name)) for name in method_names()}
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        Console(width=120).print("", show(found))
    return found


@pytest.mark.parametrize("name", [name for name in method_names() if name != "plain"])
def test_every_robust_method_beats_plain(reached, name):
    assert reached[name].rsum > reached["plain"].rsum + 20


@pytest.mark.parametrize("name", method_names())
def test_the_stated_cost_is_the_counted_one(reached, name):
    assert about_method(name).cost == pytest.approx(reached[name].cost / reached["plain"].cost, abs=0.15)
