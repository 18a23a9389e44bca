"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest
import yaml

from mispair.runtime.machine import inspect_machine
from tests.conftest import LONGEST

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_no_test_waits_on_a_clock() -> None:
    """A pause is too long on a quick machine and too short on a busy one: wait for an event, a signal, a process."""
    own = Path(__file__)
    assert not [path for path in TESTS if path != own and "time.sleep(" in path.read_text(encoding="utf-8")]


def test_what_tests_share_lies_in_files_without_tests() -> None:
    imports = [(path, node) for path in TESTS for node in _nodes(path) if isinstance(node, ast.ImportFrom)]
    assert not [path for path, node in imports if re.search(r"^tests\.(.+\.)?test_", node.module or "")]


def test_no_file_of_the_source_answers_two_questions() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "src").rglob("*.py"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 300
    }
    assert not long


def test_config_holds_configuration_alone() -> None:
    files = sorted((ROOT / "src/mispair/config").glob("*.py"))
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) < 400


def test_one_class_has_one_name() -> None:
    """A name means one thing in the whole of the source, with or without an underscore before it.

    A type that a module gives a short name (`Rows = NDArray[...]`) may be named so in several, but is no class's.
    """
    classes: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in _nodes(path):
            where = str(path.relative_to(ROOT))
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name.lstrip("_"), []).append(where)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                types.setdefault(node.targets[0].id.lstrip("_"), []).append(where)
    assert not {name: paths for name, paths in classes.items() if len(paths) > 1}
    assert not {name: (paths, types[name]) for name, paths in classes.items() if name in types}


def test_the_longest_files_of_the_tests_exist() -> None:
    assert not [name for name in LONGEST if not (ROOT / "tests" / name).is_file()]


# Whoever owns a folder knows the names of its files; everybody else asks it.
OWNERS = {
    "runtime/run_folder.py": "config.yaml metrics.json metrics.jsonl split.parquet state.pt alignment.json",
    "auditing/audit_folder.py": "audit.json audit.parquet look.csv",
    "data/embedded_folder.py": "encoder.json texts.npy failed.csv",
    "reviewing/decisions.py": "decisions.jsonl",
    "reviewing/flags.py": "flagged.jsonl",
    "auditing/fixing/patch.py": "fix.patch",
    "workflows/embed_shards.py": "shard.json",
}


@pytest.mark.parametrize("owner", OWNERS)
def test_the_files_of_a_folder_are_named_in_one_file(owner: str) -> None:
    package = ROOT / "src/mispair"
    texts = {
        path: {node.value for node in _nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for path in sorted(package.rglob("*.py"))
    }
    for name in OWNERS[owner].split():
        assert [str(path.relative_to(package)) for path, found in texts.items() if name in found] == [owner], name


PROSE = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "PAPERS.md")),
]


def test_every_file_that_is_named_exists() -> None:
    """In the documents and in the docstrings: a test that proves something, or the file in which something lives."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    rooms = "|".join(
        sorted(path.name for path in (ROOT / "src/mispair").iterdir() if path.is_dir() and path.name[0] != "_")
    )
    named = re.compile(rf"(?<![\w/.])(?:(tests/[\w/]+\.py)|(?:src/mispair/)?((?:{rooms})/[\w/]+\.py))")
    missing = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in (*PROSE, *sources)
        for match in named.finditer(path.read_text(encoding="utf-8"))
        if not (ROOT / (match[1] or f"src/mispair/{match[2]}")).is_file()
    }
    assert missing <= {"CONTRIBUTING.md: src/mispair/models/x.py"}  # the one that a reader is to write


def test_what_the_documents_import_is_there() -> None:
    """Whoever copies a block of Python from the documents gets no ImportError."""
    blocks = [block for path in PROSE for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S)]
    imports = [
        (node.module or "", alias.name)
        for block in blocks
        for node in ast.walk(ast.parse(textwrap.dedent(block)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mispair")
        for alias in node.names
    ]
    assert len(imports) > 8
    assert not [(module, name) for module, name in imports if not hasattr(importlib.import_module(module), name)]


def test_every_function_that_the_documents_name_is_there() -> None:
    """`functional.transport.partial_transport` and the like: a module, or a name in one."""
    named = re.compile(r"`((?:functional|methods|models|retrieval|mispair)\.[\w.]*\w)[`(]")
    names = {name for path in PROSE for name in named.findall(path.read_text(encoding="utf-8"))}
    names -= {name for name in names if re.search(r"\.(py|md|html|methods|models|encoders)$", name)}
    assert len(names) > 60
    assert not [name for name in sorted(names) if not _is_there(f"mispair.{name.removeprefix('mispair.')}")]


def _is_there(name: str) -> bool:
    """Whether a dotted name leads to a module or to something in one."""
    held = importlib.import_module("mispair")
    parts = name.split(".")
    for count, part in enumerate(parts[1:], 2):
        if not hasattr(held, part):
            try:
                importlib.import_module(".".join(parts[:count]))
            except ImportError:
                return False
        held = getattr(held, part)
    return True


def test_hand_written_gradients_name_the_slow_version_that_proves_them() -> None:
    oracles = {node.name for node in _nodes(ROOT / "tests/model_oracles.py") if isinstance(node, ast.FunctionDef)}
    kernels = ROOT / "src/mispair/models/kernels"
    for path in sorted(kernels.parent.rglob("*.py")):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        said = re.search(r"The slow versions? that proves? it: (.*?) ?in\s+tests/model_oracles\.py", about, re.S)
        named = set(re.findall(r"`(\w+)`", said[1])) if said else set()
        assert named <= oracles, path
        backwards = any(isinstance(node, ast.FunctionDef) and "backward" in node.name for node in _nodes(path))
        assert named or path.parent != kernels or not backwards, path


def test_the_extras_are_known_to_the_doctor_and_run_by_every_check() -> None:
    """An extra that `mispair doctor` does not name cannot be missed, and one that no check installs is not tested."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", section, re.M)) - {"browser", "docs"}  # tools with targets of their own
    known = {check.name for check in inspect_machine(ROOT)}
    assert {f"extra [{name}]" for name in extras} <= known
    (tools,) = re.findall(r"^TOOLS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(tools.split(",")) == extras
    assert f"-e '.[{tools}]'" in (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")


def test_the_matrix_of_checks_spans_what_is_supported() -> None:
    """The oldest and the newest Python and torch that the project says it takes."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    checks = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    matrix = checks["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", project)
    assert f'requires-python = ">={matrix["python"][0]}"' in project
    (pinned,) = re.findall(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    assert matrix["torch"][-1] == pinned.split("+")[0]
    assert f'"torch>={matrix["torch"][0].rpartition(".")[0]},' in project


def test_whatever_people_install_has_an_upper_bound() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sections = project.split("\ndependencies = [")[1].split("\ndev = [")[0]
    required = [line for line in re.findall(r'"([^"\n]+)"', sections) if not line.startswith("mispair[")]
    assert len(required) > 20
    assert not [line for line in required if "<" not in line and "==" not in line]
