"""A site without a trained model: vectors at random, words that point at one of them, pictures drawn on the spot."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
from PIL import Image

from mispair.errors import InputError
from mispair.reviewing.session import ReviewSession
from mispair.searching.index import Index, Manifest
from mispair.searching.query import TextQuery, Why
from mispair.searching.write import write_index
from mispair.serving.app import Site
from tests.reviewing.audits import small_audit

PAIRS, WIDTH = 211, 16


def png(colour=(200, 30, 30), size=(64, 48)):
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


class NumberEncoder:
    """Understands "number 17": the vector of pair 17. Every other word is unknown."""

    model = "m1"

    def __init__(self, vectors):
        self.vectors = vectors

    def encode_text(self, text):
        numbers = [int(word) for word in text.split() if word.isdecimal() and len(word) < 9 and int(word) < PAIRS]
        unknown = tuple(word for word in text.split() if not word.isdigit())
        vector = self.vectors[numbers].sum(0) if numbers else np.zeros(WIDTH, np.float32)
        return TextQuery(vector, unknown)

    def encode_picture(self, data):
        if not data.startswith(b"\x89PNG"):
            raise InputError("the picture cannot be decoded (not a picture)")
        return self.vectors[5]

    def rerank(self, text, rows):
        return None


class Drawn:
    """Every picture but `gone.png`."""

    def read(self, image_id):
        return None if image_id == "gone.png" or not image_id.endswith(".png") else png()


def make_site(folder, captions=None, names=None, review=True):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2, PAIRS, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    captions = captions or [f"caption {k}" for k in range(PAIRS)]
    verdicts, _ = small_audit(PAIRS, captions)
    table = pa.table(
        {
            "image": pa.array(np.arange(PAIRS), pa.int64()),
            "image_path": names or [f"{k}.png" for k in range(PAIRS)],
            "caption": captions,
            "split": ["train" if k % 2 else "test" for k in range(PAIRS)],
            "p_mismatch": verdicts.p_mismatch,
        }
    )
    manifest = Manifest(model="m1", source="run", data="pairs.csv", pairs=PAIRS, width=WIDTH, kind="exact")
    write_index(folder / "index", manifest, {"images": [vectors[0]], "texts": [vectors[1]]}, table, lambda *_: None)
    session = ReviewSession(folder, verdicts) if review else None

    def explain(pair, text, regions=True):
        words = tuple((word, 0.2 - 0.1 * k) for k, word in enumerate(text.split()))
        grid = tuple(tuple(0.01 * (row + column) for column in range(5)) for row in range(5))
        return Why(0.4, words, grid if regions else (), "by leaving each one out")

    return Site("test", Index.open(folder / "index"), NumberEncoder(vectors[0]), session, Drawn(), explain)
