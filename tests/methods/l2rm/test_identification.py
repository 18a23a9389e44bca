"""Where two witnesses are asked before training, the smaller trust counts."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from mispair.methods.l2rm import L2RMConfig
from mispair.methods.l2rm.config import SplitConfig
from mispair.methods.l2rm.identification import Identification
from mispair.types import Split

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


@pytest.mark.parametrize(
    ("evidence", "others", "by_others"),
    [("auto", 0.3, True), ("auto", 0.9, False), ("loss", 0.3, False), ("auto", None, False)],
)
def test_losses_that_call_nearly_all_mismatched_are_not_believed(evidence: Any, others: Any, by_others: bool) -> None:
    """Where all other pairs say that most match, they split this epoch."""
    pairs = 400
    said = None if others is None else np.where(np.arange(pairs) < others * pairs, 1.0, 0.0)
    identification = Identification(L2RMConfig(split=SplitConfig(evidence=evidence)), batch_size=8)
    identification.others.said = None if said is None else {"suspicion": said, "repaired": said, "p_mismatch": said}
    identification.losses = cast("Any", SimpleNamespace(divide=nearly_all_mismatched))
    notes: list[str] = []
    run = SimpleNamespace(
        known=None, image_of=np.arange(pairs) // 5, record=lambda **_: None, log=lambda **_: None, note=notes.append
    )
    identification.begin(alone=False)
    columns = {"loss": np.ones(pairs), "cost": np.ones(pairs)}
    split = identification.identify(cast("Any", run), columns, torch.device("cpu")).split
    assert (split.mismatched.mean() < 0.5) == by_others
    assert (identification.trust is not None) == by_others
    assert any("all other pairs contradict" in note for note in notes) == by_others
    identification.begin(alone=False)
    assert not identification._by_others, "the next epoch asks the losses again"


def nearly_all_mismatched(loss: Any, _: Any) -> Any:
    p = np.where(np.arange(len(loss)) < 12, 0.1, 0.9)
    return Split(p, p > 0.5), SimpleNamespace(mismatch_rate=0.9, bimodal=True), loss


class Asked:
    """The split by others, with an answer ready."""

    def __init__(self, others: Any, said: dict[str, Any]) -> None:
        self._others, self._answer = others, said

    def ask(self, run: Any) -> None:
        self._others.said = self._answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)
