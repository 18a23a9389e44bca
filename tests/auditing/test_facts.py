"""The histogram of an audit: columns of finite numbers, one more edge than bins."""

from __future__ import annotations

from typing import Any

import pytest

from mispair.auditing.facts import _histogram

GOOD = {"evidence": "margin", "edges": [0, 0.5, 1], "counts": [3, 4], "matched": [1.0, 2.0]}


def test_a_histogram_is_kept_as_it_is() -> None:
    assert _histogram(GOOD) == GOOD
    assert _histogram({"evidence": "margin"}) == {"evidence": "margin"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"matched": (1.0, 2.0)}, "matched is no list of numbers"),
        ({"matched": [1.0, "2"]}, "matched is no list of numbers"),
        ({"counts": [3, 1e301]}, "counts is no list of numbers"),
        ({"edges": [0, 1]}, "differ in length"),
        ({"matched": [1.0]}, "differ in length"),
    ],
)
def test_another_histogram_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        _histogram({**GOOD, **change})
