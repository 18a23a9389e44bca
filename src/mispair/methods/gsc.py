"""GSC: the two sides of a matching pair stand alike to everybody else (Zhao et al., CVPR 2024).

Mitigating Noisy Correspondence by Geometrical Structure Consistency Learning.

No warm-up: every pair starts trusted. In every step:
  1. InfoNCE between images and texts, each pair weighted by its trust              -> _step
  2. the same between image structures and text structures, γ times                 -> _step
and after every epoch:
  3. trust is the smaller of two running means: the posterior of a mixture of how
     alike the pair's two structures are, and the probability it gave its partner   -> _trust
What was changed, and why, is in PAPERS.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cosine_similarity

from mispair.device_to_host import to_host
from mispair.functional.contrastive_losses import info_nce, log_probabilities
from mispair.functional.loss_split import with_known
from mispair.functional.mixture import fit_gaussian_mixture
from mispair.functional.mixture_families import Family
from mispair.functional.soft_labels import structures
from mispair.methods.about import About
from mispair.methods.base import MethodBase, MethodConfig, scores_of, weighed
from mispair.protocols import Run
from mispair.retrieval_module import RetrievalModule
from mispair.types import PairBatch, Split

_COLUMNS = ("agreement", "prediction", "structural", "predicted")


class GSCConfig(MethodConfig):
    """As published; see PAPERS.md."""

    name: Literal["gsc"] = "gsc"
    temperature: float = Field(default=0.07, gt=0.0)
    structure_weight: float = Field(default=0.01, ge=0.0)  # γ
    structure_temperature: float = Field(default=1.0, gt=0.0)
    renewal: float = Field(default=0.7, gt=0.0, le=1.0)  # β, share of the newest epoch in the running means
    mixture: Literal["gaussian"] = "gaussian"

    @property
    def mixture_family(self) -> Family:
        return self.mixture


class GSC(MethodBase[GSCConfig]):
    """One network, and how far it trusts each pair."""

    Config = GSCConfig
    about = About(
        name="gsc",
        paper="Mitigating Noisy Correspondence by Geometrical Structure Consistency Learning",
        venue="CVPR",
        year=2024,
        url="https://arxiv.org/abs/2405.16996",
        networks=1,
        cost=1.0,
        mismatched="weighs as little as it is trusted: its sides stand differently to the rest of the batch",
    )
    takes_known = True

    def __init__(self, config: GSCConfig, make_network: Callable[[], RetrievalModule], batch_size: int) -> None:
        super().__init__(config, make_network, batch_size)
        # By pair id: what the last pass saw, and the running means of what it implies.
        self.columns: dict[str, Tensor] = {}
        self._known: Tensor | None = None  # what people said of pairs, by pair id

    def epoch(self, epoch: int, run: Run) -> None:
        columns = self.columns or {name: torch.ones(run.pairs) for name in _COLUMNS}
        self.columns = {name: column.to(self.device) for name, column in columns.items()}
        self._known = None if run.known is None else torch.from_numpy(run.known).to(self.device)
        run.sweep(self._step, batch=None)
        self._trust(run)

    def _step(self, run: Run, batch: PairBatch) -> None:
        config, ids = self.config, batch.pair_ids
        images, texts = run.encode(self.net, batch)
        scores = scores_of(self.net, images, texts)
        trust = self._trust_in(ids)
        pooled = self.net.pool_images(images).float(), self.net.pool_texts(texts).float()
        by_image, by_text = structures(*pooled, trust)
        pairs = 0.5 * trust * info_nce(scores, config.temperature)
        structure = 0.5 * trust * info_nce(by_image @ by_text.T, config.structure_temperature)
        run.log(loss=pairs.mean(), structure=structure.mean(), trust=trust.mean())
        pairs, structure = weighed(run, pairs, ids), weighed(run, structure, ids)
        run.minimize("net", pairs.mean() + config.structure_weight * structure.mean())
        with torch.no_grad():
            v2t, t2v = log_probabilities(scores, config.temperature)
            self.columns["prediction"][ids] = (0.5 * (v2t.exp() + t2v.exp())).diagonal()
            self.columns["agreement"][ids] = cosine_similarity(by_image, by_text)

    def _trust(self, run: Run) -> None:
        """Renew both running means from what the pass has seen."""
        self.columns = {name: to_host(column) for name, column in self.columns.items()}
        apart = 1 - self.columns["agreement"].double()
        fit = fit_gaussian_mixture(apart)
        for name, newest in (
            ("structural", 1 - fit.posterior_mismatched(apart)),
            ("predicted", self.columns["prediction"]),
        ):
            self.columns[name] += self.config.renewal * (newest.float() - self.columns[name])
        posterior = 1 - self.columns["structural"].double().numpy()
        split = with_known(Split(posterior, posterior > 0.5), run.known, 0)
        trust = torch.minimum(self.columns["structural"], self.columns["predicted"])
        run.record(signal=1 - trust.double().numpy(), posterior=split.p_mismatch, mismatched=split.mismatched)

    def _trust_in(self, ids: Tensor) -> Tensor:
        """How far the pairs `ids` are trusted, (n,): as far as people say, where they do."""
        trust = torch.minimum(self.columns["structural"][ids], self.columns["predicted"][ids])
        return trust if self._known is None else torch.where(self._known[ids] < 0, trust, 1.0 - self._known[ids])

    def state(self) -> dict[str, Any]:
        return {name: column.clone() for name, column in self.columns.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self.columns = {name: column.clone().to(self.device) for name, column in state.items()}
