"""Learning rates by hand."""

import pytest

from mispair.runtime.schedule import learning_rate


def test_steps():
    found = [learning_rate("step", 2.0, epoch, 9, (3, 5), 0.1) for epoch in range(7)]
    assert found == pytest.approx([2, 2, 2, 0.2, 0.2, 0.02, 0.02])
    assert learning_rate("step", 2.0, 8, 9) == 2.0
    assert learning_rate("step", 1.0, 3, 9, (3,)) == pytest.approx(0.1)


def test_cosine_falls_to_nothing():
    assert learning_rate("cosine", 2.0, 0, 4) == 2.0
    assert learning_rate("cosine", 2.0, 1, 4) == pytest.approx(1 + 2**-0.5)
    assert learning_rate("cosine", 2.0, 2, 4) == pytest.approx(1.0)
    assert learning_rate("cosine", 2.0, 4, 4) == pytest.approx(0.0)
    assert learning_rate("cosine", 2.0, 0, 0) == 2.0


def test_constant():
    assert learning_rate("constant", 2.0, 7, 9, (3, 5)) == 2.0
