"""Pairs of the training are called as the page calls those that were judged, or by numbers that say they are others."""

from pathlib import Path

import numpy as np

from mispair.data import DataConfig, open_source
from mispair.report.content import PairRow
from mispair.workflows.report.trained_pairs import trained_pairs


def test_a_part_held_out_does_not_shift_the_numbers(tmp_path: Path):
    np.save(tmp_path / "pairs.npy", np.ones((40, 4), np.float32))
    lines = "".join(f"{k}.jpg,caption {k}\n" for k in range(40))
    (tmp_path / "pairs.csv").write_text(f"image,caption\n{lines}")
    config = DataConfig(path=str(tmp_path / "pairs.csv"))
    judged = [PairRow(str(k), f"{k}.jpg", f"caption {k}", 0.5, False) for k in range(40)]
    captions = open_source(config, "train").captions
    assert captions is not None
    assert 0 < len(captions) < 40
    named = trained_pairs(config, "all", judged, len(captions))
    assert named is not None
    assert [row.caption for row in named] == list(captions)
    assert trained_pairs(config, "train", judged, 40) == judged
    assert trained_pairs(config, "train", judged, 39) is None
    assert trained_pairs(config, "all", judged[1:], len(captions)) is None, "a pair was left out of the audit"
    assert trained_pairs(config, "dev", judged, 3) is None
