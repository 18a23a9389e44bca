"""Columns of any table as texts and as rows of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from mispair.auditing.embeddings import GivenPairs, as_array, as_texts, pick_column, unit_length, unit_vectors
from mispair.errors import InputError

TABLE = pa.table({"id": [7, None], "vector": [[1.0, 2.0], [3.0, 4.0]]})


def test_a_column_is_picked_by_its_name() -> None:
    assert as_texts("image_ids", pick_column(TABLE, "id", "image_ids")) == ["7", ""]
    assert as_array("images", pick_column(TABLE, "vector", "images")).tolist() == [[1, 2], [3, 4]]
    assert pick_column({"id": [7, 8]}, "id", "image_ids") == [7, 8]
    with pytest.raises(InputError, match="images: the table has no column 'image'; its columns are id, vector"):
        pick_column(TABLE, "image", "images")


@pytest.mark.parametrize(
    "values", [[[1, 2], [3, 4]], [np.array([1, 2]), np.array([3, 4])], np.array([[1, 2], [3, 4]]), pa.array([1, 2])]
)
def test_numbers_become_an_array(values: object) -> None:
    made = as_array("images", values)
    assert made.tolist() == ([1, 2] if isinstance(values, pa.Array) else [[1, 2], [3, 4]])
    assert made is values or not isinstance(values, np.ndarray)


@pytest.mark.parametrize(
    ("values", "said"), [([[1, 2], [3]], "no vectors of one length"), (np.array(["a"]), "not numbers")]
)
def test_what_is_no_vector_is_refused(values: object, said: str) -> None:
    with pytest.raises(InputError, match=f"images holds .*{said}"):
        as_array("images", values)


@pytest.mark.parametrize("size", [1e30, 1e-30, 3e37])
def test_length_does_not_count_however_extreme(size: float) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 5)).astype(np.float32)
    plain = unit_vectors("images", vectors)
    assert torch.allclose(unit_vectors("images", vectors * np.float32(size)), plain, atol=1e-6)
    mixed = vectors.copy()
    mixed[3] *= np.float32(size)
    mixed[5] = 0
    made = unit_length(torch.from_numpy(mixed))
    assert torch.equal(made[[0, 1, 2, 4, 6]], plain[[0, 1, 2, 4, 6]])  # to the bit as without the extreme one
    assert torch.allclose(made[3], plain[3], atol=1e-6)
    assert not made[5].any()


def test_masked_values_are_refused() -> None:
    array = np.ma.masked_array(np.ones((3, 2)), np.eye(3, 2, dtype=bool))
    with pytest.raises(InputError, match="images has masked values"):
        unit_vectors("images", array)
    assert unit_vectors("images", np.ma.masked_array(np.ones((3, 2)))).shape == (3, 2)


@pytest.mark.parametrize("role", ["captions", "image_ids"])
def test_half_of_a_character_is_named(role):
    pairs = GivenPairs(np.zeros((2, 3)), np.zeros((2, 3)), **{role: ["a", "b \ud800"]})
    with pytest.raises(InputError, match=f"{role}, row 1: half of a character"):
        pairs.shown(role, 2)
