"""An audit that says the same of every data set, and tables that are hard to write back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.auditing.facts import Facts
from mispair.auditing.verdict_table import SCHEMA
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, open_split
from mispair.workflows.audit import origin_of
from tests.data.samples import features

BAD = (2, 5, 6)  # the mismatched pairs of every audit here


PROPOSED = {2: 5, 5: 2}  # pair -> the pair whose caption it should show; nothing for 6


def audit_of(folder: Path, config: DataConfig, split: str) -> Path:
    """An audit that says BAD and PROPOSED of the data."""
    data = open_split(config, split)
    count = len(data)
    p = np.where(np.isin(np.arange(count), BAD), 0.9, 0.1)
    columns = {}
    for field in SCHEMA:
        empty = [1] * count if pa.types.is_integer(field.type) else ["x"] * count
        columns[field.name] = [None] * count if field.nullable else empty
    columns |= {"pair": np.arange(count), "p_mismatch": p, "mismatch_score": 1 - p, "is_mismatch_issue": p > 0.5}
    columns |= {"score": p, "proposed_caption_pair": [PROPOSED.get(k) for k in range(count)]}
    columns["swap_with"] = columns["proposed_caption_pair"]
    columns["look"] = np.arange(1, count + 1)
    there = [k in PROPOSED for k in range(count)]
    columns["proposed_caption"] = ["x" if proposed else None for proposed in there]
    columns |= {
        f"proposed_caption_{name}": [0.5 if proposed else None for proposed in there] for name in ("weight", "gain")
    }
    facts = Facts(count, 0.2, 0.1, 0.3, True, 0.9, 3, "by hand", False, None, origin_of(config, data), {})
    Verdicts(pa.table(columns, schema=SCHEMA), facts).save(folder)
    return folder


TEXTS = ['a dog, "quoted"', "zwei Hünde", "b\tc", "two\nlines", "e", "f  f", "g", "h", "i", "j"]


def text_table(folder: Path, kind: str) -> Path:
    folder.mkdir()
    path = folder / f"pairs.{kind}"
    if kind == "jsonl":
        rows = [json.dumps({"image_id": f"im{k}", "caption": t, "n": k}) for k, t in enumerate(TEXTS)]
        path.write_bytes("\r\n".join(rows).encode())
    elif kind == "parquet":
        pq.write_table(pa.table({"image_id": [f"im{k}" for k in range(10)], "caption": TEXTS, "n": range(10)}), path)
    else:
        mark = "\t" if kind == "tsv" else ","
        quoted = ['"' + t.replace('"', '""') + '"' for t in TEXTS]
        lines = [mark.join(["image_id", "caption", "n"])] + [f"im{k}{mark}{t}{mark} {k}" for k, t in enumerate(quoted)]
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    np.save(folder / "pairs.npy", features(10, regions=0))
    return path
