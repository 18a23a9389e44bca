"""Columns of any table as texts and as rows of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mispair.auditing.embeddings import as_array, as_texts, pick_column
from mispair.errors import InputError

TABLE = pa.table({"id": [7, None], "vector": [[1.0, 2.0], [3.0, 4.0]]})


def test_a_column_is_picked_by_its_name() -> None:
    assert as_texts(pick_column(TABLE, "id", "image_ids")) == ["7", ""]
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
