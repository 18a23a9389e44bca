"""Which of the judged pairs a run was trained on: it numbers those of its own split, a page those that were judged."""

from __future__ import annotations

from collections.abc import Sequence

from mispair.data.config import DataConfig
from mispair.data.readers.dispatch import open_pairing
from mispair.errors import InputError
from mispair.report.content import PairRow


def trained_pairs(config: DataConfig, split: str, judged: Sequence[PairRow], count: int) -> Sequence[PairRow] | None:
    """The `count` training pairs of the data at `config`, of whose `split` all pairs were judged; None where unknown.

    Pairs are known again by their place in the data. Where either side left pairs out that are in it, none is.
    """
    if split == "train" or not judged:
        return judged if len(judged) == count else None
    try:
        shown, trained = (open_pairing(config, name).positions for name in (split, "train"))
    except InputError:
        return None
    if shown is None or trained is None or (len(shown), len(trained)) != (len(judged), count):
        return None
    row_of = dict(zip(shown.tolist(), judged, strict=True))
    known = [row_of.get(place) for place in trained.tolist()]
    return [row for row in known if row is not None] if None not in known else None
