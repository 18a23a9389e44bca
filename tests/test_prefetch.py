"""Batches are read by a thread while the step before is taken: in order, and what goes wrong there is said here."""

import dataclasses
import threading

import pytest

from mispair.data import PairData
from mispair.errors import InputError
from mispair.prefetch import map_ahead
from mispair.runtime.epoch_run import AHEAD
from mispair.workflows.train import train
from tests.synthetic import tiny_config

SETS = ("method.name=plain", "method.loss=infonce", "train.epochs=1")


def reading():
    return [thread for thread in threading.enumerate() if thread.name.startswith("mispair-ahead")]


def test_a_step_finds_the_next_batch_under_way():
    read, seen = [], []
    for item, square in map_ahead(lambda i: read.append(i) or i * i, range(10), 1, AHEAD):
        seen.append((item, square))
        assert not seen[:-1] or item in read
    assert seen == [(i, i * i) for i in range(10)]
    assert read == list(range(10))


def test_training_reads_in_another_thread(tmp_path, monkeypatch):
    readers, batch = set(), PairData.batch

    def watched(self, *arguments):
        readers.add(threading.current_thread().name.rsplit("_", 1)[0])
        return batch(self, *arguments)

    monkeypatch.setattr(PairData, "batch", watched)
    result = train(tiny_config(*SETS), tmp_path / "run", summarize=False)
    assert readers == {"mispair-ahead"}
    assert result.training.trainer.run.waited > 0
    assert not reading()  # none is left when the epoch is over


def test_what_the_reader_cannot_read_is_said(tmp_path, monkeypatch):
    batch, count = PairData.batch, iter(range(100))

    def broken(self, *arguments):
        if next(count) == 3:
            raise InputError("images.npy, row 7: the disk gave up")
        return batch(self, *arguments)

    monkeypatch.setattr(PairData, "batch", broken)
    with pytest.raises(InputError, match="row 7: the disk gave up"):
        train(tiny_config(*SETS), tmp_path / "run", summarize=False)
    assert not reading()


def test_a_batch_has_every_tensor_pinned(monkeypatch):
    """Without an accelerator nothing can be pinned: what is asked for is all there is to see."""
    import torch

    from tests.synthetic import tiny_data

    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(self) or self)
    batch = tiny_data(pictures=24).batch(range(4))
    assert len(pinned) == 0
    assert len(dataclasses.fields(batch.pinned())) == len(pinned) == 5
