"""Short trainings of towers, alone or as one process of several; the gradients of every step are kept beside each run.

`forks.run(FOLDER, HUB, program="tests.workflows.tower_ranks", ranks=2)`: each case into FOLDER/NAME.
"""

from __future__ import annotations

import sys
from pathlib import Path

from safetensors.torch import save_file

from mispair.workflows.train import train
from tests.runtime.ranks import WatchedEngine
from tests.workflows.tower_runs import configured

SHORT = ("train.lr=0.00001", "train.crop=0.6", "train.average=0.9", "data.noise.rate=0.5")
WITNESS = ("method.split.evidence=both", "method.warmup_epochs=1")
CASES = {
    "plain-clip": ("model.tune=full", "model.locked=1", "method.loss=infonce", "engine.chunk=3"),
    "plain-siglip": ("model.tune=full", "model.temperature=learned", "model.bias=-0.5", "method.loss=sigmoid"),
    "l2rm-clip": ("model.tune=lora", *WITNESS),
}


def main() -> None:
    folder, hub = map(Path, sys.argv[1:])
    for name, sets in CASES.items():
        method, encoder = name.split("-")
        config = configured(hub, encoder, *SHORT, *sets, method=method)
        engine = WatchedEngine(config.engine, double=False)
        train(config, folder / name, engine=engine, summarize=False)
        if engine.leads:
            save_file(engine.gradients, folder / name / "gradients.safetensors")
