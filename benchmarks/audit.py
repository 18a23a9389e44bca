"""Ranks of given pairs without the matrix of all scores, against that matrix and an argsort."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import Case
from mispair.auditing.embeddings import GivenPairs
from mispair.auditing.quick import quick_audit
from mispair.auditing.similarity import cell_scores, stand_in_rows


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(4000, 64))
    a, b = (torch.from_numpy((meaning + rng.normal(size=meaning.shape)).astype(np.float32)) for _ in range(2))
    rows = np.arange(len(a))

    def ours() -> list[int]:
        return stand_in_rows(a, b, rows, rows, cell_scores(a, b, rows, rows)).rank.tolist()

    def slow() -> list[int]:
        order = np.argsort(-(a @ b.T).numpy(), axis=1)
        return [int(np.flatnonzero(order[k] == k)[0]) + 1 for k in rows]

    def equal() -> str:
        assert ours() == slow()
        wrong = rng.random(len(a)) < 0.3
        shown = np.where(wrong, np.roll(rows, 1), rows)
        found = quick_audit(GivenPairs(a, b[torch.from_numpy(shown)]))
        return f"equal; estimated rate {found.facts.rate:.2f} of {wrong.mean():.2f}"

    return [Case("ranks of 4,000 pairs", "the whole matrix, argsort", 5, ours, slow, repeats=3, check=equal)]
