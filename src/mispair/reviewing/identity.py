"""Which audit is this? A hash of what was judged, so that decisions are never applied to other pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mispair.auditing.judge import captions_of, image_names
from mispair.auditing.verdicts import Verdicts
from mispair.data.pair_table import PairTable


def audit_identity(verdicts: Verdicts) -> str:
    """SHA-256 over images and captions of all pairs in order: a new audit of the same pairs keeps its decisions."""
    return _identity(verdicts.table["image_id"].to_pylist(), verdicts.table["caption"].to_pylist())


def pairs_identity(table: PairTable) -> str:
    """The identity of an audit of these pairs."""
    names = image_names(table, int(table.image_rows.max()) + 1)
    return _identity([names[row] for row in table.image_rows.tolist()], captions_of(table))


def _identity(image_ids: Sequence[str], captions: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for column in (image_ids, captions):
        for text in column:
            digest.update(text.encode(errors="surrogatepass"))
            digest.update(b"\0")
        digest.update(b"\1")
    return digest.hexdigest()
