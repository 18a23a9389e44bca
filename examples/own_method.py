"""A method of your own: leave the least likely pairs of every batch out.

`@mp.register` makes it known to this process. A package of its own brings it to every command by an entry point, and
then `mispair methods` lists it and `mispair train --method trimmed --set method.share=0.3` uses it:

    [project.entry-points."mispair.methods"]
    trimmed = "my_package.trimmed:Trimmed"
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from pydantic import Field

import mispair as mp
from mispair.functional import info_nce
from mispair.methods import About, MethodBase, MethodConfig, scores_of
from mispair.protocols import Run
from mispair.types import PairBatch


class TrimmedConfig(MethodConfig):
    """Its values, validated like those of the methods that come with mispair."""

    name: Literal["trimmed"] = "trimmed"
    share: float = Field(default=0.4, ge=0.0, lt=1.0)  # of a batch that is left out after the warm-up
    warmup_epochs: int = Field(default=2, ge=0)


@mp.register
class Trimmed(MethodBase[TrimmedConfig]):
    """InfoNCE on the pairs of a batch that hold best."""

    Config = TrimmedConfig
    about = About(
        name="trimmed",
        paper="An example",
        venue="mispair",
        year=2026,
        url="https://example.org",
        networks=1,
        cost=1.0,
        mismatched="is left out where it is among the worst of its batch",
    )

    def epoch(self, epoch: int, run: Run) -> None:
        self.share = 0.0 if epoch < self.config.warmup_epochs else self.config.share
        run.sweep(self._step, batch=None)

    def _step(self, run: Run, batch: PairBatch) -> None:
        images, texts = run.encode(self.net, batch)
        losses = info_nce(scores_of(self.net, images, texts), 0.05)
        kept = losses.topk(max(1, round((1 - self.share) * len(losses))), largest=False).values
        run.log(loss=kept.mean())
        run.minimize("net", kept.mean())


def main(folder: Path, pictures: int = 400, epochs: int = 8) -> None:
    print("known:", ", ".join(about.name for about in mp.list_methods()))
    values = {"data.scenes.pictures": pictures, "model.embed": 64, "train.lr": 0.003}
    for method, more in (("plain", {"method.loss": "infonce"}), ("trimmed", {"method.share": 0.5})):
        run = mp.train(
            "scenes",
            method=method,
            noise=0.6,
            epochs=epochs,
            out=folder / method,
            options={**values, **more},
            quiet=True,
        )
        print(f"{method:8} test rSum {run.metrics['test']['rsum']:.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
