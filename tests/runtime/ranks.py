"""Short trainings of many methods and backbones, one after the other: alone, or as one process of several.

The gradients of every step are kept beside each run. They are what can be compared: a parameter whose gradient is zero
but for rounding (a bias in front of a batch normalisation) is moved by Adam as far as any other, so the rate is small.

`forks.run(FOLDER, program="tests.runtime.ranks", ranks=2)`: each into FOLDER/NAME. Names after the folder: these alone,
their weights moved by a rounding after the first step.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from mispair.config.load import load_config
from mispair.runtime.engine import Engine, EngineConfig
from mispair.workflows.train import train

# A handful of pictures, a warm-up and an epoch.
SETS = (
    "data.scenes.pictures=120", "data.limit=13", "data.min_count=1", "data.noise.rate=0.5", "train.batch_size=16",
    "train.epochs=2", "train.lr=0.00001", "model.embed=16", "model.word_dim=8",
)  # fmt: skip
WARM = ("method.warmup_epochs=1",)
SPLIT = (*WARM, "method.split.mixture=gaussian", "method.split.when_unimodal=posterior")
COTEACHING = (*WARM, "method.noisy_from=0")
TRIPLET = ("method.loss=triplet",)
FINE = ("model.sim=8", "model.dropout=0")
CASES: dict[str, tuple[str, ...]] = {
    "l2rm-vse": SPLIT,
    "l2rm-sgr": (*SPLIT, *FINE),
    "plain-sgr": (*TRIPLET, *FINE),
    "plain-vse-chunk": ("method.loss=infonce", "engine.chunk=3"),
    "plain-sgr-shortlist": ("method.loss=infonce", *FINE, "model.shortlist=1", "model.shortlist_after=1"),
    "l2rm-imram": SPLIT,
    "gsc-saf": (*FINE, "model.bn=batch"),
    "rcl-saf": FINE,
    "decl-sgr": (*WARM, *FINE),
    "crcl-vse": ("method.restart_at=[1]", *WARM),
    "ncr-vse": COTEACHING,
    "bicro-vse": COTEACHING,
    "pc2-vse": COTEACHING,
    "in2r-vse": COTEACHING,
}


# Steps so sensitive that a rounding of the weights moves the gradients further than two processes may be apart.
SENSITIVE = ("l2rm-sgr",)


class WatchedEngine(Engine):
    """Remembers the gradients of every step; `rounded`: moves the weights by a rounding after the first."""

    def __init__(self, config: EngineConfig, *, rounded: bool = False) -> None:
        super().__init__(config)
        self.gradients: dict[str, Tensor] = {}
        self.rounded = rounded

    def minimize(self, name: str, loss: Tensor) -> None:
        super().minimize(name, loss)
        if self.rounded and self.steps == 1:
            drawn = torch.Generator().manual_seed(0)
            with torch.no_grad():
                for value in self.modules[name].parameters():
                    value.mul_(1 + 2**-24 * torch.randn(value.shape, generator=drawn))
        for key, value in self.modules[name].named_parameters():
            if value.grad is not None:
                self.gradients[f"{self.steps}.{name}.{key}"] = value.grad.clone()


def main() -> None:
    folder, rounded = Path(sys.argv[1]), sys.argv[2:]
    for name in rounded or CASES:
        sets = CASES[name]
        method, model = name.split("-")[:2]
        config = load_config(None, [f"method.name={method}", f"model.name={model}", *SETS, *sets])
        engine = WatchedEngine(config.engine, rounded=name in rounded)
        train(config, folder / name, engine=engine, summarize=False)
        if engine.leads:
            save_file(engine.gradients, folder / name / "gradients.safetensors")
