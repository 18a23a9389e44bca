"""Content for the page: a full one, a hostile one, and an audit folder of any size."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
from PIL import Image

from mispair.auditing.facts import Damage, Facts
from mispair.auditing.verdict_table import SCHEMA, TRUTH
from mispair.auditing.verdicts import Verdicts
from mispair.report.content import (
    Card,
    Costs,
    Curve,
    DamageKind,
    Flip,
    Gallery,
    History,
    Losses,
    PairRow,
    Ranked,
    Recalls,
    ReportPage,
    Word,
    WorstPairs,
)
from mispair.report.thumbnails import thumbnail

HOSTILE = (
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    '"><svg onload=window.broken=1>',
    "' onmouseover='window.broken=1",
    "</script><script>window.broken=1</script>",
    "<!-- <script> -->",
    "]]>&lt;b&gt;&amp;",
    "bell\x07, NUL\x00, escape\x1b[31m, lone \ud800, C1 \x9b",
    "\u202egnp.exe\u202c and \u2066isolate",
    "كلب يجري على الشاطئ",
    "שלום <b>עולם</b>",
    "line\nbreak\ttab\r\u2028\u2029",
    "javascript:window.broken=1",
    "x" * 10_000,
    "ﷺ " * 3_000,
)


def png(width=120, height=90, colour=(40, 90, 160)):
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue()


def full_page(texts=("a dog runs on the beach", "two people at a table"), pictures=True, rows=60) -> ReportPage:
    """Every section, with `texts` wherever a stranger's text can stand."""
    said = [texts[k % len(texts)] for k in range(rows)]
    tile = thumbnail(png(), 96) if pictures else None
    pairs = [
        PairRow(
            pair_id=f"{k}:{said[k]}"[:40],
            image_id=said[-1 - k],
            caption=said[k],
            p_mismatch=1 - k / rows,
            flagged=k < rows // 2,
            look=k + 1,
            score=k / rows - 0.3,
            caption_rank=rows - k,
            image_rank=k + 1,
            proposed_caption=said[(k + 1) % rows] if k % 3 else None,
            proposed_weight=0.5 if k % 3 else None,
            proposed_gain=0.2 if k % 3 else None,
            proposed_image=said[k] if k % 3 else None,
            swap_with=said[k] if k % 5 == 1 else None,
            truth=k % 4 > 0,
        )
        for k in range(rows)
    ]
    cards = tuple(
        Card(
            pair_id=said[k],
            image_id=said[k],
            picture=None if tile is None else (tile if k % 4 else ""),
            given=[Word(said[k])],
            proposed=[Word(said[k][:5], 0.9), Word(said[k][5:], -0.5)],
            weight=0.8 - k / 40,
            gain=0.4,
            p_mismatch=0.99,
            swap_with=said[k] if k % 2 else None,
            other_picture=tile,
            other_id=said[k],
            true=bool(k % 2),
        )
        for k in range(min(rows, 16))
    )
    recalls = {"i2t_r1": 61.2, "i2t_r5": 85.0, "i2t_r10": 92.5, "t2i_r1": 44.1, "t2i_r5": 74.0, "t2i_r10": 83.2}
    return ReportPage(
        title=f"Audit of {texts[0]}",
        subject=texts[-1],
        created="2026-01-31",
        answer=["30 of 60 pairs look mismatched.", texts[0], "The model is good."],
        caution=[texts[0]],
        recalls=[Recalls("test", {**recalls, "rsum": sum(recalls.values())}, images=50, texts=250)],
        truth={"auroc": 0.98, "ece": 0.03, "rematch_accuracy": 0.61},
        losses=[
            Losses(
                edges=[k / 10 for k in range(11)],
                counts=[900, 40, 30, 20, 20, 30, 40, 50, 30, 10],
                mismatched=[0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
                grid=[k / 20 for k in range(21)],
                curves=([300 - 15 * k for k in range(21)], [10 + k for k in range(21)]),
                threshold=0.4,
                what="loss (triplet mean)",
                said="Two components were fitted.",
            )
        ],
        curves=[Curve("dev rSum", [1, 2, 3], [300.0, 400.0, 450.0], 3, "best"), Curve("one epoch", [1], [0.5])],
        history=History(
            [4, 5, 6],
            [0.5, 0.45, 0.42],
            [0, 30, 20],
            [0, 2, 5],
            4000,
            4057,
            (Flip("12", texts[0], [0.2, 0.8, 0.4], 2),),
        ),
        costs=[
            Costs("early, epoch 4", [0, 0.5, 1.0], [0.7, 0.3], [0.4, 0.6]),
            Costs("late, epoch 14", [0, 0.5, 1.0], [0.95, 0.05], [0.1, 0.9]),
        ],
        ranked=[
            Ranked("Transported rows, epoch 14", [0.8, 0.1, 0.05, 0.05], False),
            Ranked("Untransported rows, epoch 14", [0.26, 0.25, 0.25, 0.24], True),
        ],
        gallery=Gallery(cards, 100, "They come from the whole set.", "Words are judged by leaving each one out."),
        pairs=WorstPairs(pairs, rows, {} if tile is None else {said[-1]: tile, said[-2]: ""}, "audit.parquet"),
        damage=[DamageKind("captions shifted", 40, texts[0], texts[-1])],
        configuration="method:\n  name: l2rm\n# " + texts[0],
        provenance=[("run", texts[0]), ("data hash", "0" * 64)],
        missing=[texts[-1]],
    )


def audit_of(count, captions=None, run=None, data=None, truth=False, seed=0) -> Verdicts:
    """An audit of `count` pairs; two in five are wrong and most of those have a proposal."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(count) < 0.4, rng.beta(9, 1, count), rng.beta(1, 9, count))
    captions = captions or [f"caption {k}: a {k % 17} of {k % 23} things in a row of many" for k in range(count)]
    wrong = p > 0.5
    other = rng.permutation(count)
    proposed = [int(other[k]) if wrong[k] and k % 4 else None for k in range(count)]
    images = [f"folder/image_{k // 5:07d}.jpg" for k in range(count)]
    order = np.argsort(-p, kind="stable")
    look = np.empty(count, np.int64)
    look[order] = np.arange(1, count + 1)
    columns = {
        "pair": list(range(count)),
        "pair_id": [f"pair-{k}" for k in range(count)],
        "image_id": images,
        "caption": [captions[k % len(captions)] for k in range(count)],
        "p_mismatch": p,
        "mismatch_score": 1 - p,
        "is_mismatch_issue": wrong,
        "score": rng.normal(size=count),
        "caption_rank": rng.integers(1, count + 1, count),
        "image_rank": rng.integers(1, count + 1, count),
        "proposed_caption": [None if k is None else captions[k % len(captions)] for k in proposed],
        "proposed_caption_pair": proposed,
        "proposed_caption_weight": [None if k is None else float(rng.random()) for k in proposed],
        "proposed_caption_gain": [None if k is None else float(rng.random()) for k in proposed],
        "proposed_image_id": [None if k is None else images[k] for k in proposed],
        "proposed_image_pair": proposed,
        "proposed_image_weight": [None if k is None else 0.5 for k in proposed],
        "proposed_image_gain": [None if k is None else 0.5 for k in proposed],
        "swap_with": [k if k is not None and k % 7 == 0 else None for k in proposed],
        "look": look,
    }
    schema = SCHEMA
    if truth:
        columns |= {"truth_mismatched": wrong, "proposal_true": [None if k is None else k % 2 == 0 for k in proposed]}
        schema = pa.schema([*SCHEMA, *TRUTH])
    facts = Facts(
        pairs=count,
        rate=float(wrong.mean()),
        rate_low=float(wrong.mean()) - 0.01,
        rate_high=float(wrong.mean()) + 0.01,
        conclusive=True,
        separation=0.97,
        issues=int(wrong.sum()),
        held_out="cross-fit in 5 folds",
        learned=False,
        run=run,
        data=data or {"path": "pairs.csv", "split": "train", "format": "csv", "hash": "0" * 64},
        mixture={},
        damage=(Damage("captions repeated", 40, "One caption stands with 40 images.", "Drop them.", (1, 2)),),
        truth={"auroc": 0.99, "ece": 0.02} if truth else None,
    )
    return Verdicts(pa.table(columns, schema=schema), facts)


class Reader(HTMLParser):
    """What a browser would see: elements, attributes, text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data
