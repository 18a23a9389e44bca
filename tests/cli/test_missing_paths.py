"""Whatever verb meets a path that is not there says so, and suggests the name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.forks import Forks

# The missing path, then the words; PAIRS, PHOTOS, INDEX are there, PAIR, PHOTO, INDX are not.
CASES = {
    "audit a table": "audit PAIR",
    "audit a folder": "audit INDX",
    "audit a table with pictures": "audit PAIR --images PHOTOS",
    "audit a table and train": "audit PAIR --train",
    "audit other data": "audit INDX --data PAIRS",
    "audit pictures": "audit PAIRS --images PHOTO",
    "audit vectors": "audit --embeddings VECTOR VECTORS",
    "audit a shard": "audit INDX --shard 1/2 --statistics s",
    "check": "check PAIR",
    "check a folder": "check INDX",
    "check pictures": "check PAIRS --images PHOTO",
    "check features": "check PAIRS --features VECTOR",
    "corrupt": "corrupt PAIR --rate 0.4",
    "train": "train PAIR",
    "train, pictures": "train PAIRS --images PHOTO",
    "train, features": "train PAIRS --features VECTOR",
    "train, a second side": "train VECTORS VECTOR",
    "train, resume": "train --resume INDX",
    "train, a configuration": "train PAIRS -c /PAIR",
    "embed": "embed PAIR",
    "embed pictures": "embed PAIRS --images PHOTO",
    "index": "index INDX",
    "index with an encoder": "index PAIR --encoder basic",
    "search": "search INDX dogs",
    "serve": "serve INDX",
    "review": "review INDX",
    "fix": "fix INDX --action drop",
    "fix, undo": "fix --undo INDX",
    "report": "report INDX",
    "merge": "merge INDX",
    "merge several": "merge INDEX INDX",
    "export": "export INDX",
    "evaluate": "evaluate INDX",
    "evaluate several": "evaluate INDX INDEX",
    "runs": "runs INDX",
    "experiments": "experiments run main --data INDX",
    "experiments, table": "experiments table INDX",
}  # fmt: skip


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


@pytest.mark.parametrize("case", CASES)
def test_a_missing_path_is_called_missing(forks: Forks, tmp_path: Path, case: str) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "index").mkdir()
    (tmp_path / "pairs.csv").write_text("image,caption\na.jpg,a dog\n")
    np.save(tmp_path / "vectors.npy", np.eye(3, dtype=np.float32))
    names = {
        "PAIRS": "pairs.csv", "PAIR": "pair.csv", "PHOTOS": "photos", "PHOTO": "photo", "VECTORS": "vectors.npy",
        "VECTOR": "vector.npy", "INDEX": "index", "INDX": "indx",
    }  # fmt: skip
    meant = {"PAIR": "PAIRS", "PHOTO": "PHOTOS", "VECTOR": "VECTORS", "INDX": "INDEX"}
    missing = next(word.strip("/") for word in CASES[case].split() if word.strip("/") in meant)
    words = [str(tmp_path / names[key]) if (key := word.strip("/")) in names else word for word in CASES[case].split()]
    verbs_without_out = ("check", "search", "serve", "review", "merge", "evaluate", "runs")
    out = (
        []
        if words[0] in verbs_without_out or {"--shard", "--resume", "table"} & set(words)
        else ["-o", str(tmp_path / "out")]
    )
    before = sorted(tmp_path.rglob("*"))
    ran = forks.run(*words, *out)
    assert ran.code == 2, ran
    said = " ".join(ran.err.split())
    gone, near = (re.escape(str(tmp_path / names[key])) for key in (missing, meant[missing]))
    assert re.search(rf"mispair: {gone} does not exist \(did you mean {near}\?\); ", said), said
    assert sorted(tmp_path.rglob("*")) == before
