"""Where two witnesses are asked before training, the smaller trust counts."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from mispair.methods.l2rm import L2RMConfig
from mispair.methods.l2rm.config import SplitConfig
from mispair.methods.l2rm.identification import Identification, Identified
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
    said = {"suspicion": P, "repaired": P, "p_mismatch": P, "interval": np.array([0.0, 1.0])}
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
    identification.others.said = None if said is None else by_others_said(said, max(others - 0.1, 0), others + 0.1)
    identification.losses = cast("Any", SimpleNamespace(divide=nearly_all_mismatched))
    notes: list[str] = []
    split = identify(identification, pairs, notes).split
    assert (split.mismatched.mean() < 0.5) == by_others
    assert (identification.trust is not None) == by_others
    contradicted = [note for note in notes if "all other pairs contradict" in note]
    assert bool(contradicted) == by_others
    assert all("by their losses 97% of the pairs" in note for note in contradicted), "what the losses said themselves"
    identification.begin(alone=False)
    assert not identification._by_others, "the next epoch asks the losses again"


@pytest.mark.parametrize(
    ("evidence", "low", "high", "rate"),
    [("auto", 0.2, 0.4, 0.4), ("auto", 0.5, 0.7, 0.5), ("auto", 0.1, 0.9, 0.46), ("loss", 0.2, 0.4, 0.46)],
)
def test_losses_say_who_and_all_others_within_which_limits_how_many(
    evidence: Any, low: float, high: float, rate: float
) -> None:
    pairs = 400
    identification = Identification(L2RMConfig(split=SplitConfig(evidence=evidence)), batch_size=8)
    identification.others.said = by_others_said(np.full(pairs, 0.45), low, high)
    p = np.where(np.arange(pairs) < 0.5 * pairs, 0.02, 0.9)
    identification.losses = cast("Any", SimpleNamespace(divide=lambda loss, _: (Split(p, p > 0.5), FIT, loss)))
    identified = identify(identification, pairs, [])
    moved = rate != pytest.approx(p.mean())
    assert identified.split.p_mismatch.mean() == pytest.approx(rate, abs=1e-6)
    assert identified.rate == pytest.approx(rate if moved else FIT.mismatch_rate, abs=1e-6)
    assert np.array_equal(identified.split.mismatched, identified.split.p_mismatch > 0.5)
    assert identification.trust is None, "the order is that of the losses: all or nothing, as ever"


def test_where_the_losses_accuse_nobody_nobody_is_accused() -> None:
    """One group of losses stays one, whatever the probabilities of its tail amount to."""
    pairs = 400
    identification = Identification(L2RMConfig(), batch_size=8)
    identification.others.said = by_others_said(np.full(pairs, 0.02), 0.0, 0.04)
    p = np.where(np.arange(pairs) < 0.9 * pairs, 0.01, 0.7)
    split = Split(p, np.zeros(pairs, bool))
    identification.losses = cast("Any", SimpleNamespace(divide=lambda loss, _: (split, FIT, loss)))
    identified = identify(identification, pairs, [])
    assert not identified.split.mismatched.any()
    assert identified.rate == 0
    assert identified.split.p_mismatch.mean() == pytest.approx(0.04, abs=1e-6)


FIT = SimpleNamespace(mismatch_rate=0.45, bimodal=True)


def by_others_said(p: Any, low: float, high: float) -> dict[str, Any]:
    return {"suspicion": p, "repaired": p, "p_mismatch": p, "interval": np.array([low, high])}


def identify(identification: Identification, pairs: int, notes: list[str]) -> Identified:
    """The split of an epoch of images with five texts each."""
    run = SimpleNamespace(
        known=None, image_of=np.arange(pairs) // 5, record=lambda **_: None, log=lambda **_: None, note=notes.append
    )
    identification.begin(alone=False)
    columns = {"loss": np.ones(pairs), "cost": np.ones(pairs)}
    return identification.identify(cast("Any", run), columns, torch.device("cpu"))


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
