"""The second half of the demonstration: what is written is what was said, and it is judged well from raw pictures."""

import csv

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from mispair.workflows.demo_pictures import RATE, judge_pictures, write_pictures


def test_a_share_of_the_captions_stands_beside_another_picture(tmp_path):
    mismatched = write_pictures(tmp_path, 60)
    with (tmp_path / "pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(mismatched)
    assert abs(mismatched.mean() - RATE) < 0.02
    home = {}  # an image's captions follow each other where nothing was moved
    for k, row in enumerate(rows):
        if not mismatched[k]:
            assert home.setdefault(k // 5, row["filepath"]) == row["filepath"]
        with Image.open(tmp_path / "photos" / row["filepath"]) as picture:
            assert picture.size[0] > 30
    assert sum(home.get(k // 5) == row["filepath"] for k, row in enumerate(rows) if mismatched[k]) == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_picture_files_to_verdicts(tmp_path, monkeypatch):
    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    done = judge_pictures(tmp_path / "demo", Console(quiet=True))
    assert done.auroc > 0.85
    facts = done.verdicts.facts
    assert facts.rate_low <= done.rate <= facts.rate_high
    assert np.isfinite(done.verdicts.p_mismatch).all()
    assert "data:image/webp" in (tmp_path / "demo" / "report.html").read_text()
