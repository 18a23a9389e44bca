"""Index a run and search it from Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mispair.audit.verdicts import Verdicts
    from mispair.search.index import Index, Side
    from mispair.search.query import SearchResult
    from mispair.workflows.trained_run import TrainedRun

    PathLike = str | os.PathLike[str]


def index(run: PathLike | TrainedRun, out: PathLike = "index", *, verdicts: Verdicts | None = None) -> Index:
    """Encode every pair of a run's data once and keep the vectors in a folder.

    Args:
        run: a run folder, or what `mispair.load` gave.
        out: the index folder; an index of the same model that is there is brought up to date, another one replaced.
        verdicts: an audit of the data; answers then carry p_mismatch.

    Returns:
        The open index; `Index.search(vectors, "images" or "texts", k)` asks it by vectors.

    Example:
        >>> index = mp.index("runs/a", "index")
        >>> mp.search(index, "two dogs in the snow").hits[0].caption
    """
    from mispair.api.training import load
    from mispair.search.index import Index
    from mispair.workflows.index_run import build_index

    loaded = load(run) if isinstance(run, (str, os.PathLike)) else run
    build_index(loaded, Path(out), verdicts=verdicts)
    return Index.open(Path(out))


def search(index: PathLike | Index, text: str, k: int = 10, side: Side = "images") -> SearchResult:
    """The pictures, or with side="texts" the captions, nearest to some words.

    Args:
        index: an index folder, or what `mispair.index` gave.
        text: what to look for.
        k: how many answers.
        side: what to find, "images" or "texts".

    Returns:
        `SearchResult`: hits (pair, score, caption, image_path, split), best first, and notes such as unknown words.

    Raises:
        InputError: no index there, its run is gone or changed, or no word of the text is known.

    Example:
        >>> [hit.image_path for hit in mp.search("index", "a red car", k=3).hits]
    """
    from mispair.search.index import Index
    from mispair.search.query import search_text
    from mispair.workflows.search import encoder_of

    opened = index if isinstance(index, Index) else Index.open(Path(index))
    return search_text(opened, encoder_of(opened), text, k, side)
