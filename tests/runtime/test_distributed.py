"""Two processes equal one with the same global batch."""

import json
import os
import subprocess
import sys

import pytest
from safetensors.torch import load_file

from tests.synthetic import TINY

SETS = [
    f"--set={s}"
    for s in (*TINY, "data.noise.rate=0.5", "method.mixture=gaussian", "method.signal=triplet_mean", "train.epochs=3")
]


@pytest.mark.parametrize("method", ["l2rm", "plain"])
def test_two_processes_equal_one(tmp_path, method):
    choice = (
        SETS
        if method == "l2rm"
        else [*(s for s in SETS if "method." not in s), "--set=method.name=plain", "--set=method.loss=infonce"]
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    alone = [sys.executable, "-m", "mispair", "train", *choice, "-o", str(tmp_path / "alone")]
    together = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2",
        "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
        "-m", "mispair", "train", *choice, "-o", str(tmp_path / "together"),
    ]  # fmt: skip
    for command in (alone, together):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    left, right = (load_file(tmp_path / name / "model.safetensors") for name in ("alone", "together"))
    for key, value in left.items():
        assert (value - right[key]).abs().max() <= 1e-5 * max(1.0, float(value.abs().max())), key
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("alone", "together")]
    assert len(lines[0]) == len(lines[1])  # only one process writes
    for one, two in zip(*lines, strict=True):
        one, two = json.loads(one), json.loads(two)
        if one["event"] == "epoch":
            assert one["dev"]["rsum"] == pytest.approx(two["dev"]["rsum"], abs=1e-6)
            assert one["train"]["loss"] == pytest.approx(two["train"]["loss"], rel=1e-5)
