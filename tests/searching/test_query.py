"""What is like a pair: as a full comparison says, without the pair itself, and as many as were asked for."""

import numpy as np
import pytest

from mispair.errors import InputError
from mispair.searching.index import Index
from mispair.searching.query import search_pair, search_vector
from tests.searching.indexes import make, vectors

SEVERAL = np.arange(60) // 3  # three captions per image


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    images = vectors(20, 0)[SEVERAL]
    return Index.open(make(tmp_path_factory.mktemp("index") / "index", images, vectors(60, 1), SEVERAL), "m1")


@pytest.mark.parametrize("side", ["images", "texts"])
@pytest.mark.parametrize("by", ["images", "texts"])
@pytest.mark.parametrize("pair", [0, 31, 59])
def test_the_neighbours_of_a_pair(index, by, side, pair):
    hits = search_pair(index, pair, 4, by, side).hits
    scores = index.vectors[side].astype(np.float32) @ index.vectors[by][pair].astype(np.float32)
    if side == "images":
        first = np.arange(0, 60, 3)  # each image once
        others = first[SEVERAL[first] != SEVERAL[pair]]
    else:
        others = np.delete(np.arange(60), pair)
    expected = others[np.argsort(-scores[others], kind="stable")[:4]]
    found = [SEVERAL[hit.pair] if side == "images" else hit.pair for hit in hits]
    assert found == (SEVERAL[expected] if side == "images" else expected).tolist()
    np.testing.assert_allclose([hit.score for hit in hits], scores[expected], atol=1e-3)


def test_what_no_pair_or_vector_of_the_index_is_costs_a_sentence(index):
    with pytest.raises(InputError, match="there is no pair 60; pairs go from 0 to 59"):
        search_pair(index, 60)
    with pytest.raises(InputError, match="one vector of 12 numbers"):
        search_vector(index, np.ones((2, 12)))
