"""Which test files are about a source file? Tests sit where the code sits, and import what they are about."""

from __future__ import annotations

import re
from pathlib import PurePosixPath


def named_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Of test files those of the name of `file`, a source file."""
    return [path for path in tests if PurePosixPath(path).name == f"test_{PurePosixPath(file).name}"]


def near_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Of test files and their texts those about `file` (seen from the source folder): the one of its name first."""
    module = file.removesuffix(".py").replace("/", ".")
    parent, _, name = module.rpartition(".")
    imports = re.compile(rf'^from {module} import|^from {parent} import .*\b{name}\b|"{module}', re.MULTILINE)
    importing = [path for path, text in tests.items() if imports.search(text)]
    return list(dict.fromkeys(named_tests(file, tests) + importing))


def all_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Every test file, whatever `file` is."""
    return list(tests)
