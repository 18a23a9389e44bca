"""Many mutants on one collected test session: each in a fork that has imported everything, with its functions swapped.

A mutant inside a function is another code object. It is put into the functions that live already, so nothing has to be
imported again; the changed file lies on disk too, for what is imported late and for processes the tests start.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

Run = Callable[..., list[str]]


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The outermost functions of a module, those of its classes included."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            else:  # the body of a class
                yield from functions_of(constant)


def changed_functions(before: str, after: str, file: str) -> dict[CodeType, CodeType] | None:
    """Old code -> new code; None where the two sources do not hold the same functions."""
    old, new = (list(functions_of(compile(text, file, "exec", dont_inherit=True))) for text in (before, after))
    if [code.co_name for code in old] != [code.co_name for code in new]:
        return None
    return {one: other for one, other in zip(old, new, strict=True) if one != other}


def living(source: str) -> dict[str, list[FunctionType]]:
    """The functions that live, by file, of files below the folder `source`.

    Looked up once, before the forks: looking at every object copies its page of memory.
    """
    found: dict[str, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename.startswith(source):
            found.setdefault(thing.__code__.co_filename, []).append(thing)
    return found


def swap(changes: dict[CodeType, CodeType], functions: list[FunctionType]) -> bool:
    """Give these functions their new code; False where one cannot take it."""
    for function in functions:
        if function.__code__ in changes:
            try:
                function.__code__ = changes[function.__code__]
            except ValueError:  # other variables of an enclosing function
                return False
    return True


class NoShrinking:
    """A plugin of pytest: that a property fails is all that is asked, its smallest counterexample is not."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """After conftest.py has chosen its profile, before any test is defined."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")


class Warm:
    """A plugin of pytest: `judge_all` gets a way to run some of the collected tests, and their names, instead."""

    def __init__(self, judge_all: Callable[[Run, list[str]], None]) -> None:
        self.judge_all = judge_all
        self.red: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.red.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}

        def run(names: list[str], notes: Path | None, to_the_end: bool = False) -> list[str]:
            """In a fork: the tests in this order up to the first that is red, or all; those that were red.

            Each is written down in `notes` when it begins: the fork may not come to its end.
            """
            chosen = [items[name] for name in names if name in items]
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                if notes is not None:
                    with notes.open("a") as file:
                        file.write(f"{item.nodeid}\n")
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.red and not to_the_end:
                    break
            return self.red

        self.judge_all(run, list(items))
        return True
