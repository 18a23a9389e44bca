"""Retrieval metrics against the argsort per query that everybody copies."""

from __future__ import annotations

import numpy as np
from tests.oracles import argsort_metrics

from benchmarks.timing import Case
from mispair.functional.recalls import retrieval_metrics


def cases() -> list[Case]:
    scores = np.random.default_rng(0).standard_normal((1000, 5000)).astype(np.float32)
    scores[np.arange(5000) // 5, np.arange(5000)] += 2

    def equal() -> str:
        ours = retrieval_metrics(scores, 5)
        assert abs(ours["rsum"] - argsort_metrics(scores, 5)[-1]) < 1e-6
        return f"rSum {ours['rsum']:.1f}, equal"

    return [
        Case(
            "retrieval_metrics 1,000 x 5,000",
            "one argsort per query",
            20,
            lambda: retrieval_metrics(scores, 5),
            lambda: argsort_metrics(scores, 5),
            repeats=3,
            check=equal,
        )
    ]
