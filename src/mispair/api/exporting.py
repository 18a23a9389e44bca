"""Hand a trained model to other programs, from Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mispair.workflows.trained_run import TrainedRun

    PathLike = str | os.PathLike[str]


def export(run: PathLike | TrainedRun, out: PathLike = "exported", *, to: str = "safetensors") -> Path:
    """Write the best networks of a run with a model card, for programs that do not know mispair.

    Args:
        run: a finished run folder, or what `mispair.load` gave.
        out: a new folder.
        to: "safetensors": weights and how to build the networks. "onnx": one graph per side (vse and dual), compared
            with the networks before it is written. "transformers", "sentence-transformers": the towers that
            `train(tune=...)` trained, merged, in the format they came in.

    Returns:
        `out`.

    Raises:
        InputError: the run cannot be written so; the message says why.

    Example:
        >>> mp.export("runs/a", "model", to="onnx")
    """
    from mispair.workflows.export import export as export_run

    export_run(Path(run) if isinstance(run, (str, os.PathLike)) else run.folder, Path(out), to)
    return Path(out)
