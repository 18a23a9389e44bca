"""Index pairs and search them, from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.api.data_section import data_section
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.auditing.verdicts import Verdicts
    from mispair.data import DataConfig
    from mispair.searching.index import Index, Side
    from mispair.searching.query import SearchResult
    from mispair.workflows.searchable_index import Query, SearchableIndex
    from mispair.workflows.trained_run import TrainedRun

    PathLike = str | os.PathLike[str]


def index(
    run: PathLike | TrainedRun | Sequence[PathLike | TrainedRun] | None = None,
    out: PathLike = "index",
    *,
    data: PathLike | DataConfig | None = None,
    encoder: str | None = None,
    features: PathLike | None = None,
    ids: PathLike | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str | None = None,
    images: PathLike | None = None,
    verdicts: Verdicts | PathLike | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> SearchableIndex:
    """Encode every pair once, with a run or with an encoder alone, and keep the vectors in a folder.

    Args:
        run: a run folder, or what `mispair.load` gave; of a list the mean score ranks, as an ensemble (SGRAF); left out
            where an encoder alone is to do it.
        out: the index folder; an index of the same model that is there is brought up to date, another one replaced.
        data: other data than the run's own; without a run, the pictures and captions to index.
        encoder: instead of a run: an encoder with one space for both, such as clip-b32; nothing is trained. Without a
            run basic is taken.
        features, ids, columns, missing, images: how `data` is read, as in `mispair.check`.
        verdicts: an audit of the data, or the folder it was saved in; answers then carry p_mismatch.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        The open index: `search` by words, a picture or a vector, `nearest` by many vectors, `to_parquet`.

    Raises:
        InputError: neither a run nor data is named, or they cannot be used.

    Example:
        >>> index = mp.index("runs/a", "index")
        >>> index.search("two dogs in the snow").hits[0].caption
    """
    from mispair.auditing.verdicts import Verdicts
    from mispair.progress import silent
    from mispair.workflows.index_encoder import build_encoder_index
    from mispair.workflows.index_run import build_index
    from mispair.workflows.joined_runs import join_runs
    from mispair.workflows.other_data import like_own

    described = {"features": features, "ids": ids, "columns": columns, "missing": missing, "images": images}
    judged = Verdicts.load(verdicts) if isinstance(verdicts, (str, os.PathLike)) else verdicts
    if run is None and data is not None:
        encoder = encoder or "basic"
    if encoder is not None:
        from mispair.workflows.embed import Encoding

        if run is not None or data is None:
            raise InputError("with encoder= name the data and no run: mispair.index(data=..., encoder='basic')")
        build_encoder_index(data_section(data, described), Path(out), Encoding(encoder), judged, tell or silent)
        return open_index(out)
    if run is None:
        raise InputError("say what to index: a run, or data= with pictures and captions")
    if data is None and any(value is not None for value in described.values()):
        raise InputError("features, ids, columns, missing and images describe other data: name it with data=")
    from mispair.api.training import open_runs

    loaded = join_runs(open_runs(run))
    other = None if data is None else like_own(loaded.config.data, data_section(data, described))
    build_index(loaded, Path(out), other, judged, tell or silent)
    return open_index(out)


def open_index(folder: PathLike) -> SearchableIndex:
    """Open an index folder; vectors stay on disk until they are compared.

    Args:
        folder: what `mispair.index` or `mispair index` wrote.

    Returns:
        The open index: `search` by words, a picture or a vector, `nearest` by many vectors, `to_parquet`.

    Raises:
        InputError: no index there, or a damaged one.

    Example:
        >>> mp.open_index("index").search("a red car")
    """
    from mispair.workflows.searchable_index import SearchableIndex

    return SearchableIndex.open(Path(folder))


def search(
    index: PathLike | Index,
    query: Query | None = None,
    k: int = 10,
    side: Side = "images",
    *,
    pair: int | None = None,
    html: PathLike | None = None,
) -> SearchResult:
    """The pictures, or with side="texts" the captions, nearest to words, to a picture, to a vector or to a pair.

    Args:
        index: an index folder, or what `mispair.index` gave.
        query: words as a string; a picture as a `pathlib.Path`, as bytes of a file or as a PIL picture; or a vector of
            the space of the index.
        k: how many answers.
        side: what to find, "images" or "texts".
        pair: instead of a query: what is like the picture of this pair of the index.
        html: where to write the answers as a page with pictures.

    Returns:
        `SearchResult`: hits (pair, score, caption, image_path, split), best first, and notes such as unknown words.

    Raises:
        InputError: no index there, its run is gone or changed, or no word of the text is known.

    Example:
        >>> [hit.image_path for hit in mp.search("index", "a red car", k=3).hits]
    """
    from mispair.searching.index import Index
    from mispair.workflows.searchable_index import SearchableIndex

    folder = index.folder if isinstance(index, Index) else Path(index)
    opened = index if isinstance(index, SearchableIndex) else SearchableIndex.open(folder)
    result = opened.search(query, k, side, pair=pair)
    if html is not None:
        from mispair.atomic import write_text
        from mispair.workflows.search_page import search_page

        asked = query if isinstance(query, str) else getattr(query, "name", "a picture")
        write_text(Path(html), search_page(result, folder, asked if pair is None else f"pair {pair}"))
    return result
