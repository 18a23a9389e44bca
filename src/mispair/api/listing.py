"""What there is: runs, methods, encoders, experiments, and what this machine has, from Python."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mispair.encoders.protocol import EncoderAbout
    from mispair.experiments.spec import Spec
    from mispair.methods.about import About
    from mispair.runtime.machine import Check

    PathLike = str | os.PathLike[str]


def list_runs(folder: PathLike = "runs") -> list[dict[str, Any]]:
    """The runs of a folder, side by side; one that cannot be read is left out with a warning.

    Args:
        folder: a folder that holds run folders.

    Returns:
        An entry per run: run, method, model, noise, dev_rsum, test_rsum, estimated_rate, epochs_done, finished, ...;
        `pandas.DataFrame` takes the list.

    Raises:
        InputError: no such folder, or no run in it that can be read.

    Example:
        >>> max(mp.list_runs(), key=lambda run: run["test_rsum"] or 0)["run"]
    """
    from mispair.workflows.list_runs import list_runs as list_folder

    return list_folder(Path(folder), lambda why: warnings.warn(f"left out: {why}", stacklevel=3))


def list_methods() -> list[About]:
    """The methods there are, built-in ones first, then those of other packages.

    Returns:
        `About` of each: name, paper, year, networks, cost relative to plain training, what becomes of a pair.

    Example:
        >>> [method.name for method in mp.list_methods()]
    """
    from mispair.methods import METHODS

    return [cls.about for cls in METHODS.everybody()[0].values()]


def list_encoders() -> list[EncoderAbout]:
    """The encoders there are: what each is good for, its size and licence, and whether it is on this machine.

    Returns:
        `EncoderAbout` of each: name, good_for, joint (one space for pictures and texts), megabytes, here, remedy, ...

    Example:
        >>> [encoder.name for encoder in mp.list_encoders() if encoder.joint and encoder.here]
    """
    from mispair.encoders.registry import list_encoders as list_all

    return list_all()


def list_experiments() -> list[Spec]:
    """The experiments that `mispair.run_experiment` knows by name: the tables and figures of the paper.

    Returns:
        The `Spec` of each: name, title, shows, rows, columns, data.

    Example:
        >>> {spec.name: spec.title for spec in mp.list_experiments()}
    """
    from mispair.experiments.spec import list_specs, load_spec

    return [load_spec(str(path))[0] for path in list_specs()]


def inspect_machine() -> list[Check]:
    """What this machine has: Python, torch, device, memory, disk, extras; each with the remedy if it is missing.

    Returns:
        A `Check` for each: name, state ("ok", "note" or "missing"), found, remedy.

    Example:
        >>> [check for check in mp.inspect_machine() if check.state == "missing"]
    """
    from mispair.runtime.machine import inspect_machine as inspect

    return inspect(Path.cwd())
