"""A small audit of planted embeddings, for whoever needs one to review or to serve."""

from __future__ import annotations

from mispair.auditing.embeddings import GivenPairs
from mispair.auditing.quick import quick_audit
from tests.auditing.planted import planted


def small_audit(pairs=211, captions=None):
    """-> verdicts, mismatched (n,)"""
    images, texts, mismatched, _ = planted(pairs=pairs)
    captions = captions or [f"caption {k}" for k in range(pairs)]
    ids = [f"{k}.png" for k in range(pairs)]
    return quick_audit(GivenPairs(images, texts, captions, ids)), mismatched
