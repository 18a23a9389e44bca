"""Where two witnesses are asked before training, the smaller trust counts."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from mispair.methods.l2rm import L2RMConfig
from mispair.methods.l2rm.config import SplitConfig
from mispair.methods.l2rm.identification import Identification

P = np.array([0.4, 0.1, 0.5])  # by all other pairs


@pytest.mark.parametrize(
    ("evidence", "before", "trust"),
    [
        ("both", [0.9, 0.2, 0.5], [0.6, 0.2, 0.5]),
        ("auto", None, [0.6, 0.9, 0.5]),
        ("frozen", [0.9, 0.2, 0.5], [0.9, 0.2, 0.5]),
        ("loss", None, None),
    ],
)
def test_what_weighs_the_warm_up(evidence: Any, before: list[float] | None, trust: list[float] | None) -> None:
    identification = Identification(L2RMConfig(split=SplitConfig(evidence=evidence)), batch_size=1)
    identification.trust = None if before is None else torch.tensor(before)
    said = {"suspicion": P, "repaired": P, "p_mismatch": P}
    identification.others = cast("Any", Asked(identification.others, said))
    identification.ask_others(cast("Any", SimpleNamespace(known=None)), torch.device("cpu"))
    found = None if identification.trust is None else identification.trust.tolist()
    assert found == (None if trust is None else pytest.approx(trust))


class Asked:
    """The split by others, with an answer ready."""

    def __init__(self, others: Any, said: dict[str, Any]) -> None:
        self._others, self._answer = others, said

    def ask(self, run: Any) -> None:
        self._others.said = self._answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)
