"""The first 30 losses of every method, through the command line, are those that were committed."""

import json

import pytest

from mispair.methods import method_names
from tests.trajectory.losses import EPOCHS, REFERENCES, losses


@pytest.mark.parametrize("method", method_names())
def test_the_losses_are_those_committed(method, tmp_path):
    references = json.loads(REFERENCES.read_text())
    assert set(references) == set(method_names()), "remake them: python -m tests.trajectory.losses"
    found = losses(method, tmp_path / "run")
    assert len(found) == EPOCHS
    assert found == pytest.approx(references[method], rel=1e-4), "if meant: python -m tests.trajectory.losses"
