"""A disk that fills up while a command writes: one sentence, exit code 2, and no part of a result left."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.data.picture_samples import write_pictures
from tests.data.samples import write_lines
from tests.forks import Forks
from tests.synthetic import TINY

SETS = " ".join(f"--set={value}" for value in TINY)
COMMANDS = {
    "train": f"train {SETS} -o {{out}}/run",
    "corrupt": "corrupt {}/many.csv --rate 0.4 -o {out}/noisy",
    "audit": "audit --embeddings {}/a.npy {}/b.npy -o {out}/audit",
    "report": "report {}/audit -o {out}/report.html",
    "fix": "fix {}/judged --action weight -o {out}/fixed",
    "fix features": "fix {}/judged_folder --action drop -o {out}/fixed",
    "embed": "embed {}/pictures.csv --images {}/photos -o {out}/features",
    "index": "index {}/run -o {out}/index",
    "export": "export {}/run -o {out}/exported",
    "audit --train": "audit {}/pairs.csv --train --epochs 1 -o {out}/audit",
}


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("disk")
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted as root")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no small file system can be mounted here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.fixture(scope="module")
def data(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_lines(root / "many.csv", ["image_id,caption", *(f"{k},a dog number {k}" for k in range(20_000))])
    np.save(root / "many.npy", np.arange(20_000, dtype=np.float32)[:, None])
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(2000, 8)).astype(np.float32)
    for name in ("a", "b"):
        np.save(root / f"{name}.npy", rng.normal(size=(2000, 8)).astype(np.float32))
    words = (" ".join(f"w{k}{int(v > 0)}" for k, v in enumerate(row)) for row in vectors)
    write_lines(root / "pairs.csv", ["image_id,caption", *(f"{k},{text} {k}" for k, text in enumerate(words))])
    np.save(root / "pairs.npy", vectors)
    ran = forks.run("audit", "--embeddings", root / "a.npy", root / "b.npy", "-o", root / "audit")
    assert ran.code == 0, ran.err
    sets = [f"--set={value}" for value in (*TINY[1:5], "train.epochs=2", TINY[-1])]
    ran = forks.run("train", root / "pairs.csv", *sets, "-o", root / "run")
    assert ran.code == 0, ran.err
    (root / "folder_precomp").mkdir()
    rows = rng.integers(2000, size=400)
    for split in ("train", "dev"):
        np.save(root / "folder_precomp" / f"{split}_ims.npy", np.repeat(vectors[rows], 16, 1))
        lines = [f"a dog number {row % 50} and a cat number {row % 30}" for row in rows.tolist()]
        write_lines(root / "folder_precomp" / f"{split}_caps.txt", lines)
    ran = forks.run("train", root / "folder_precomp", *sets, "-o", root / "folder_run")
    assert ran.code == 0, ran.err
    for run, audit in (("run", "judged"), ("folder_run", "judged_folder")):
        ran = forks.run("audit", root / run, "--folds", 0, "-o", root / audit)
        assert ran.code == 0, ran.err
    write_pictures(root / "photos", [f"{k}.png" for k in range(40)])
    write_lines(root / "pictures.csv", ["image,caption", *(f"{k}.png,number {k}" for k in range(40))])
    return root


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_gets_one_sentence(command: str, small_disk: Path, data: Path, forks: Forks) -> None:
    words = [word.replace("{out}", str(small_disk)).replace("{}", str(data)) for word in command.split()]
    ran = forks.run(*words)
    said = ran.err.rstrip().rpartition("\n")[2]
    left = [path for path in small_disk.rglob("*") if path.is_file()]
    for path in small_disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "Traceback" not in ran.err
    assert ran.code == 2, ran
    assert said.startswith("mispair: "), ran
    assert "full" in said or "space" in said.lower(), said
    assert "--resume" not in said, said  # nothing was saved
    assert not left, left
