"""Train a tiny run, stopped where wanted; its weights and what its journal says of its epochs."""

import json

from mispair.workflows.train import train
from tests.synthetic import stopping_engine, tiny_config


def run(folder, *sets, resume=False, stop_after=None):
    """Train; with `stop_after`, a SIGTERM comes after so many optimizer steps."""
    config = tiny_config(*sets)
    engine = stopping_engine(config.engine, stop_after)
    result = train(config, folder, resume=resume, engine=engine, summarize=False)
    return result.training, result.progress


def weights(assembly):
    return {
        f"{name}.{key}": value.clone()
        for name, module in assembly.trainer.method.modules.items()
        for key, value in module.state_dict().items()
    }


def epochs(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in line.items() if k not in ("seconds", "cpu", "waited")}
        for line in lines
        if line["event"] == "epoch"
    ]
