"""Every pair judged by all other pairs, with nothing trained.

A network that is trained on a mismatched pair learns it by heart, and from then on finds it right. So pairs are judged
by vectors that no pair had a part in: what text do all *other* pairs predict for this image (`leave_one_out`), and how
does the given text compare with texts of other images (`mismatch_rate`)?

Letters: I images, N pairs, F and D widths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mispair.functional.leave_one_out import OtherPairs, other_images
from mispair.functional.mismatch_rate import MismatchEstimate, estimate_mismatch, normal_scores


@dataclass(frozen=True, slots=True)
class JudgedByOthers:
    """What all other pairs say of every pair."""

    suspicion: NDArray[np.float64]  # (N,) larger is more suspicious
    repaired: NDArray[np.float64]  # (N,) the same of its image with the text of another image
    p_mismatch: NDArray[np.float64]  # (N,)
    estimate: MismatchEstimate


def judge_by_others(
    images: NDArray[np.float32],
    texts: NDArray[np.float32],
    image_of: NDArray[np.int64],
    weight: NDArray[np.float64] | None = None,
) -> JudgedByOthers:
    """Judge N pairs by images (I, F), their texts (N, D) and the image (N,) of each.

    Args:
        weight: (N,), how much each pair may teach; 0 for one that is known to be wrong.

    Equal input gives equal output: the same pairs are re-paired every time. Judging again, each pair as far as it was
    trusted, told mismatches a little better at high rates and made the estimated rate too low.
    """
    trust = np.ones(len(image_of)) if weight is None else weight
    others = OtherPairs(torch.from_numpy(images), torch.from_numpy(texts), image_of, trust)
    suspicion = others.disagreement(image_of, np.arange(len(image_of)))
    repaired = others.disagreement(image_of, other_images(image_of, np.random.default_rng(0)))
    scores = normal_scores(suspicion, repaired)
    estimate = estimate_mismatch(scores, image_of)
    return JudgedByOthers(suspicion, repaired, estimate.p_mismatch(scores), estimate)
