"""Pictures by row: each row is read at its own place, and a name without a picture says why."""

from __future__ import annotations

import numpy as np

from mispair.data.picture_store import PictureIndex, Pictures
from mispair.pictures.decode import Broken


class Shelf:
    def read(self, place: int) -> bytes:
        return bytes([place])


def test_a_row_is_read_at_its_place() -> None:
    pictures = Pictures(Shelf(), [7, 3, 5], ["a", "b", "c"])
    assert [pictures.read(row) for row in range(3)] == list(pictures) == [b"\7", b"\3", b"\5"]
    some = pictures.subset(np.array([2, 0]))
    assert (list(some), list(some.names), len(some)) == ([b"\5", b"\7"], ["c", "a"], 2)


def test_a_name_without_a_picture_says_why() -> None:
    index = PictureIndex(Shelf(), {"a": 7}, {"b": "burnt"})
    seen = list(index.renamed({"x": "a", "y": "b", "z": "nobody"}).select(["y", "x", "z"]))
    assert seen == [Broken("burnt"), b"\7", Broken("missing")]
