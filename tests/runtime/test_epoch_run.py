"""What an epoch hands its method: means of what was logged, and batches that nothing is left out of unless asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from mispair.runtime.epoch_run import EpochRun
from mispair.runtime.randomness import Streams


class Nothing:
    table = SimpleNamespace(image_rows=None, known=None, weights=None)
    images = SimpleNamespace(shape=(3, 4, 4))

    def __len__(self) -> int:
        return 0


def epoch(**config: float) -> EpochRun:
    given: Any = SimpleNamespace(**{"drop_regions": 0.0, "drop_words": 0.0, "crop": 1.0, **config})
    engine: Any = SimpleNamespace(device=torch.device("cpu"))
    data: Any = Nothing()
    method: Any = None
    journal: Any = None
    run = EpochRun(given, engine, data, method, journal, Streams(0), lambda between: None)
    run.begin(1)
    return run


def test_what_was_logged_is_told_as_its_mean() -> None:
    run = epoch()
    for loss in (1.0, torch.tensor(3.0), 8.0):
        run.log(loss=loss)
    run.log(seen=5.0)
    assert run.end() == {"loss": 4.0, "seen": 5.0}
    run.begin(2)
    assert run.end() == {}


def test_nothing_is_left_out_unless_asked() -> None:
    batches: dict[str, Any] = {}
    assert epoch()._thinned(batches, 0) is batches
    assert epoch(crop=0.5)._thinned(batches, 0) is not batches
    assert epoch(drop_words=0.5)._thinned(batches, 0) is not batches
