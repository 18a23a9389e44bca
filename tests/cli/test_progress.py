"""Progress as it is told where there is no terminal."""

import pytest

from mispair.cli.progress import _rate


@pytest.mark.parametrize(
    ("rate", "text"), [(12345.6, "12,346/s"), (10, "10/s"), (2.5, "2.5/s"), (0.5, "2 s each"), (0.01, "100 s each")]
)
def test_slow_work_is_told_in_seconds_each(rate, text):
    assert _rate(rate) == text
