"""What the other pairs say about a pair: the text of an image predicted from the texts of all other images.

A network learns given pairs by heart, mismatched ones too, and then its own score of a pair says little. A regression
of text vectors on image features that were never trained, with the image in question left out, cannot have learned it.
Leaving out costs nothing: for a ridge regression it is a formula (Allen 1974, PRESS). Of an image with the text of
another both are left out, or the text would have taught what it is compared with and look better than a wrong one does.

Letters: N pairs, I images, F width of the features, D width of the text vectors, C cells (image, pair whose text).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from mispair.errors import InputError

SHRINKAGE = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # ridge in units of the mean eigenvalue; what predicts best is taken
_STRONGER = (1e2, 1e3, 1e4)  # the first that will do, where none of those does
_FREEST = 0.3  # mean hat value a regression may have: the mean of all rows, which are centred, gives away one left out
_BLOCK = 1 << 14  # rows or cells at a time
_ALONE = 1 - 1e-3  # hat value from which a row decides alone: without it nothing is known of it, and nothing predicted


def centred(vectors: Tensor) -> Tensor:
    """Vectors (N, D) around their mean, at unit length."""
    return normalize(vectors - vectors.mean(0), dim=1)


class Disagreement(NamedTuple):
    """How little a text looks like what the other pairs predict for an image: minus the cosine, -1 to 1."""

    given: NDArray[np.float64]  # (N,) of every given pair
    repaired: NDArray[np.float64]  # (N,) of the image of every pair with the text of another image


def disagreement_with_others(
    features: NDArray[np.floating], texts: NDArray[np.floating], image_of: NDArray[np.int64],
    trust: NDArray[np.float64], rng: np.random.Generator,
) -> Disagreement:  # fmt: skip
    """Every pair against what all other images and their texts predict.

    features (N, F): of the image of each pair, as they came; texts (N, D): vectors of one space; image_of (N,): which
    image each pair shows; trust (N,): how much each pair may teach the regression, 0 to 1.
    """
    if not len(features) == len(texts) == len(trust) == len(image_of):
        raise InputError(f"{len(image_of)} pairs need as many features, texts and trusts")
    _, first, row = np.unique(image_of, return_index=True, return_inverse=True)
    vectors = torch.from_numpy(np.asarray(texts, np.float32))
    others = OtherPairs(torch.from_numpy(np.asarray(features[first], np.float32)), vectors, row, trust)
    given, repaired = (others.disagreement(row, pairs) for pairs in (np.arange(len(row)), other_images(row, rng)))
    return Disagreement(given, repaired)


class OtherPairs:
    """A regression of texts on images, which says of any image and text what it would without either of them.

    features (I, F), texts (N, D), the image (N,) of each text, and how much each pair may teach (N,), 0 to 1.
    """

    def __init__(
        self, features: Tensor, texts: Tensor, image_of: NDArray[np.int64], trust: NDArray[np.float64]
    ) -> None:
        self.image_of = torch.from_numpy(image_of)
        self.texts = centred(texts)
        weight = torch.from_numpy(np.asarray(trust, np.float32)).clamp(min=1e-6)
        total = torch.zeros(len(features)).index_add_(0, self.image_of, weight).clamp(min=1e-6)
        target = torch.zeros(len(features), texts.shape[1]).index_add_(0, self.image_of, self.texts * weight[:, None])
        self.target, self.weight = target / total[:, None], total
        self.ridge = _fit(features, self.target, total)

    def disagreement(self, images: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """(C,) images and (C,) pairs whose texts are compared with what is predicted -> (C,), minus the cosine."""
        distance = np.empty(len(images))
        for start in range(0, len(images), _BLOCK):
            part = slice(start, start + _BLOCK)
            one, pair = torch.from_numpy(images[part]), torch.from_numpy(pairs[part])
            predicted = normalize(self._without(one, self.image_of[pair]), dim=1)
            distance[part] = -(predicted * self.texts[pair]).sum(1).double().numpy()
        return distance

    def _without(self, one: Tensor, other: Tensor) -> Tensor:
        """Predictions (C, D) for images `one` (C,) of the regression without them and without images `other` (C,).

        With H the hat matrix of the rows left out and e their residuals, (1 - H)^-1 e are those of the rest.
        """
        ridge, weight = self.ridge, self.weight
        shared = (ridge.turned[one] * ridge.scale * ridge.turned[other]).sum(1) * (one != other)
        stay, leave = 1 - ridge.hat[one], 1 - ridge.hat[other]
        determinant = (stay * leave - shared**2 * weight[one] * weight[other]).clamp(min=1e-6)
        error, other_error = (self.target[rows] - ridge.predicted[rows] for rows in (one, other))
        left = (leave[:, None] * error + (shared * weight[other])[:, None] * other_error) / determinant[:, None]
        return (self.target[one] - left) * (ridge.hat[one] < _ALONE)[:, None]


class _Ridge(NamedTuple):
    turned: Tensor  # (I, F + 1) features in the basis of the regression
    scale: Tensor  # (F + 1,)
    hat: Tensor  # (I,) how much a row decides its own prediction
    predicted: Tensor  # (I, D) with every row taking part


def predict_left_out(features: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
    """Ridge regression of targets (I, D) on features (I, F), rows weighted by (I,), each predicted without itself.

    With the hat value h of a row, its prediction p and its target t, (p - h t) / (1 - h) is what the rest would say.
    """
    return _left_out(_fit(features, targets, weight), targets)


def _left_out(ridge: _Ridge, targets: Tensor) -> Tensor:
    hat = ridge.hat[:, None]
    return (ridge.predicted - hat * targets) / (1 - hat) * (hat < _ALONE)


def _fit(features: Tensor, targets: Tensor, weight: Tensor) -> _Ridge:
    """With the shrinkage that predicts rows left out best, of those that leave the rows something to be predicted.

    Fewer rows than features can be met by a regression exactly. Of centred rows each is minus the sum of the others, so
    that such a regression knows a row that was left out.
    """
    x = features - features.mean(0)
    x = x / x.std().clamp(min=1e-12)
    x = torch.cat([x, x.new_ones(len(x), 1)], 1)
    moments = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for start in range(0, len(x), _BLOCK):
        rows = slice(start, start + _BLOCK)
        moments += (x[rows] * weight[rows, None]).double().T @ x[rows].double()
    eigenvalues, basis = torch.linalg.eigh(moments)
    turned = x @ basis.float()
    answers = turned.T @ (targets * weight[:, None])
    best, least = None, torch.inf
    for shrinkage in (*SHRINKAGE, *_STRONGER):
        if best is not None and shrinkage in _STRONGER:
            break
        scale = (1 / (eigenvalues.clamp(min=0) + shrinkage * eigenvalues.mean())).float()
        hat = (weight * (turned * turned * scale).sum(1)).clamp(max=_ALONE)
        if float(hat.mean()) > _FREEST:
            continue
        ridge = _Ridge(turned, scale, hat, (turned * scale) @ answers)
        error = float((weight * ((_left_out(ridge, targets) - targets) ** 2).sum(1)).sum())
        if best is None or error < least:
            best, least = ridge, error
    assert best is not None, "no shrinkage leaves the rows anything"
    return best


def other_images(row: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """For every pair another one, drawn anew where it shows the same image; (N,)."""
    other = rng.permutation(len(row))
    for _ in range(20):
        same = np.flatnonzero(row[other] == row)
        if not len(same):
            break
        other[same] = rng.integers(0, len(row), len(same))
    return other
