"""For every image the texts that may fit it, out of very many: inverted files of short codes, then the vectors.

Texts are grouped around centres (faiss IVF) and kept as codes of 4 bits for every few dimensions (PQ, fast scan); a
search looks at the codes of the nearest groups, and the best of them are compared by their vectors, which lie on disk.
The groups grow in number with the texts, not in size, so that a search costs the same among any number of them.

Letters: n images, m texts, d width, k texts on a shortlist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.auditing.blocks import lie_together
from mispair.auditing.similarity import Rows
from mispair.scale.workplace import Workplace
from mispair.searching.inverted import require_faiss

FEW = 16_384  # texts up to which all are compared: faiss is not needed
_GROUP = 400  # texts of a group, about
_PROBES = 64  # groups looked at
_CANDIDATES = 128  # compared by their vectors
_PER_CENTRE = 32  # texts that a centre is trained on
_HNSW = 4096  # groups from which the nearest ones are found by a graph
STEP = 256  # images searched for at a time
_COMPARED = 64  # of them, whose candidates are compared at a time
_INDEX = "texts.faiss"
_BLOCK = 8192  # vectors written at a time


@dataclass(frozen=True, eq=False)
class Texts:
    """m texts to be found: unit vectors (m, d) as float16 on disk, and an index over them."""

    vectors: NDArray[np.float16]
    index: Any = None  # None: few enough to compare all

    @staticmethod
    def write(blocks: Iterator[Tensor], count: int, width: int, place: Workplace) -> bool:
        """Leave `blocks` (., d), in order, `count` rows in all, where `load` finds them; whether they have an index."""
        vectors = place.make("texts", np.float16, (count, width))
        at = 0
        for block in blocks:
            vectors[at : at + len(block)] = block.numpy()
            at += len(block)
        assert at == count
        vectors.flush()
        if count > FEW:
            require_faiss().write_index(_index(vectors), str(place.path / _INDEX))
        return count > FEW

    @classmethod
    def load(cls, place: Workplace) -> Texts:
        """The vectors stay on disk."""
        path = place.path / _INDEX
        return cls(place.array("texts"), require_faiss().read_index(str(path)) if path.exists() else None)

    def search(self, images: Tensor, k: int, allowed: Callable[[Rows], NDArray[np.bool_]]) -> tuple[Rows, Tensor]:
        """The k best texts of images (b, d): rows (b, k) and scores (b, k); -1 and -inf where there are fewer.

        `allowed` says of rows (b, c) which of them may be on the list. Ask for `STEP` images at a time.
        """
        wanted = min(_CANDIDATES, len(self.vectors))
        if self.index is None:
            scores, candidates = (images @ torch.from_numpy(np.asarray(self.vectors, np.float32)).T).topk(wanted, 1)
            candidate = candidates.numpy()
        else:
            candidate = self.index.search(images.numpy(), wanted)[1]
            scores = torch.cat([self._compare(images[at], candidate[at]) for at in _in_cache(len(images))])
        good = torch.from_numpy((candidate >= 0) & allowed(candidate))
        best = scores.masked_fill(~good, -torch.inf).topk(min(k, wanted), 1)
        chosen = np.take_along_axis(candidate, best.indices.numpy(), 1)
        return np.where(np.isfinite(best.values.numpy()), chosen, -1), best.values

    def _compare(self, images: Tensor, candidate: Rows) -> Tensor:
        """Scores (b, c) of images (b, d) with texts named by their rows (b, c)."""
        texts = torch.from_numpy(self.vectors[candidate.clip(min=0)]).float()
        return torch.bmm(texts, images.unsqueeze(2)).squeeze(2)

    def groups(self, images: Tensor) -> Rows:
        """The group of texts nearest to each image (b, d); where all are compared there is one."""
        if self.index is None:
            return np.zeros(len(images), np.int64)
        nearest: Rows = self.index.quantizer.search(images.numpy(), 1)[1][:, 0]
        return nearest


def _in_cache(count: int) -> list[slice]:
    """So few images at a time that the vectors of their candidates stay in a processor's cache."""
    return [slice(at, at + _COMPARED) for at in range(0, count, _COMPARED)]


def together(images: Tensor, size: int) -> Rows:
    """(n,): few images (n, d) in an order in which those that may compete for texts lie together, `size` at a time."""
    return np.argsort(lie_together(images, max(1, len(images) // size)), kind="stable")


def _index(vectors: NDArray[np.float16]) -> Any:
    faiss = require_faiss()
    count, width = vectors.shape
    lists = count // _GROUP
    quantizer = faiss.IndexFlatIP(width)
    if lists >= _HNSW:
        quantizer = faiss.IndexHNSWFlat(width, 32, faiss.METRIC_INNER_PRODUCT)
        quantizer.hnsw.efSearch = 2 * _PROBES
    parts = max(m for m in range(1, 65) if width % m == 0)
    sample = np.sort(np.random.default_rng(0).choice(count, min(count, _PER_CENTRE * lists), replace=False))
    trained = np.asarray(vectors[sample], np.float32)
    _centres(faiss, quantizer, trained, lists)
    if width // parts <= 8:
        index = faiss.IndexIVFPQFastScan(quantizer, width, lists, parts, 4, faiss.METRIC_INNER_PRODUCT)
        index.by_residual = False
    else:  # a width that does not divide well
        index = faiss.IndexIVFScalarQuantizer(
            quantizer, width, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
        )
    index.train(trained)  # the centres are there: only the codes are learned
    for start in range(0, count, _BLOCK):
        index.add(np.asarray(vectors[start : start + _BLOCK], np.float32))
    index.nprobe = min(_PROBES, lists)
    return index


def _centres(faiss: Any, quantizer: Any, sample: NDArray[np.float32], lists: int) -> None:
    """Centres of the groups in two steps, so that many of them do not cost their number squared."""
    first = max(1, round(np.sqrt(lists)))
    options = {"niter": 8, "seed": 1, "spherical": True, "min_points_per_centroid": 1}
    coarse = faiss.Kmeans(sample.shape[1], first, max_points_per_centroid=256, **options)
    coarse.train(sample)
    nearest = coarse.index.search(sample, 1)[1][:, 0]
    share = np.bincount(nearest, minlength=first) / len(sample) * lists
    many = np.maximum(1, np.floor(np.cumsum(share) + 1e-9) - np.floor(np.cumsum(share) - share + 1e-9)).astype(int)
    centres = []
    for part in range(first):
        members = sample[nearest == part]
        count = min(int(many[part]), len(members))
        if count <= 1:
            centres.append(coarse.centroids[part : part + 1])
            continue
        fine = faiss.Kmeans(sample.shape[1], count, max_points_per_centroid=_PER_CENTRE * 2, **options)
        fine.train(members)
        centres.append(fine.centroids)
    centroids = np.concatenate(centres)[:lists]
    if len(centroids) < lists:  # groups that were empty: some texts themselves
        centroids = np.concatenate([centroids, sample[: lists - len(centroids)]])
    quantizer.add(np.ascontiguousarray(centroids))
