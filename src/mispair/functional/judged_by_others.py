"""Every pair judged by all other pairs, with nothing trained.

A network that is trained on a mismatched pair learns it by heart, and from then on finds it right. So pairs are judged
by vectors that no pair had a part in, and by what other pairs say of them: three kinds of evidence, each a cosine.

others   what text do all *other* pairs predict for this image (`leave_one_out`)?
apart    how near are image and text in a space that pairs of other images alone have found (`canonical`)?
joint    how near are they to a model that knew both sides before (CLIP, ConSE), where there is one?

The same of images with texts of other images shows how mismatched pairs look (`mismatch_rate`). Those are drawn several
times: their number bounds how well the rate can be known.

Letters: I images, N pairs, Z re-paired ones, F and D widths, E kinds of evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.functional.canonical import trusted_maps
from mispair.functional.leave_one_out import OtherPairs, centred, other_images
from mispair.functional.mismatch_rate import MismatchEstimate, estimate_mismatch, normal_scores
from mispair.functional.tell_apart import fit_weights

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

REPAIRINGS = 5  # how often every image is shown with the text of another one
_FOLDS = 5  # parts of the images, each judged in a space that the other parts have found
_FEWEST_IMAGES = 200  # below, four parts of five find no space worth asking
_MOST_PAIRS = 50_000  # more say nothing new about a space of some hundred directions


@dataclass(frozen=True, slots=True)
class JudgedByOthers:
    """What all other pairs say of every pair."""

    suspicion: Floats  # (N,) larger is more suspicious
    repaired: Floats  # (Z,) the same of images with texts of other images, every image as often; N at a time
    p_mismatch: Floats  # (N,)
    estimate: MismatchEstimate


def judge_by_others(
    images: NDArray[np.float32],
    texts: NDArray[np.float32],
    image_of: Rows,
    weight: Floats | None = None,
    joint: NDArray[np.float32] | None = None,
) -> JudgedByOthers:
    """Judge N pairs by images (I, F), their texts (N, D) and the image (N,) of each.

    Args:
        weight: (N,), how much each pair may teach; 0 for one that is known to be wrong.
        joint: (I, D), the images in the space of the texts, by a model that no pair had a part in.

    Equal input gives equal output: the same pairs are re-paired every time.
    """
    trust = np.ones(len(image_of)) if weight is None else weight
    fold = np.random.default_rng(0).permutation(len(images))[image_of] % _FOLDS
    # Re-paired inside a part: of an image and a text of the same part, neither had a say in the space of the others.
    pairs = np.stack([np.arange(len(image_of)), *(_other_pairs(image_of, fold, k) for k in range(REPAIRINGS))])
    seen, said = torch.from_numpy(images), torch.from_numpy(texts)
    others = OtherPairs(seen, said, image_of, trust)
    kinds = [_scaled(np.stack([others.disagreement(image_of, shown) for shown in pairs]))]
    if len(images) >= _FEWEST_IMAGES:
        kinds.append(_apart(seen, said, image_of, trust, fold, pairs))
    if joint is not None:
        near = (centred(torch.from_numpy(joint)), centred(said))
        kinds.append(_scaled(_distances(*near, image_of, pairs)))
    evidence = np.stack(kinds, 2)  # (1 + REPAIRINGS, N, E)
    given, repaired = evidence[0], evidence[1:].reshape(-1, len(kinds))
    weights = fit_weights(given, repaired)
    weights /= weights.sum()
    suspicion, null = given @ weights, repaired @ weights
    scores = normal_scores(suspicion, null)
    estimate = estimate_mismatch(scores, image_of)
    return JudgedByOthers(suspicion, null, estimate.p_mismatch(scores), estimate)


def _apart(seen: Tensor, said: Tensor, image_of: Rows, trust: Floats, fold: Rows, pairs: Rows) -> Floats:
    """Of given and re-paired pairs (R, N), how far image and text are apart where other parts of the images say."""
    evidence = np.empty(pairs.shape)
    for part in range(_FOLDS):
        judged, taught = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        if len(taught) > _MOST_PAIRS:
            taught = np.sort(np.random.default_rng(part).permutation(taught)[:_MOST_PAIRS])
        first, row = seen[torch.from_numpy(image_of[taught])], np.unique(image_of[taught], return_inverse=True)[1]
        width = max(seen.shape[1], said.shape[1])  # all directions of either side count
        maps, _ = trusted_maps(first, said[taught], row, trust[taught], width, rounds=1, judgings=1)
        a, b = maps[0].map(seen), maps[1].map(said)
        evidence[:, judged] = _scaled(_distances(a, b, image_of[judged], pairs[:, judged]))
    return evidence


def _distances(images: Tensor, texts: Tensor, image_of: Rows, pairs: Rows) -> Floats:
    """Minus the cosine of images (n,) with the texts of pairs (R, n): (R, n)."""
    a = images[torch.from_numpy(image_of)]
    return np.stack([-(a * texts[torch.from_numpy(shown)]).sum(1).double().numpy() for shown in pairs])


def _scaled(distances: Floats) -> Floats:
    """Evidence (R, n) in units of its spread among re-paired pairs, which are all but the first row."""
    null = distances[1:]
    return np.asarray((distances - null.mean()) / max(float(null.std()), 1e-12))


def _other_pairs(image_of: Rows, fold: Rows, draw: int) -> Rows:
    """For every pair another one of the same part, of another image: (N,)."""
    rng = np.random.default_rng(draw)
    other = np.arange(len(image_of))
    for part in range(_FOLDS):
        mine = np.flatnonzero(fold == part)
        other[mine] = mine[other_images(image_of[mine], rng)]
    return other
