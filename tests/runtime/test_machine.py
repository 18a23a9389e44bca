"""What `mispair doctor` says of machines that differ."""

import shutil
from collections import namedtuple

import pytest
import torch

from mispair.runtime import machine
from mispair.runtime.machine import inspect_machine

GB = 2**30


def _by_name(folder):
    return {check.name: check for check in inspect_machine(folder)}


def test_this_machine_can_run_the_tests(tmp_path):
    found = _by_name(tmp_path)
    assert [found[name].state for name in ("python", "torch", "libraries", "extra [dev]")] == ["ok"] * 4
    assert found["torch"].found == torch.__version__
    assert found["libraries"].found == f"all {len(machine._RUNTIME)} installed"
    assert list(found)[:2] == ["python", "torch"]


@pytest.mark.parametrize(
    ("free", "state", "said"),
    [
        (None, "note", "unknown"),
        (2 * GB - 1, "missing", "2.0 GB free"),
        (2 * GB, "ok", "2.0 GB"),
        (9 * GB, "ok", "9.0 GB"),
    ],
)
def test_memory(monkeypatch, tmp_path, free, state, said):
    monkeypatch.setattr(machine, "available_bytes", lambda: free)
    check = _by_name(tmp_path)["memory"]
    assert check.state == state
    assert said in check.found


@pytest.mark.parametrize(("free", "state"), [(GB - 1, "missing"), (GB, "ok"), (50 * GB, "ok")])
def test_disk(monkeypatch, tmp_path, free, state):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(0, 0, free))
    assert _by_name(tmp_path)["disk"].state == state
    monkeypatch.setattr(machine.os, "access", lambda path, mode: False)
    check = _by_name(tmp_path)["disk"]
    assert check.state == "missing"
    assert "cannot be written" in check.found


@pytest.mark.parametrize(
    ("cuda", "mps", "state", "said"),
    [(True, False, "ok", "cuda: A card (2 in all)"), (False, True, "ok", "mps"), (False, False, "note", "cpu only")],
)
def test_device(monkeypatch, tmp_path, cuda, mps, state, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A card")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    check = _by_name(tmp_path)["device"]
    assert (check.state, check.found) == (state, said)


@pytest.mark.parametrize(("threads", "state", "remedy"), [(4, "ok", ""), (5, "note", "set OMP_NUM_THREADS=4")])
def test_threads(monkeypatch, tmp_path, threads, state, remedy):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    check = _by_name(tmp_path)["threads"]
    assert (check.state, check.found, check.remedy) == (state, f"{threads} for 4 cores", remedy)


def test_what_is_not_installed_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_version", lambda name: None if name in ("rich", "tensorboard") else "1")
    found = _by_name(tmp_path)
    assert (found["libraries"].state, found["libraries"].remedy) == ("missing", "pip install rich")
    assert (found["extra [track]"].state, found["extra [track]"].found) == ("note", "not installed: tensorboard")
    assert found["extra [dev]"].state == "ok"
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    assert _by_name(tmp_path)["torch"].state == "missing"
