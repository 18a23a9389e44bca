"""Same seed, same bits; stopped anywhere and resumed, same bits."""

import json
import os

import numpy as np
import pytest
import torch

from mispair.atomic import write_atomically
from mispair.errors import InputError
from mispair.runtime import checkpoint
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams
from mispair.runtime.schedule import learning_rate
from mispair.workflows.train import train
from tests.runtime.trainings import epochs, run, weights
from tests.synthetic import tiny_config

L2RM = (
    "data.noise.rate=0.5",
    "method.candidates.kind=queue",
    "method.candidates.size=64",
    "method.split.mixture=gaussian",
    "method.split.signal=triplet_mean",
    "method.warmup_epochs=3",
    "train.epochs=6",
    "train.lr=0.01",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assembly, progress = run(folder, *L2RM)
    assert all("mass" in epoch["train"] for epoch in epochs(folder)[3:])  # it really rematches
    return weights(assembly), epochs(folder), progress, assembly.trainer.engine.steps, folder, len(assembly.data)


def test_same_seed_same_bits(tmp_path, whole):
    assembly, progress = run(tmp_path, *L2RM)
    assert all(torch.equal(value, whole[0][key]) for key, value in weights(assembly).items())
    assert epochs(tmp_path) == whole[1]
    assert progress.best == whole[2].best


def test_another_seed_is_another_run(tmp_path, whole):
    assembly, _ = run(tmp_path, *L2RM, "seed=1")
    assert any(not torch.equal(value, whole[0][key]) for key, value in weights(assembly).items())


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.7, 0.78, 0.9, 0.99])
def test_stopped_anywhere_and_resumed_is_the_same_run(tmp_path, whole, part):
    stop_after = 1 + int(part * (whole[3] - 1))
    _, progress = run(tmp_path, *L2RM, stop_after=stop_after)
    assert progress.stopped
    assembly, progress = run(tmp_path, *L2RM, resume=True)
    assert not progress.stopped
    assert all(torch.equal(value, whole[0][key]) for key, value in weights(assembly).items())
    assert epochs(tmp_path) == whole[1]
    assert progress.best == whole[2].best


def test_stopped_twice_is_the_same_run(tmp_path, whole):
    run(tmp_path, *L2RM, stop_after=5)
    run(tmp_path, *L2RM, resume=True, stop_after=whole[3] - 9)
    with (tmp_path / "metrics.jsonl").open("a") as journal:  # what a run killed after its last save leaves behind
        journal.write(json.dumps({"event": "epoch", "epoch": 5, "dev": {}}) + "\n")
    assembly, _ = run(tmp_path, *L2RM, resume=True)
    assert all(torch.equal(value, whole[0][key]) for key, value in weights(assembly).items())
    assert epochs(tmp_path) == whole[1]


def test_a_killed_write_leaves_nothing_behind_a_resumed_run(tmp_path):
    run(tmp_path, *L2RM, stop_after=2)
    for half_written in (tmp_path / ".config.yaml.1.tmp", tmp_path / "last" / ".state.pt.1.tmp"):
        half_written.write_bytes(b"half")
    run(tmp_path, *L2RM, resume=True, stop_after=3)
    assert not list(tmp_path.rglob("*.tmp"))


def test_dropout_goes_on_where_it_was(tmp_path):
    sets = (*L2RM, "model.dropout=0.3", "train.epochs=4")
    assembly, _ = run(tmp_path / "whole", *sets)
    run(tmp_path / "parts", *sets, stop_after=assembly.trainer.engine.steps - 9)
    resumed, _ = run(tmp_path / "parts", *sets, resume=True)
    truth = weights(assembly)
    assert all(torch.equal(value, truth[key]) for key, value in weights(resumed).items())


def test_the_split_is_written_per_epoch(whole):
    import pyarrow.parquet as pq

    table = pq.read_table(whole[4] / "split.parquet")
    assert set(table.column_names) == {"epoch", "pair_id", "loss", "signal", "posterior", "mismatched", "cost"}
    assert table.num_rows == 3 * whole[5]  # every epoch after the warm-up
    assert np.isfinite(table["posterior"].to_numpy()).all()


def test_patience_ends_a_run_that_does_not_get_better(tmp_path):
    _, progress = run(tmp_path, "train.lr=1e-9", "train.epochs=30", "train.patience=2")
    assert progress.epoch < 10


def test_resume_with_other_data_or_configuration_is_refused(tmp_path):
    run(tmp_path, *L2RM, stop_after=3)
    files = {name: (tmp_path / name).read_bytes() for name in ("config.yaml", "vocabulary.json", "last/state.pt")}
    for changed in (("data.noise.rate=0.4",), ("train.lr=0.02",), ("data.scenes.seed=3", "data.min_count=50")):
        with pytest.raises(ValueError, match="what it was started with has changed"):
            run(tmp_path, *L2RM, *changed, resume=True)
        assert all((tmp_path / name).read_bytes() == content for name, content in files.items()), "and left as it was"


def test_fewer_pairs_than_a_batch_get_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"has 390 pairs, fewer than one batch of 512; set a smaller train.batch_size"):
        run(tmp_path, "train.batch_size=512")


def test_processes_that_do_not_divide_the_batch_get_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("mispair.runtime.engine._join", lambda device: (0, 2))
    with pytest.raises(InputError, match=r"train.batch_size=15 does not divide among 2 processes; 14 would"):
        train(tiny_config("train.batch_size=15"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


class TestCheckpoint:
    def test_a_full_disk_leaves_the_previous_save_intact(self, tmp_path, monkeypatch):
        checkpoint.save_state(tmp_path / "last" / "state.pt", {"value": torch.ones(3)})

        def full(value, path):
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(torch, "save", full)
        with pytest.raises(
            ValueError,
            match="the disk is full.*before is intact; free some space and go on with --resume",
        ):
            checkpoint.save_state(tmp_path / "last" / "state.pt", {"value": torch.zeros(3)})
        monkeypatch.undo()
        assert torch.equal(checkpoint.load_state(tmp_path / "last" / "state.pt")["value"], torch.ones(3))
        assert [path.name for path in (tmp_path / "last").iterdir()] == ["state.pt"]

    def test_a_second_interrupt_leaves_no_half_file(self, tmp_path):
        def interrupted(path):
            path.write_bytes(b"half")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / "state.pt", interrupted)
        assert not list(tmp_path.iterdir())

    def test_a_journal_shorter_than_remembered_is_not_filled_up(self, tmp_path):
        with Journal(tmp_path / "metrics.jsonl") as journal:
            journal.event("note", text="one")
            before = (tmp_path / "metrics.jsonl").read_bytes()
            journal.cut(10_000)
        assert (tmp_path / "metrics.jsonl").read_bytes() == before

    @pytest.mark.parametrize("odd", [{"best": "high"}, {"best_metrics": {"rsum": " "}}, {"epoch": 1.5}])
    def test_a_state_whose_best_epoch_is_no_number_gets_one_sentence(self, tmp_path, odd):
        run(tmp_path, *L2RM, stop_after=1)
        state = torch.load(tmp_path / "last" / "state.pt", weights_only=True)
        state["progress"] |= odd
        torch.save(state, tmp_path / "last" / "state.pt")
        with pytest.raises(InputError, match=r"state\.pt is damaged"):
            run(tmp_path, *L2RM, resume=True)

    @pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 broken"])
    def test_a_damaged_state_gets_one_sentence(self, tmp_path, content):
        (tmp_path / "last").mkdir()
        (tmp_path / "last" / "state.pt").write_bytes(content)
        with pytest.raises(ValueError, match="damaged or not a checkpoint"):
            checkpoint.load_state(tmp_path / "last" / "state.pt")

    def test_a_state_that_wants_to_execute_code_is_refused(self, tmp_path):
        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {tmp_path}/pwned",)

        (tmp_path / "last").mkdir()
        torch.save({"format": 1, "x": Evil()}, tmp_path / "last" / "state.pt")
        with pytest.raises(ValueError, match="damaged or not a checkpoint"):
            checkpoint.load_state(tmp_path / "last" / "state.pt")
        assert not (tmp_path / "pwned").exists()

    @pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 4096])
    def test_a_damaged_model_gets_one_sentence(self, tmp_path, content):
        (tmp_path / "model.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            checkpoint.load_model(tmp_path / "model.safetensors")


class TestRandomness:
    def test_names_give_independent_repeatable_streams(self):
        draw = lambda seed, name: Streams(seed).numpy(name).random(4).tolist()  # noqa: E731
        assert draw(0, "a") == draw(0, "a")
        assert draw(0, "a") != draw(0, "b")
        assert draw(0, "a") != draw(1, "a")
        assert torch.equal(
            torch.rand(4, generator=Streams(3).torch("x")), torch.rand(4, generator=Streams(3).torch("x"))
        )


class TestSchedule:
    def test_by_hand(self):
        rates = [learning_rate("step", 1.0, e, 10, (4, 8)) for e in (0, 3, 4, 7, 8, 9)]
        assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
        assert learning_rate("constant", 0.3, 7, 10) == 0.3
        assert learning_rate("cosine", 1.0, 5, 10) == pytest.approx(0.5)
