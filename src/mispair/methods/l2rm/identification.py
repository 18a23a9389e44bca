"""Which pairs are mismatched, and how far each is trusted (Sec. 4.1): by their losses, or by what all others say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.device_to_host import to_host
from mispair.functional.loss_split import trust_at_least, with_known, with_rate_between
from mispair.functional.mixture import MixtureFit
from mispair.methods.l2rm.config import L2RMConfig
from mispair.methods.l2rm.judged_by_others import OthersSplit
from mispair.methods.l2rm.split import LossSplit
from mispair.methods.l2rm.witness import Witness, standing
from mispair.protocols import Run
from mispair.types import Encoded, PairBatch, Split

NEARLY_ALL = 0.95  # share of pairs called mismatched from which on the split says nothing
_FAR_OFF = 0.2  # of the share that all other pairs call mismatched: losses that say so have learned too little to tell


@dataclass(frozen=True)
class Identified:
    """An epoch's split, the share that is mismatched, and whether the two groups can be told apart."""

    split: Split
    rate: float
    apart: bool


class Identification:
    """The split of an epoch and the weights that follow from it.

    `trust` is (N,), the weight of each pair that is trained on as given; None where the matched ones count alike and
    the others not at all.
    """

    def __init__(self, config: L2RMConfig, batch_size: int) -> None:
        self.config, self.batch_size = config.split, batch_size
        self.losses = LossSplit(config, batch_size)
        self.others = OthersSplit(config.split.matched_below, batch_size)
        self.witness = Witness()
        self.trust: Tensor | None = None
        self._by_others = False

    @property
    def asks_witness(self) -> bool:
        """Whether the network is surveyed before its first step."""
        return self.config.evidence in ("frozen", "both")

    def ask_witness(self, columns: Mapping[str, NDArray[Any]], device: torch.device) -> None:
        """Before the first step: what the network thinks of all pairs is kept, and weighs the warm-up."""
        self.witness.said = None
        self.trust = torch.from_numpy(1 - self.witness.judge(columns)).float().to(device)

    def ask_others(self, run: Run, device: torch.device) -> None:
        """Before the first step: what all other pairs say of each is kept, and weighs the warm-up."""
        if self.config.evidence not in ("auto", "others", "both"):
            return
        self.others.ask(run)
        if self.others.said is not None:
            trust = torch.from_numpy(1 - self.others.divide(run).p_mismatch).float().to(device)
            self.trust = trust if self.trust is None else torch.minimum(self.trust, trust)

    def begin(self, alone: bool) -> None:
        """Before an epoch's survey; `alone`: every image has one text."""
        asked = self.config.evidence == "others" or (self.config.evidence in ("auto", "both") and alone)
        self._by_others = asked and self.others.said is not None

    def survey(self, scores: Tensor) -> dict[str, Tensor]:
        """What a split is made of, by pair of a batch: from its scores (B, B)."""
        return {"loss": self.losses.loss(scores), **(standing(scores) if self.asks_witness else {})}

    def identify(self, run: Run, columns: Mapping[str, NDArray[Any]], device: torch.device) -> Identified:
        """Split all pairs by the columns of a survey (Eq. 4), record what they were split by, and set `trust`."""
        if not self._by_others:
            split, fit, signal = self.losses.divide(columns["loss"], run.image_of)
            self._by_others = self._contradicted(with_known(split, run.known, self.batch_size))
            if self._by_others:
                run.note(
                    f"by their losses {split.mismatched.mean():.0%} of the pairs look mismatched, which all other pairs"
                    " contradict: the model has learned too little to tell, so what was said before training counts"
                )
            else:
                identified = self._by_losses(run, split, fit)
                split = identified.split
                run.record(signal=signal)
        if self._by_others:
            split = self.others.divide(run)
            identified = Identified(split, float(split.p_mismatch.mean()), True)
            run.record(**self.others.columns())
        if self.asks_witness:
            identified = self._with_witness(run, columns, identified)
            split = identified.split
        run.record(loss=columns["loss"], posterior=split.p_mismatch, mismatched=split.mismatched, cost=columns["cost"])
        run.log(rate=identified.rate)
        _warn(run, split)
        soft = self.config.weights == "posterior" or (
            self.config.weights == "auto" and (self._by_others or self.asks_witness)
        )
        self.trust = torch.from_numpy(1 - split.p_mismatch).float().to(device) if soft else None
        return identified

    def _contradicted(self, split: Split) -> bool:
        """Whether losses call far more or fewer pairs mismatched than all others do: young losses are all alike."""
        if self.config.evidence != "auto" or self.others.said is None:
            return False
        return bool(abs(split.mismatched.mean() - self.others.said["p_mismatch"].mean()) > _FAR_OFF)

    def _by_losses(self, run: Run, split: Split, fit: MixtureFit) -> Identified:
        """The split by losses, its probabilities moved where they amount to a rate that all other pairs rule out.

        Losses tell which pairs are rather mismatched; how many are, young or overlapping ones tell badly.
        """
        rate = fit.mismatch_rate
        if self.config.evidence == "auto" and self.others.said is not None:
            p = with_rate_between(split.p_mismatch, *self.others.said["interval"])
            if p is not split.p_mismatch:
                accused = p > self.config.matched_below if split.mismatched.any() else split.mismatched
                split, rate = Split(p, trust_at_least(accused, p, self.batch_size)), float(p.mean())
        rate = rate if split.mismatched.any() else 0.0
        return Identified(with_known(split, run.known, self.batch_size), rate, fit.bimodal)

    def _with_witness(self, run: Run, columns: Mapping[str, NDArray[Any]], identified: Identified) -> Identified:
        """The smaller trust of the witness and, where both are asked, of the split so far."""
        p = self.witness.judge(columns)
        if self.config.evidence == "both":
            p = np.maximum(p, identified.split.p_mismatch)
        split = Split(p, trust_at_least(p > self.config.matched_below, p, self.batch_size))
        split = with_known(split, run.known, self.batch_size)
        run.record(signal=p)
        return Identified(split, float(split.p_mismatch.mean()), True)

    def trust_in(self, batch: PairBatch) -> Tensor | None:
        """How far each pair of a batch is trusted, (B,); None: all alike."""
        return None if self.trust is None else self.trust[batch.pair_ids]

    def state(self) -> dict[str, Any]:
        said = {"losses": self.losses.state(), "others": self.others.state(), "witness": self.witness.state()}
        return said if self.trust is None else {**said, "trust": self.trust.cpu()}

    def restore(self, state: dict[str, Any]) -> None:
        self.losses.restore(state["losses"])
        self.others.restore(state["others"])
        self.witness.restore(state["witness"])
        self.trust = state.get("trust")


def rather_matched(images: Encoded, texts: Encoded, trust: Tensor | None) -> tuple[Encoded, Encoded]:
    """Of a batch the pairs that match more likely than not; all of them where none does or nothing is known."""
    if trust is None:
        return images, texts
    known = (to_host(trust) >= 0.5).nonzero()[:, 0].to(trust.device)
    return (images.take(known), texts.take(known)) if len(known) else (images, texts)


def _warn(run: Run, split: Split) -> None:
    """Say what somebody who reads only the recalls would not see."""
    share = split.mismatched.mean()
    if share > NEARLY_ALL:
        run.note(
            "nearly all pairs look mismatched: either they are, or the model has learned too little to tell; a longer"
            " warm-up (--set method.warmup_epochs=...) or stronger features would show which"
        )
    elif share == 0:
        run.note("no pair can be told to be mismatched: training goes on with all pairs as given")
