"""Small data, half of it mismatched."""

import pytest

from tests.synthetic import tiny_data


@pytest.fixture(scope="module")
def data():
    return tiny_data(rate=0.5)
