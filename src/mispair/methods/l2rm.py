"""L2RM: rematch mismatched pairs with partial optimal transport (Han et al., CVPR 2024, arXiv:2403.05105).

After warming up on all pairs, every epoch (Algorithm 1):
  1. score every given pair and split by a two-component mixture of the losses     -> _split   (Eq. 4)
then in every step, on a matched and a mismatched batch:
  2. teach the transport cost on pairs known to match, hidden among mismatched     -> _teach   (Eq. 6)
  3. rematch the mismatched batch by masked partial transport                      -> _rematch (Eq. 7-9, Algorithm 2)
  4. train on the matched pairs and on the refined alignment                       -> _step    (Eq. 10-11)

Beyond the paper, each a value too: the texts shown with one image teach each other while they agree (`siblings`), a
pair is judged together with them, and rematching sees the nearest images of the whole mismatched set (`sees`).

Every ablation and study of the paper is a value of `L2RMConfig`. `paper()` and `official()` are the method as written
and as released; the defaults are what measured best. The differences, with reasons, are in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from mispair.functional.contrast import info_nce, symmetric_cross_entropy
from mispair.functional.divergence import Divergence, alignment_divergence
from mispair.functional.groups import shrink_to_groups
from mispair.functional.mixture import SEPARATED, MixtureFit, decide_mismatched, fit_beta_mixture, fit_gaussian_mixture
from mispair.functional.ranking import triplet
from mispair.functional.transport import partial_transport
from mispair.methods.about import About
from mispair.methods.costs import FixedCost, LearnedCost, PaperCost
from mispair.methods.judging import judging
from mispair.methods.pool import Pool
from mispair.methods.queue import Queue
from mispair.methods.siblings import Kinship, gist
from mispair.protocols import Companions, Run
from mispair.section import Section
from mispair.types import Alignment, Encoded, PairBatch, Split

ABOUT = About(
    name="l2rm",
    paper="Learning to Rematch Mismatched Pairs for Robust Cross-Modal Retrieval",
    venue="CVPR",
    year=2024,
    url="https://arxiv.org/abs/2403.05105",
    networks=1,
    cost=1.7,
    mismatched="is rematched: optimal transport finds its caption a better image in the whole set",
)

Loss = Literal["triplet", "infonce", "infonce_rce"]


class L2RMConfig(Section):
    """Defaults measured on real photographs; see PAPERS.md."""

    name: Literal["l2rm"] = "l2rm"
    warmup_epochs: int = Field(default=5, ge=1)
    warmup_loss: Loss = "infonce_rce"
    temperature: float = Field(default=0.05, gt=0.0)
    margin: float = Field(default=0.2, gt=0.0)

    signal: Literal["triplet_mean", "triplet_hardest", "infonce"] = "triplet_mean"  # the loss the mixture looks at
    history: float = Field(default=0.5, ge=0.0, lt=1.0)  # share of the past epochs' loss kept in it
    mixture: Literal["beta", "gaussian"] = "gaussian"
    matched_below: float = Field(default=0.5, gt=0.0, lt=1.0)  # posterior under which a pair is trained on as given
    one_group: Literal["posterior", "none"] = "none"  # who is mismatched where the losses show one group only

    matched_loss: Loss = "infonce_rce"
    matched_reduction: Literal["sum", "mean"] = "mean"
    cost: Literal["learned", "paper", "score", "cosine"] = "learned"
    cost_rate: float = Field(default=10.0, gt=0.0)  # learning rate of the cost relative to the network's
    # share of a batch that is rematched; 1 is full transport; auto: as many as find a partner as good as a matched one
    mass: Literal["auto"] | Annotated[float, Field(gt=0.0, le=1.0)] = "auto"
    entropy: float = Field(default=0.03, gt=0.0)
    entropy_on: Literal["extended", "plan"] = "extended"
    stop: Literal["marginals", "potentials"] = "marginals"
    forbid_given: Literal["auto", "always", "never"] = "auto"  # auto: only where the losses show two groups
    divergence: Divergence = "sym_kl"
    rematch_weight: float = Field(default=1.0, ge=0.0)
    rematch_reduction: Literal["sum", "mean"] = "mean"
    # which images rematching sees: those of its batch, also those of past batches, or of the whole mismatched set those
    # nearest to its texts
    sees: Literal["batch", "queue", "nearest"] = "nearest"
    pool: int = Field(default=256, ge=2)  # how many, where it is not the batch
    nearest: int = Field(default=4, ge=1)  # images each text may bring into the pool
    queue_sides: Literal["images", "both"] = "images"  # of past batches
    queue_features: Literal["fresh", "stale"] = "fresh"  # encoded anew, or as they were
    siblings: Literal["auto", "always", "never"] = "auto"  # texts shown with one image; auto: as long as they agree
    sibling_weight: float = Field(default=1.0, ge=0.0)

    @model_validator(mode="after")
    def _go_together(self) -> L2RMConfig:
        if self.cost == "paper" and self.sees == "queue" and self.queue_sides == "both":
            raise ValueError("cost=paper is a layer of one batch's width: it cannot see the texts of past batches")
        if self.stop == "potentials" and (self.mass == 1.0 or self.entropy_on == "plan"):
            raise ValueError("stop=potentials is the released iteration: it needs mass below 1 and entropy_on=extended")
        return self

    @classmethod
    def paper(cls) -> L2RMConfig:
        """As written."""
        return cls(
            signal="triplet_hardest", history=0.0, mixture="beta", one_group="posterior", matched_loss="triplet",
            matched_reduction="sum", cost="paper", cost_rate=0.01, mass=0.1, entropy=0.01, forbid_given="always",
            rematch_reduction="sum", sees="batch", siblings="never",
        )  # fmt: skip

    @classmethod
    def official(cls) -> L2RMConfig:
        """As released."""
        return cls(
            signal="triplet_mean", history=0.0, mixture="beta", one_group="posterior", matched_loss="triplet",
            matched_reduction="sum", cost="paper", cost_rate=0.01, mass=0.1, entropy=0.01, stop="potentials",
            forbid_given="always", sees="batch", siblings="never",
        )  # fmt: skip


class L2RM:
    """One retrieval network and the cost that rematches for it."""

    scorers: tuple[str, ...] = ("net",)

    def __init__(self, config: L2RMConfig, net: nn.Module, batch_size: int) -> None:
        self.config = config
        self.net: Any = net
        self.cost: Any = {"learned": LearnedCost, "score": FixedCost, "cosine": FixedCost}.get(
            config.cost, lambda: PaperCost(batch_size)
        )()
        self.modules: Mapping[str, nn.Module] = {"net": net}
        if config.cost in ("learned", "paper"):
            self.modules = {"net": net, "cost": self.cost}
        self.rate_scale: Mapping[str, float] = {"cost": config.cost_rate}
        self.batch_size = batch_size
        self.losses: NDArray[np.float64] | None = None  # running per-pair loss
        past = max(0, -(-config.pool // batch_size) - 1)
        self.queue = Queue(past, config.queue_sides, config.queue_features)
        self.pool: Pool | None = None
        self._inside = False  # whether a saved state needs the pool
        self._shown: Tensor | None = None  # (N,) the image each pair shows
        self.forbid, self.mass = True, 0.1
        self.kinship = Kinship(config.siblings, config.sibling_weight)

    # ------------------------------------------------------------------------------------------- Algorithm 1

    def epoch(self, epoch: int, run: Run) -> None:
        self.kinship.begin(run.image_of, epoch)
        if epoch < self.config.warmup_epochs:
            run.sweep(self._warm_up, batch=None, **self.kinship.streams("batch"))
            return
        split, fit = self._split(run)
        self.forbid = self.config.forbid_given == "always" or (self.config.forbid_given == "auto" and fit.bimodal)
        mismatched = split.mismatched_ids
        run.log(
            matched=len(split.matched_ids) / len(split.mismatched), rate=fit.mismatch_rate if len(mismatched) else 0.0
        )
        if len(mismatched) < self.batch_size or self.config.rematch_weight == 0:
            run.sweep(self._matched_only, matched=split.matched_ids, **self.kinship.streams("matched"))
            return
        beside = self.kinship.streams("matched", "mismatched")
        if self.config.sees == "nearest":
            beside["nearest"] = Companions(self._nearest, "images")
        self._inside = True
        run.sweep(self._step, matched=split.matched_ids, mismatched=mismatched, **beside)
        self._inside = False

    def _warm_up(self, run: Run, batch: PairBatch, batch_kin: PairBatch | None = None) -> None:
        images, texts = run.encode(self.net, batch)
        losses = self._loss(self.config.warmup_loss, images, texts)
        run.log(loss=losses.mean())
        loss = losses.sum() if self.config.warmup_loss == "triplet" else losses.mean()
        run.minimize("net", loss + self._kin(run, texts, batch_kin))

    def _split(self, run: Run) -> tuple[Split, MixtureFit]:
        """Identify mismatched pairs from the distribution of their losses (Sec. 4.1, Eq. 4)."""
        config = self.config
        found = run.survey(lambda batch: self._look(run, batch), passing=("image", "text"))
        keep = config.history if self.losses is not None else 0.0
        self.losses = found["loss"] if self.losses is None else keep * self.losses + (1 - keep) * found["loss"]
        signal = self.losses if config.siblings == "never" else shrink_to_groups(self.losses, run.image_of)
        fit = (fit_beta_mixture if config.mixture == "beta" else fit_gaussian_mixture)(signal)
        posterior = fit.posterior_mismatched(signal)
        mismatched = decide_mismatched(fit, signal, config.matched_below)
        if config.one_group == "none" and _one_group(fit):  # rematching pairs that match only confuses
            mismatched[:] = False
        if (~mismatched).sum() < self.batch_size:  # nothing to rank with: trust the least suspicious batch
            mismatched[np.argsort(signal, kind="stable")[: self.batch_size]] = False
        run.record(loss=found["loss"], signal=signal, posterior=posterior, mismatched=mismatched, cost=found["cost"])
        self._prepare(run, Split(posterior, mismatched), found)
        return Split(posterior, mismatched), fit

    def _look(self, run: Run, batch: PairBatch) -> dict[str, Tensor]:
        """What a survey brings home of a batch, by pair."""
        images, texts = run.encode(self.net, batch)
        scores = self._scores(images, texts)
        others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool, device=scores.device), -torch.inf)
        found = {"loss": self._signal(scores), "cost": self._transport_cost(scores, images, texts).diagonal()}
        found |= {"given": scores.diagonal(), "best": others.amax(0)}
        if self.config.sees == "nearest":
            found |= {"image": self.net.pool_images(images), "text": self.net.pool_texts(texts)}
        return found

    def _prepare(self, run: Run, split: Split, found: dict[str, NDArray[Any]]) -> None:
        """Before a main epoch: the pool, and how much of a batch to rematch."""
        if self.config.sees == "nearest" and "image" not in found:
            return  # the run goes on inside this epoch: what came of the survey is in the saved state
        matched, mismatched = ~split.mismatched, split.mismatched_ids
        given, best = found["given"], found["best"][split.mismatched]
        self.pool = None
        if "image" in found and len(mismatched) >= self.batch_size:
            vectors = found["image"], found["text"]
            self.pool = Pool.gather(mismatched, run.image_of, *vectors, self.kinship.trusted, self.config.nearest)
            given, best = Pool.given(run.image_of, *vectors, self.kinship.trusted), self.pool.best()
        self.mass = 0.1 if self.config.mass == "auto" else self.config.mass
        if self.config.mass == "auto" and len(best):
            # A text is worth moving when the best image it could get suits it as well as matched ones suit theirs.
            share = float((best >= np.median(given[matched])).mean()) * float(split.p_mismatch[mismatched].mean())
            self.mass = min(max(share, 0.05), 0.5)

    def _nearest(self, chosen: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        # A run that goes on inside an epoch gets its pool back when the sweep begins: it is not there any earlier.
        assert self.pool is not None
        return self.pool.around(chosen["mismatched"], self.config.pool)

    def _step(
        self,
        run: Run,
        matched: PairBatch,
        mismatched: PairBatch,
        nearest: PairBatch | None = None,
        matched_kin: PairBatch | None = None,
        mismatched_kin: PairBatch | None = None,
    ) -> None:
        config = self.config
        images, texts = run.encode(self.net, matched)
        captions = run.encode_texts(self.net, mismatched)
        seen = mismatched if nearest is None else nearest
        others, own = run.encode_images(self.net, seen), captions
        image_ids, text_ids = seen.pair_ids, mismatched.pair_ids
        if config.sees == "queue":
            others, captions, image_ids, text_ids = self.queue.widen(run, self.net, mismatched, others, captions)
        if "cost" in self.modules:
            run.minimize("cost", self._teach(run, images, texts, others))
        ranking = self._loss(config.matched_loss, images, texts)
        scores = self._scores(others, captions)
        alignment = self._rematch(run, scores, others, captions, image_ids, text_ids)
        rows = alignment_divergence(scores, alignment.plan, config.temperature, "i2t", config.divergence)
        columns = alignment_divergence(scores, alignment.plan, config.temperature, "t2i", config.divergence)
        refined = _reduce(rows, config.rematch_reduction) + _reduce(columns, config.rematch_reduction)
        run.log(loss=ranking.mean(), rematch=rows.mean() + columns.mean())
        run.log(mass=alignment.transported, converged=alignment.done.float())
        kin = (self._kin(run, texts, matched_kin) + self._kin(run, own, mismatched_kin)) / 2
        run.minimize("net", _reduce(ranking, config.matched_reduction) + config.rematch_weight * refined + kin)

    def _matched_only(self, run: Run, matched: PairBatch, matched_kin: PairBatch | None = None) -> None:
        images, texts = run.encode(self.net, matched)
        losses = self._loss(self.config.matched_loss, images, texts)
        run.log(loss=losses.mean())
        run.minimize("net", _reduce(losses, self.config.matched_reduction) + self._kin(run, texts, matched_kin))

    def _kin(self, run: Run, texts: Encoded, siblings: PairBatch | None) -> Tensor:
        """Texts shown with one image against each other, as long as they agree; nothing where there are none."""
        if siblings is None:
            return texts.values.new_zeros(())
        scores = gist(texts) @ gist(run.encode_texts(self.net, siblings)).T
        self.kinship.observe(scores)
        return self.config.sibling_weight * info_nce(scores.float(), self.config.temperature).mean()

    # ------------------------------------------------------------------------------------------- rematching

    def _teach(self, run: Run, images: Encoded, texts: Encoded, others: Encoded) -> Tensor:
        """Hide a few matched images among mismatched ones; their captions are known (Sec. 4.2, Eq. 6)."""
        places = min(self.batch_size, len(others))
        count = min(places, int(torch.randint(1, max(2, self.batch_size // 10 + 1), (), generator=run.rng)))
        keys = torch.randperm(len(texts), generator=run.rng)[:count].to(texts.mask.device)
        slots = torch.randperm(places, generator=run.rng)[:count].to(texts.mask.device)
        with judging(self.net):  # also when one image is all there is to score
            among = torch.arange(places, device=slots.device)
            among[slots] = len(others) + keys
            hidden = others.detached().joined(images.detached()).take(among)
            if self.config.cost == "paper":  # reads only the rows of the matching cells
                scores, slots = self._scores(hidden.take(slots), texts.detached()), torch.arange(count)
            else:
                scores = self._scores(hidden, texts.detached())
        loss: Tensor = self.cost.teach(scores, slots.to(scores.device), keys)
        return loss

    def seen_with(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pairs whose images rematching compares with the texts of the pairs `ids`."""
        return ids if self.pool is None else self.pool.around(ids, self.config.pool)

    @torch.no_grad()
    def rematch(self, run: Run, seen: PairBatch, batch: PairBatch) -> Alignment:
        """The refined alignment of the images of `seen` and the texts of `batch`; for looking at, not for training."""
        images, texts = run.encode_images(self.net, seen), run.encode_texts(self.net, batch)
        return self._rematch(run, self._scores(images, texts), images, texts, seen.pair_ids, batch.pair_ids)

    @torch.no_grad()
    def _rematch(
        self, run: Run, scores: Tensor, images: Encoded, texts: Encoded, image_ids: Tensor, text_ids: Tensor
    ) -> Alignment:
        """The refined alignment: partial transport without the given pairs (Eq. 7-9)."""
        config = self.config
        if self.pool is not None and self.kinship.trusted:  # siblings together know better than one text alone
            cost = self.cost(self.pool.similarity(image_ids, text_ids))
        else:
            cost = self._transport_cost(scores, images, texts)
        given = None
        if self.forbid:
            if self._shown is None or self._shown.device != text_ids.device:  # once, not in every step
                self._shown = torch.from_numpy(run.image_of).to(text_ids.device)
            given = self._shown[image_ids][:, None] == self._shown[text_ids][None, :]
        # One image may take one caption, however many images there are.
        room = scores.new_full((len(scores),), 1 / min(scores.shape)) if len(scores) > scores.shape[1] else None
        return partial_transport(
            cost, self.mass, config.entropy, given, room,
            entropy_on=config.entropy_on, stop=config.stop, validate=False,
        )  # fmt: skip

    def _transport_cost(self, scores: Tensor, images: Encoded, texts: Encoded) -> Tensor:
        if self.config.cost == "cosine":
            with judging(self.net):
                scores = self.net.pool_images(images) @ self.net.pool_texts(texts).T
        cost: Tensor = self.cost(scores.detach().float())
        return cost

    # ------------------------------------------------------------------------------------------------ scores

    def _scores(self, images: Encoded, texts: Encoded, sparse: bool = False) -> Tensor:
        scores: Tensor = self.net.link(self.net.similarity(images, texts, sparse=sparse)).float()
        return scores

    def _signal(self, scores: Tensor) -> Tensor:
        if self.config.signal == "infonce":
            return info_nce(scores, self.config.temperature)
        return triplet(scores, self.config.margin, "mean" if self.config.signal == "triplet_mean" else "hardest")

    def _loss(self, kind: Loss, images: Encoded, texts: Encoded) -> Tensor:
        scores = self._scores(images, texts, sparse=kind == "triplet")  # which reads hardest negatives only
        if kind == "triplet":
            return triplet(scores, self.config.margin)
        if kind == "infonce":
            return info_nce(scores, self.config.temperature)
        return symmetric_cross_entropy(scores, self.config.temperature)

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"forbid": self.forbid, "mass": self.mass, "kinship": self.kinship.state()}
        if self.losses is not None:
            state["losses"] = torch.from_numpy(self.losses.copy())
        if self.pool is not None and self._inside:
            state["pool"] = self.pool.state()
        state["queue"] = self.queue.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self.forbid, self.mass = state["forbid"], state["mass"]
        self.kinship.restore(state["kinship"])
        self.losses = state["losses"].numpy() if "losses" in state else None
        self.pool = Pool.restored(state["pool"]) if "pool" in state else None
        self.queue.restore(state["queue"])


def _one_group(fit: MixtureFit) -> bool:
    """Whether the upper component is but the tail of one group: small, and not apart.

    A large one that overlaps is another matter: mismatched pairs the network cannot tell well yet.
    """
    return fit.apart < SEPARATED and fit.mismatch_rate < 0.25


def _reduce(values: Tensor, how: Literal["sum", "mean"]) -> Tensor:
    return values.sum() if how == "sum" else values.mean()
