"""An index as people hold it in Python: asked by words, by pictures or by vectors, through what made it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mispair.errors import InputError
from mispair.pictures.given import is_picture, picture_bytes
from mispair.searching.export import export_parquet
from mispair.searching.index import Index, Side
from mispair.searching.query import SearchResult, search_pair, search_picture, search_text, search_vector

if TYPE_CHECKING:
    from PIL.Image import Image

    from mispair.workflows.search import IndexQueries

    Query = str | os.PathLike[str] | bytes | Image | Any  # words, a picture, or a vector (D,)


class SearchableIndex(Index):
    """An open index that answers words and pictures; what `mispair.index` and `mispair.open_index` return.

    Example:
        >>> mp.open_index("index").search("two dogs in the snow", k=3).hits
    """

    @cached_property
    def encoder(self) -> IndexQueries:
        """The run or the encoder that made the index; opened when it is first asked for, and torch with it."""
        from mispair.workflows.search import encoder_of

        return encoder_of(self)

    def search(
        self, query: Query | None = None, k: int = 10, side: Side = "images", *, pair: int | None = None
    ) -> SearchResult:
        """What is nearest: pictures, or with side="texts" captions.

        Args:
            query: words as a string; a picture as a `pathlib.Path`, as bytes of a file or as a PIL picture; or a vector
                (D,) of the space of the index. Many vectors at once: `nearest`.
            k: how many answers.
            side: what to find, "images" or "texts".
            pair: instead of a query: what is like the picture of this pair of the index.

        Returns:
            Hits (pair, score, caption, image_path, split), best first, and notes such as unknown words.

        Raises:
            InputError: nothing is asked, or what made the index is gone or changed.

        Example:
            >>> mp.open_index("index").search(Path("photo.jpg"), side="texts").hits[0].caption
        """
        if (query is None) == (pair is None):
            raise InputError("ask by words, by a picture or by a vector, or with pair= for what is like a pair")
        if pair is not None:
            finer = side == "texts" and self.manifest.rerank
            return search_pair(self, pair, k, "images", side, encoder=self.encoder if finer else None)
        if isinstance(query, str):
            return search_text(self, self.encoder, query, k, side)
        if is_picture(query):
            return search_picture(self, self.encoder, picture_bytes(query), k, side)
        return search_vector(self, _vector(query), k, side)

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Write the vectors and what is known of each pair into one .parquet, as vector databases import it.

        Args:
            path: a name that ends in .parquet.

        Returns:
            How many pairs.
        """
        return export_parquet(self, Path(path))


def _vector(query: Any) -> Any:
    try:
        return np.asarray(query, np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"a query is a string, a picture (a pathlib.Path, bytes, PIL) or a vector, got {type(query).__name__}"
        ) from None
