"""How the reference losses come about: the same few epochs of every method through the command line.

python -m tests.trajectory.losses        writes references.json anew, after a change that is meant to change them
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from mispair.cli.app import app
from mispair.methods import method_names, method_preset

REFERENCES = Path(__file__).parent / "references.json"
EPOCHS = 30
# A small rate keeps rounding from growing: another processor's last digit must not become another trajectory.
SETS = (
    "data.scenes.pictures=120", "data.limit=17", "data.min_count=1", "model.name=vse", "model.embed=32",
    "model.word_dim=16", "model.words=bag", "train.batch_size=16", f"train.epochs={EPOCHS}", "train.lr=0.0005",
    "data.noise.rate=0.4", "engine.device=cpu",
)  # fmt: skip
# Every phase of every method has its epochs, and so few losses split although they hardly show two groups.
SHORT = {"warmup_epochs": 18, "noisy_from": 6, "restart_at": [22], "split": "{when_unimodal: posterior}"}


def losses(method: str, folder: Path) -> list[float]:
    """The mean loss of each of the first 30 epochs, two to eight steps each."""
    known = method_preset(method).model_dump()
    short = [f"method.{name}={value}" for name, value in SHORT.items() if name in known]
    arguments = [f"--set={value}" for value in (*SETS, *short)]
    result = CliRunner().invoke(app, ["train", "scenes", "--method", method, *arguments, "-o", str(folder)])
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [float(event["train"]["loss"]) for event in events if event["event"] == "epoch"]


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = {method: losses(method, Path(scratch) / method) for method in method_names()}
    rounded = {method: [float(f"{value:.7g}") for value in values] for method, values in found.items()}
    lines = [f"  {json.dumps(method)}: {json.dumps(values)}" for method, values in rounded.items()]
    REFERENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
