"""What methods that co-teach two networks share: who learns from whom, and judging without learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mispair.functional.ranking import triplet
from mispair.protocols import Run
from mispair.types import PairBatch, Split

PEERS = (("a", "b"), ("b", "a"))  # (who learns, whose split it learns from)


@contextmanager
def judging(*networks: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradient inside; afterwards the networks are as they were."""
    before = [network.training for network in networks]
    for network in networks:
        network.eval()
    with torch.no_grad():
        yield
    for network, training in zip(networks, before, strict=True):
        network.train(training)
    # Mixed precision keeps low-precision copies of weights; older torch would go on with these, without gradient.
    torch.clear_autocast_cache()


def score(run: Run, network: Any, batch: PairBatch, sparse: bool = False) -> Tensor:
    """Scores of every image of the batch against every text of it, (B, B); `sparse` for hardest negatives."""
    images, texts = run.encode(network, batch)
    scores: Tensor = network.link(network.similarity(images, texts, sparse=sparse)).float()
    return scores


def survey_losses(run: Run, networks: Mapping[str, nn.Module], margin: float) -> dict[str, NDArray[np.float64]]:
    """Each network's mean-negative triplet loss on every pair, in one pass over the data."""
    return run.survey(
        lambda batch: {name: triplet(score(run, net, batch), margin, "mean") for name, net in networks.items()}
    )


def streams_of(split: Split, use_mismatched: bool, batch_size: int) -> dict[str, NDArray[np.int64]]:
    """What to sweep over. Fewer mismatched pairs than a batch are left out: they would meet themselves as negatives."""
    streams = {"matched": split.matched_ids}
    if use_mismatched and len(split.mismatched_ids) >= batch_size:
        streams["mismatched"] = split.mismatched_ids
    return streams


def record_both(run: Run, losses: dict[str, NDArray[np.float64]], splits: dict[str, Split]) -> None:
    """One history for two networks: their mean loss and posterior; mismatched is what both call so."""
    loss = (losses["a"] + losses["b"]) / 2
    posterior = (splits["a"].p_mismatch + splits["b"].p_mismatch) / 2
    both = splits["a"].mismatched & splits["b"].mismatched
    run.record(loss=loss, signal=loss, posterior=posterior, mismatched=both)
