"""The histogram of an audit on the page: as fine as its pairs allow."""

import numpy as np
import pytest

from mispair.workflows.report.evidence import coarser


def test_merged_by_hand():
    edges, (counts, wrong) = coarser([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1, 2, 0, 0, 4], [1, 0, 0, 0, 2])
    assert (edges, counts, wrong) == ([0.0, 2.0, 4.0, 6.0], [3.0, 0.0, 4.0], [1.0, 0.0, 2.0])


@pytest.mark.parametrize("pairs", [0, 1, 240, 6_000, 1_000_000])
def test_nothing_is_lost_and_few_pairs_have_few_bins(pairs):
    counts, edges = np.histogram(np.random.default_rng(0).normal(size=pairs), 60, (-4, 4))
    merged, (columns,) = coarser(edges.tolist(), counts.tolist())
    assert sum(columns) == counts.sum()
    assert len(merged) == len(columns) + 1
    assert np.allclose(np.diff(merged), merged[1] - merged[0])
    assert len(columns) <= max(4, 2 * max(pairs, 1) ** (1 / 3))
    assert len(columns) == 60 or pairs < 1_000_000
