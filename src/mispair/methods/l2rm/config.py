"""The values of L2RM, in the sections of the paper: split, cost, transport, candidates, siblings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mispair.functional.divergence import Divergence
from mispair.functional.mixture import WhenUnimodal
from mispair.functional.mixture_families import Family
from mispair.functional.pair_losses import PairLoss
from mispair.methods.base import MethodConfig
from mispair.section import Section

Reduction = Literal["sum", "mean"]


class SplitConfig(Section):
    """Which pairs are mismatched (Sec. 4.1): the loss a mixture is fitted to, and what is made of the fit.

    Beyond the paper, a pair can be judged by what all other pairs say about it, compared with pairs mismatched on
    purpose; every pair then trains as much as it is trusted instead of all or nothing.
    """

    # auto: others where every image has one text, else loss; frozen: the network before its first step, for one that
    # starts pretrained; both: the smaller trust of frozen and auto
    evidence: Literal["loss", "others", "auto", "frozen", "both"] = "auto"
    weights: Literal["split", "posterior", "auto"] = "auto"  # of pairs trained on as given; auto: posterior by others
    signal: Literal["triplet_mean", "triplet_hardest", "infonce"] = "triplet_mean"  # the loss the mixture is fitted to
    history: float = Field(default=0.5, ge=0.0, lt=1.0)  # share of the past epochs' loss kept in it
    mixture: Family = "gaussian"
    matched_below: float = Field(default=0.5, gt=0.0, lt=1.0)  # posterior under which a pair is trained on as given
    when_unimodal: WhenUnimodal = "none_if_tail"  # what is mismatched if the losses show one group


class CostConfig(Section):
    """What it costs to match an image with a text (Sec. 4.2)."""

    kind: Literal["learned", "paper", "score", "cosine"] = "learned"
    rate: float = Field(default=10.0, gt=0.0)  # learning rate relative to the network's


class TransportConfig(Section):
    """Partial optimal transport (Sec. 4.2, Eq. 7-9)."""

    # share of a batch that is rematched; 1 is full transport; auto: as many as find a partner as good as a matched one
    mass: Literal["auto"] | Annotated[float, Field(gt=0.0, le=1.0)] = "auto"
    entropy: float = Field(default=0.03, gt=0.0)
    entropy_on: Literal["extended", "plan"] = "extended"
    stop: Literal["marginals", "potentials"] = "marginals"
    forbid_given: Literal["auto", "always", "never"] = "auto"  # auto: only where the losses show two groups


class CandidatesConfig(Section):
    """Which images rematching compares with the texts of a mismatched batch.

    batch: those of the batch (the paper); queue: also those of past batches; nearest: of the whole mismatched set those
    nearest to the texts.
    """

    kind: Literal["batch", "queue", "nearest"] = "nearest"
    size: int = Field(default=256, ge=2)  # how many images, where it is not the batch
    per_text: int = Field(default=4, ge=1)  # nearest: images each text may bring in
    queue_sides: Literal["images", "both"] = "images"  # queue: only images of past batches, or their texts too
    queue_features: Literal["fresh", "stale"] = "fresh"  # queue: encoded again in every step, or as they were


class SiblingsConfig(Section):
    """Texts shown with one image teach each other, and are judged together.

    Where every image has one text, one half of its words teaches the other, the more the higher the estimated rate r.
    """

    when: Literal["auto", "always", "never"] = "auto"  # auto: as long as they agree
    weight: float = Field(default=1.0, ge=0.0)
    halves: float = Field(default=1.0, ge=0.0)  # of half a text against its other half; times min(1, 2 r)


# Where values were before they had sections.
_MOVED = {
    "signal": "split.signal", "history": "split.history", "mixture": "split.mixture",
    "matched_below": "split.matched_below", "one_group": "split.when_unimodal (none is none_if_tail there)",
    "cost": "cost.kind", "cost_rate": "cost.rate", "mass": "transport.mass", "entropy": "transport.entropy",
    "entropy_on": "transport.entropy_on", "stop": "transport.stop", "forbid_given": "transport.forbid_given",
    "sees": "candidates.kind", "pool": "candidates.size", "nearest": "candidates.per_text",
    "queue_sides": "candidates.queue_sides", "queue_features": "candidates.queue_features",
    "siblings": "siblings.when", "sibling_weight": "siblings.weight",
}  # fmt: skip


class L2RMConfig(MethodConfig):
    """Defaults measured on real photographs; see PAPERS.md."""

    name: Literal["l2rm"] = "l2rm"
    warmup_epochs: int = Field(default=5, ge=1)
    warmup_loss: PairLoss = "infonce_rce"
    temperature: float = Field(default=0.05, gt=0.0)
    margin: float = Field(default=0.2, gt=0.0)
    matched_loss: PairLoss = "infonce_rce"
    matched_reduction: Reduction = "mean"
    divergence: Divergence = "sym_kl"
    rematch_weight: float = Field(default=1.0, ge=0.0)
    # what counts alike: a rematched pair and one trained on as given, or the batches of both that a step takes
    rematch_per: Literal["pair", "batch"] = "pair"
    rematch_reduction: Reduction = "mean"
    split: SplitConfig = SplitConfig()
    cost: CostConfig = CostConfig()
    transport: TransportConfig = TransportConfig()
    candidates: CandidatesConfig = CandidatesConfig()
    siblings: SiblingsConfig = SiblingsConfig()

    @model_validator(mode="before")
    @classmethod
    def _have_moved(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key, place in _MOVED.items():
                if key in values and not (key in cls.model_fields and isinstance(values[key], dict | Section)):
                    raise ValueError(f"method.{key} is now method.{place}")
        return values

    @model_validator(mode="after")
    def _go_together(self) -> L2RMConfig:
        candidates, transport = self.candidates, self.transport
        if self.cost.kind == "paper" and candidates.kind == "queue" and candidates.queue_sides == "both":
            raise ValueError("cost.kind=paper is a layer of one batch's width: it cannot see the texts of past batches")
        if transport.stop == "potentials" and (transport.mass == 1.0 or transport.entropy_on == "plan"):
            raise ValueError(
                "transport.stop=potentials is the released iteration: it needs mass below 1 and entropy_on=extended"
            )
        return self

    @property
    def mixture_family(self) -> Family:
        return self.split.mixture

    @property
    def signal_name(self) -> str:
        return self.split.signal

    @classmethod
    def paper(cls) -> L2RMConfig:
        """As the paper's text and equations have it."""
        return cls(
            matched_loss="triplet",
            matched_reduction="sum",
            rematch_reduction="sum",
            rematch_per="batch",
            split=SplitConfig(
                evidence="loss",
                weights="split",
                signal="triplet_hardest",
                history=0.0,
                mixture="beta",
                when_unimodal="posterior",
            ),
            cost=CostConfig(kind="paper", rate=0.01),
            transport=TransportConfig(mass=0.1, entropy=0.01, forbid_given="always"),
            candidates=CandidatesConfig(kind="batch"),
            siblings=SiblingsConfig(when="never", halves=0.0),
        )

    @classmethod
    def official(cls) -> L2RMConfig:
        """As the authors' released code has it."""
        return cls(
            matched_loss="triplet",
            matched_reduction="sum",
            rematch_per="batch",
            split=SplitConfig(evidence="loss", weights="split", history=0.0, mixture="beta", when_unimodal="posterior"),
            cost=CostConfig(kind="paper", rate=0.01),
            transport=TransportConfig(mass=0.1, entropy=0.01, stop="potentials", forbid_given="always"),
            candidates=CandidatesConfig(kind="batch"),
            siblings=SiblingsConfig(when="never", halves=0.0),
        )
