"""Short trainings of many methods and backbones, one after the other: alone, or as one process of several.

The gradients of every step are kept beside each run. They are what can be compared: a parameter whose gradient is zero
but for rounding (a bias in front of a batch normalisation) is moved by Adam as far as any other, so the rate is small.
Most networks compute in double precision: in single precision a rounding of the weights alone moves the gradients of
L2RM on SGR by 5e-5, which would hide what the processes do differently.

`forks.run(FOLDER, program="tests.runtime.ranks", ranks=2)`: each into FOLDER/NAME.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

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
    "l2rm-vse-single": SPLIT,
    "plain-sgr-single": (*TRIPLET, *FINE),
}
SINGLE = ("l2rm-vse-single", "plain-sgr-single")  # computed in single precision, as a training is


class WatchedEngine(Engine):
    """Remembers the gradients of every step; `double`: the networks compute in double precision."""

    def __init__(self, config: EngineConfig, *, double: bool) -> None:
        super().__init__(config)
        self.gradients: dict[str, Tensor] = {}
        self.double = double

    def adopt(self, modules: Mapping[str, nn.Module], *others: Any) -> None:
        for module in modules.values() if self.double else ():
            module.double()
            for part in module.modules():
                part.register_forward_pre_hook(_in_double)
        super().adopt(modules, *others)

    def minimize(self, name: str, loss: Tensor) -> None:
        super().minimize(name, loss)
        for key, value in self.modules[name].named_parameters():
            if value.grad is not None:
                self.gradients[f"{self.steps}.{name}.{key}"] = value.grad.clone()


def _in_double(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.double() if isinstance(a, Tensor) and a.dtype == torch.float32 else a for a in arguments)


def main() -> None:
    folder = Path(sys.argv[1])
    for name, sets in CASES.items():
        method, model = name.split("-")[:2]
        config = load_config(None, [f"method.name={method}", f"model.name={model}", *SETS, *sets])
        engine = WatchedEngine(config.engine, double=name not in SINGLE)
        train(config, folder / name, engine=engine, summarize=False)
        if engine.leads:
            save_file(engine.gradients, folder / name / "gradients.safetensors")


if __name__ == "__main__":
    main()
