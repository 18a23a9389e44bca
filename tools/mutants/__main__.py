"""python -m tools.mutants: sample mutants, run the tests of their package against each, say which were not noticed.

Seeded and resumable: results are appended to .mutants/results.jsonl, and a mutant of an unchanged file is not run again
unless asked. Each runs on a copy of the source, in a fork: of a session that has collected the tests already where the
change is inside a function, else of a process that has imported the libraries. Which test reaches which line is
recorded once and kept on disk, for test files about the changed ones first. Only tests that reach the changed place are
asked, the quickest first, up to the first that is red, and those about the changed file; who notices must be green
without the change.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType

from tools.mutants.changes import Mutant, mutants
from tools.mutants.control import SCREEN, Control, ran
from tools.mutants.forked import BROKEN, forked
from tools.mutants.near import all_tests, named_tests, near_tests
from tools.mutants.reach import Reach, Recorder
from tools.mutants.warm import NoShrinking, Run, Warm, changed_functions, living, swap

ROOT = Path(__file__).parents[2]
PACKAGES = ("functional", "methods", "auditing", "models", "runtime", "data")
STORE = ROOT / ".mutants"
PATIENCE = 30.0  # seconds
FLOOR = 0.85
COLD = 99  # exit code: to be run in a fork that has imported nothing of ours
Widen = Callable[[str, dict[str, str]], list[str]]
UNNOTICED = ("survived", "not reached")
LIBRARIES = (
    "torch", "pytest", "numpy", "scipy.stats", "pyarrow.parquet", "pandas", "PIL.Image", "pydantic",
    "rich.progress", "typer", "yaml", "safetensors.torch", "sklearn.mixture", "ot", "nltk",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sample", type=int, default=300, help="mutants drawn, over all packages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="*", default=PACKAGES, help="of the sample, those of these packages")
    parser.add_argument("--only", default="", help="draw from files whose path holds this")
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="SECONDS",
        help="of tests that are asked, the quickest first: the share noticed is a lower bound",
    )
    parser.add_argument("--again", action="store_true", help="run survivors again, after writing tests")
    parser.add_argument("--fresh", action="store_true", help="run all again")
    asked = parser.parse_args()
    STORE.mkdir(exist_ok=True)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(STORE / "hypothesis")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.dont_write_bytecode = True
    chosen = [m for m in sample(list(PACKAGES), asked.sample, asked.seed, asked.only) if _package(m) in asked.packages]
    known = {} if asked.fresh else _results()
    open_ = [m for m in chosen if _key(m) not in known or (asked.again and known[_key(m)]["state"] in UNNOTICED)]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{ROOT}"
        sys.path.insert(0, str(source))
        for library in LIBRARIES:  # the forks share these
            with suppress(ImportError):
                importlib.import_module(library)
        importlib.import_module("torch").set_num_threads(1)
        by_package = {name: [m for m in open_ if _package(m) == name] for name in asked.packages}
        tests = [
            _Package(name, own, source, Path(folder) / "scratch", asked.patience)
            for name, own in by_package.items()
            if own
        ]
        for widen in (named_tests, near_tests, all_tests):  # what is quick to learn first, over all packages
            for package in tests:
                package.judge(widen)
        for package in tests:
            package.finish()
    return _report(chosen, _results())


def sample(packages: list[str], count: int, seed: int, only: str = "") -> list[Mutant]:
    """`count` mutants of the packages, drawn without regard to the order of files."""
    ranked: list[tuple[str, Mutant, str]] = []
    for package in packages:
        for path in sorted((ROOT / "src" / "mispair" / package).rglob("*.py")):
            if only in str(path):
                source = path.read_text(encoding="utf-8")
                ranked += [(mutant.rank(seed, source), mutant, source) for mutant in mutants(path, ROOT / "src")]
    ranked.sort(key=lambda entry: entry[0])
    valid = (mutant for _, mutant, source in ranked if mutant.parses(source))
    return sorted(itertools.islice(valid, count), key=lambda m: (m.file, m.start, m.new))


class _Package:
    """The mutants of one package against its tests."""

    def __init__(self, name: str, chosen: list[Mutant], source: Path, scratch: Path, patience: float) -> None:
        self.name, self.source, self.scratch, self.patience = name, source, scratch, patience
        self.log = STORE / f"last-{os.getpid()}.log"
        self.part = STORE / f"part-{os.getpid()}.json"
        self._list = STORE / f"cold-{os.getpid()}.txt"
        self.control = Control(self.part, self.log)
        self.files = sorted((ROOT / "tests" / name).rglob("test_*.py"))
        self.reach = Reach(STORE / "reach", ROOT, [])
        self.texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in self.files}
        self.asked: dict[Mutant, list[str]] = {mutant: [] for mutant in chosen}  # those without an answer
        self.began, self.of = time.monotonic(), len(chosen)

    def judge(self, widen: Widen) -> None:
        """Ask the tests in these files of whom no other has noticed."""
        quick = widen is named_tests  # what runs at import costs a start of its own, so it is not asked each time
        near = {mutant: widen(mutant.file, self.texts) for mutant in self.asked if mutant.inside or not quick}
        files = sorted({file for some in near.values() for file in some})
        self.reach = Reach(STORE / "reach", ROOT, [ROOT / file for file in files])
        self.reach.update(self.source, self._record)
        for test in self.reach.red:
            print(f"red without any change, so left out: {test}", flush=True)
        tests = {mutant: self._tests(mutant, done) for mutant, done in self.asked.items() if mutant in near}
        self._ask({mutant: some for mutant, some in tests.items() if some}, files)
        known = _results()
        self.asked = {m: done + tests.get(m, []) for m, done in self.asked.items() if not self._fresh(m, known)}

    def finish(self) -> None:
        for mutant, asked in self.asked.items():
            self._note(mutant, "survived" if asked else "not reached")

    def _ask(self, asked: dict[Mutant, list[str]], files: list[str]) -> None:
        """Write down who is noticed."""
        cold = [mutant for mutant in asked if not mutant.inside]

        def judge_warm(run: Run, _: list[str]) -> None:
            functions = living(f"{self.source}/")
            gc.freeze()  # in a fork the collector shall not copy memory either
            for mutant, tests in asked.items():
                if not mutant.inside:
                    continue
                changes = self._changes(mutant)
                if changes is None:
                    self._answer(mutant, COLD)
                elif not changes:
                    self._note(mutant, "the same program")
                else:
                    change = partial(swap, changes, functions.get(str(self.source / mutant.file), []))
                    self._answer(mutant, self._in_a_fork(mutant, tests, change, run, self._limit(tests)))

        if len(cold) < len(asked):
            warm = partial(self._pytest, files, Warm(judge_warm))
            forked(warm, self.log.with_suffix(".warm.log"), cpu=36_000, idle=math.inf)
            refused = self._refused()
            cold += [mutant for mutant in asked if mutant.name in refused]
        for mutant in cold:
            tests = asked[mutant]
            self._answer(mutant, self._one(mutant, partial(self._pytest, ["-x", *tests]), self._limit(tests)))

    def _answer(self, mutant: Mutant, code: int | None) -> None:
        if code == COLD:
            with self._list.open("a") as file:
                file.write(f"{mutant.name}\n")
        elif _state(code) != "survived":
            self._note(mutant, _state(code))

    def _refused(self) -> list[str]:
        """Those that a living session could not take, as the session has written them down."""
        names = self._list.read_text().splitlines() if self._list.exists() else []
        self._list.unlink(missing_ok=True)
        return names

    def _limit(self, tests: list[str]) -> int:
        return int(15 + 5 * sum(self.reach.seconds[test] for test in tests))

    def _in_a_fork(
        self, mutant: Mutant, tests: list[str], change: Callable[[], bool], run: Run, seconds: int
    ) -> int | None:
        """Whether the tests notice; those that are red in a fork without any change would notice everything."""
        while tests := [test for test in tests if test not in self.control.red]:
            code = self._one(mutant, partial(_with, change, run, tests, self.part), seconds)
            if code in (0, COLD) or not self.control.new_red(run, ran(self.part)):
                return code
        return COLD

    def _fresh(self, mutant: Mutant, known: dict[str, dict[str, str]]) -> bool:
        return float(known.get(_key(mutant), {}).get("at", 0)) >= STARTED

    def _record(self, files: list[str], recorder: Recorder) -> bool:
        def record() -> int:
            self._pytest(files, recorder)
            for file in set(files) - {test.split("::")[0] for test in recorder.lines}:
                recorder.write(file, recorder)  # no test of it is run here
            return 0

        return forked(record, self.log, cpu=3600) == 0

    def _tests(self, mutant: Mutant, done: list[str]) -> list[str]:
        """Tests that reach the place, the quickest first; then those about its file, which may reach it in a fork."""
        if not mutant.inside:
            reaching = self.reach.tests_of_file(mutant.file)
        else:
            reaching = self.reach.tests(mutant.file, mutant.statement, mutant.last_line)
        about = self.reach.tests_in(near_tests(mutant.file, self.texts))
        tests = [test for test in dict.fromkeys([*reaching, *about]) if test not in done]
        spent = list(itertools.accumulate(self.reach.seconds[test] for test in tests))
        return tests[: max(0 if done else 1, sum(seconds <= self.patience for seconds in spent))]

    def _changes(self, mutant: Mutant) -> dict[CodeType, CodeType] | None:
        before = (self.source / mutant.file).read_text(encoding="utf-8")
        return changed_functions(before, mutant.apply(before), str(self.source / mutant.file))

    def _one(self, mutant: Mutant, work: Callable[[], int], seconds: int) -> int | None:
        target = self.source / mutant.file
        original = target.read_text(encoding="utf-8")
        target.write_text(mutant.apply(original), encoding="utf-8")
        try:
            return forked(work, self.log, cpu=seconds)
        finally:
            target.write_text(original, encoding="utf-8")

    def _pytest(self, arguments: list[str], *plugins: object) -> int:
        import pytest

        os.chdir(ROOT)
        options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=0", "--no-header", "--tb=line", "-s"]
        return int(pytest.main([*options, f"--basetemp={self.scratch}", *arguments], plugins=[NoShrinking(), *plugins]))

    def _note(self, mutant: Mutant, state: str) -> None:
        entry = {"key": _key(mutant), "state": state, "what": _shown(mutant), "at": str(time.time())}
        with (STORE / "results.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")
        own = [entry for entry in _results().values() if entry["key"].startswith(f"mispair/{self.name}/")]
        done = sum(float(entry["at"]) >= STARTED for entry in own)  # by forks too
        line = f"[{self.name} {done}/{self.of}, {time.monotonic() - self.began:.0f}s] {state}: {_shown(mutant)}\n"
        os.write(SCREEN, line.encode())


STARTED = time.time()


def _with(change: Callable[[], bool], run: Run, tests: list[str], notes: Path) -> int:
    """In a fork: 1 where the tests notice the change, COLD where it cannot be made to what lives."""
    notes.write_text("")
    return bool(run(tests, notes)) if change() else COLD


def _state(code: int | None) -> str:
    assert code != BROKEN, f"the fork could not run the tests; see {STORE}"
    return {0: "survived", None: "noticed by time"}.get(code, "noticed")


def _package(mutant: Mutant) -> str:
    return mutant.file.split("/")[1]


def _key(mutant: Mutant) -> str:
    content = hashlib.sha256((ROOT / "src" / mutant.file).read_bytes()).hexdigest()[:16]
    return f"{mutant.name} {content}"


def _results() -> dict[str, dict[str, str]]:
    path = STORE / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def _shown(mutant: Mutant) -> str:
    old, new = (" ".join(text.split()) or "(nothing)" for text in (mutant.old, mutant.new))
    return f"{mutant.file}:{mutant.line} {mutant.kind}: {old[:60]} -> {new[:60]}"


def _report(chosen: list[Mutant], known: dict[str, dict[str, str]]) -> int:
    counts: dict[str, Counter[str]] = {}
    survivors = []
    for mutant in chosen:
        state = known[_key(mutant)]["state"]
        unnoticed = state in UNNOTICED
        if state != "the same program":
            counts.setdefault(_package(mutant), Counter())["unnoticed" if unnoticed else "noticed"] += 1
        if unnoticed:
            survivors.append((state, mutant))
    together = sum(counts.values(), Counter())
    print("\npackage      mutants  noticed")
    for package, count in {**counts, "all": together}.items():
        print(f"{package:12} {count.total():7}  {count['noticed'] / max(count.total(), 1):7.1%}")
    for state, mutant in survivors:
        print(f"{state}: {_shown(mutant)}")
    return 0 if together["noticed"] >= FLOOR * together.total() else 1


if __name__ == "__main__":
    sys.exit(main())
