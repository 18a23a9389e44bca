"""Every file a verb reads, damaged: an answer or one sentence, in bounded time and memory, and nothing half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.forks import Forks, Ran
from tests.fuzz.damage import damage
from tests.fuzz.target import Target, run
from tests.fuzz.world import Worlds

SECONDS = 60.0
# Memory is what the command itself takes: the most that is resident while it runs, less what its process began with.
# A fork begins with everything that `tests.forks` imports (280 MB), so neither the interpreter nor torch, pyarrow and
# pandas count. What does: modules that only this command imports (transformers: 90 MB), weights, files and arrays.
NORMAL = 1 << 28  # bytes that a command takes with good files, at most
MEMORY = 1 << 30  # above that


@pytest.fixture(scope="module")
def worlds(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(forks, tmp_path_factory.mktemp("good"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_good_files_are_read(forks: Forks, worlds: Worlds, tmp_path: Path) -> None:
    distinct = {(target.folder, target.command): target for target in worlds.all_targets()}
    for command, target in distinct.items():
        ran, _ = _run(forks, target, tmp_path / "good", None)
        assert ran.code in (0, 1), (command, ran)
        assert ran.memory < NORMAL, (command, ran.memory)


@pytest.mark.parametrize("cases", [50, pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
def test_damaged_files_get_an_answer(cases: int, forks: Forks, worlds: Worlds, tmp_path: Path) -> None:
    wrong, refused = [], 0
    for case in range(cases):
        rng = np.random.default_rng([cases, case])
        target = worlds.draw(case, seed=cases)
        ran, said = _run(forks, target, tmp_path / "bad", rng)
        if ran.hung:  # what hangs does so twice; a machine that was busy for a minute does not
            ran, said = _run(forks, target, tmp_path / "bad", np.random.default_rng([cases, case]))
        refused += ran.code == 2
        if problem := _problem(ran, tmp_path / "bad"):
            wrong.append(f"case {case}: {target.name}, {said}: {problem}")
    assert not wrong, "\n".join(wrong)
    assert refused > cases / 3, "a fuzz that damages nothing proves nothing"


def _run(forks: Forks, target: Target, folder: Path, rng: np.random.Generator | None) -> tuple[Ran, str]:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(target.folder, folder)
    said = damage(folder / target.file, rng) if rng is not None else "good"
    command = (part.replace("{}", str(folder)) for part in target.command)
    return run(forks, *command, cache=folder / "cache", limit=SECONDS), said


def _problem(ran: Ran, folder: Path) -> str:
    last = ran.err.rstrip().rpartition("\n")[2]
    if ran.hung:
        return f"hung for {SECONDS:.0f} s"
    if "Traceback" in ran.err + ran.out:
        return f"traceback: {last}"
    if ran.code not in (0, 1, 2, 130):  # 130: a state that says it was asked to stop
        return f"exit code {ran.code}: {last}"
    if ran.memory > NORMAL + MEMORY:
        return f"{ran.memory / 2**30:.1f} GB of memory"
    if ran.code == 2 and not last.startswith("mispair: ") and "Usage:" not in ran.err:
        return f"no sentence: {last[:200]}"
    if len(last) > 2000:
        return f"a sentence of {len(last)} characters"
    left = [path.name for path in folder.rglob(".*") if path.suffix in (".tmp", ".part")]
    if left:
        return f"left behind: {left}"
    if ran.code == 2 and (folder / "out").exists():
        return "refused, and something was written"
    return ""
