"""The data of an audit, found again or refused with what differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mispair
from mispair.auditing.fixing.judged_data import reopen
from mispair.auditing.quick import quick_audit_files
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig
from mispair.errors import InputError
from tests.auditing.planted import planted
from tests.data.samples import write_lines

PAIRS = 151


def table(path: Path, captions: list[str], images: list[str]) -> DataConfig:
    write_lines(path, ["image_id,caption", *(f"{i},{c}" for i, c in zip(images, captions, strict=True))])
    np.save(path.with_suffix(".npy"), np.arange(PAIRS * 2, dtype=np.float32).reshape(PAIRS, 2))
    write_lines(path.with_name(f"{path.stem}_ids.txt"), [f"im{k}" for k in range(PAIRS)])
    return DataConfig(path=str(path))


CAPTIONS = [f"caption number {k}" for k in range(PAIRS)]
IMAGES = [f"im{k}" for k in range(PAIRS)]


@pytest.fixture(scope="module")
def in_memory() -> Verdicts:
    a, b, *_ = planted(pairs=PAIRS)
    return mispair.quick_audit(a, b, captions=CAPTIONS, image_ids=IMAGES)


def test_what_was_judged_in_memory_needs_a_name(in_memory: Verdicts, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made in memory"):
        reopen(in_memory)
    opened = reopen(in_memory, table(tmp_path / "t.csv", CAPTIONS, IMAGES))
    assert opened.split == "all"
    assert [opened.table.captions[row] for row in opened.table.text_rows] == CAPTIONS


@pytest.mark.parametrize(
    ("captions", "images", "reason"),
    [
        ([*CAPTIONS[:-1], "another"], IMAGES, "pair 150 has another caption"),
        (CAPTIONS, [*IMAGES[:7], "im9", *IMAGES[8:]], "pair 7 shows another image"),
        (CAPTIONS[:-1], IMAGES[:-1], "it has 150 pairs, the audit 151"),
    ],
)
def test_other_data_is_refused_with_what_differs(
    in_memory: Verdicts, tmp_path: Path, captions: list[str], images: list[str], reason: str
) -> None:
    with pytest.raises(InputError, match=f"is not what was judged.*{reason}"):
        reopen(in_memory, table(tmp_path / "t.csv", captions, images))


def test_changed_data_is_refused(tmp_path: Path) -> None:
    a, b, *_ = planted(pairs=PAIRS)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    config = table(tmp_path / "t.csv", CAPTIONS, IMAGES)
    verdicts = quick_audit_files(tmp_path / "a.npy", tmp_path / "b.npy", data=config)
    assert len(reopen(verdicts).table) == PAIRS
    odd = replace(verdicts.facts, data={**verdicts.facts.data, "config": {"nonsense": 1}})
    with pytest.raises(InputError, match="in a way mispair does not know"):
        reopen(replace(verdicts, facts=odd))
    table(tmp_path / "t.csv", [*CAPTIONS[:-1], "another"], IMAGES)
    with pytest.raises(InputError, match="has changed since the audit"):
        reopen(verdicts)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(InputError, match=r"t\.csv does not exist.*name where it lies now with --data"):
        reopen(verdicts)
