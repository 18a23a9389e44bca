"""Which test files are about a source file? Tests sit where the code sits, and import what they are about."""

from __future__ import annotations

import re
from pathlib import PurePosixPath


def named_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Of test files those of the name of `file`, a source file."""
    return [path for path in tests if PurePosixPath(path).name == f"test_{PurePosixPath(file).name}"]


def near_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Of test files and their texts those about `file` (seen from the source folder): the one of its name first.

    Those that import it too; where none has its name, those of the same folder below a package.
    """
    module = file.removesuffix(".py").replace("/", ".")
    parent, _, name = module.rpartition(".")
    imports = re.compile(rf'^from {module} import|^from {parent} import .*\b{name}\b|"{module}', re.MULTILINE)
    importing = [path for path, text in tests.items() if imports.search(text)]
    named = named_tests(file, tests)
    home = PurePosixPath("tests", *PurePosixPath(file).parts[1:-1])
    beside = [path for path in tests if PurePosixPath(path).parent == home and len(home.parts) > 2 and not named]
    return list(dict.fromkeys(named + importing + beside))


def all_tests(file: str, tests: dict[str, str]) -> list[str]:
    """Every test file, whatever `file` is."""
    return list(tests)
