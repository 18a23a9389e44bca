"""Data for the methods."""

import pytest

from tests.synthetic import tiny_data


@pytest.fixture(scope="module")
def data():
    """Half of the pairs mismatched."""
    return tiny_data(rate=0.5)
