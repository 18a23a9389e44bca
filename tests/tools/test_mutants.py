"""The changes that `make mutants` makes: each alone, each a program, the rest of the file as it was."""

from __future__ import annotations

import ast
import importlib
import signal
import sys
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from tools.mutants.changes import mutants
from tools.mutants.control import Control, ran
from tools.mutants.forked import BROKEN, forked
from tools.mutants.near import named_tests, near_tests
from tools.mutants.reach import Reach, Recorder
from tools.mutants.warm import changed_functions, living, swap

SOURCE = '''"""Words 1 + 1."""
LIMIT = 3


def f(a: int = 1, *, flip: bool = True) -> float:
    """2 > 1."""
    assert a > 0, f"{a + 1}"
    if a < LIMIT and not flip:
        a += 2
    part = [a][0:1]
    return (a + 1) * len(sorted(part, reverse=True)) + max(a, part)


def é(x):  # a name of two bytes
    return "é" + x
'''


@pytest.fixture
def changed(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SOURCE, encoding="utf-8")
    return [mutant for mutant in mutants(path, tmp_path) if mutant.parses(SOURCE)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("constant", "3", "4"), "LIMIT = 4"),
        (("constant", "1", "2"), "a: int = 2"),
        (("constant", "True", "False"), "flip: bool = False"),
        (("comparison", "<", "<="), "if a <= LIMIT and not flip:"),
        (("boolean", "and", "or"), "if a < LIMIT or not flip:"),
        (("boolean", "not flip", "(flip)"), "if a < LIMIT and (flip):"),
        (("arithmetic", "+=", "-="), "a -= 2"),
        (("slice", "1", ""), "[a][0:]"),
        (("arithmetic", "*", "/"), "(a + 1) / len("),
        (("argument", ", reverse=True", ""), "sorted(part))"),
        (("argument", "a, part", "part, a"), "max(part, a)"),
        (("arithmetic", "+", "-"), 'return "é" - x'),
    ],
)
def test_a_change_stands_in_its_place(changed, change, expected):
    texts = [m.apply(SOURCE) for m in changed if (m.kind, m.old, m.new) == change]
    assert sum(expected in text for text in texts) == 1
    for text in texts:
        ast.parse(text)


def test_words_and_promises_are_left_alone(changed):
    for mutant in changed:
        text = mutant.apply(SOURCE)
        for kept in ('"""Words 1 + 1."""', '"""2 > 1."""', 'assert a > 0, f"{a + 1}"'):
            assert kept in text


def test_what_importing_runs_is_told_from_what_a_test_runs(changed):
    inside = {(m.old, m.new): m.inside for m in changed}
    assert not inside["3", "4"]
    assert inside["<", "<="]
    assert [m.inside for m in changed if (m.old, m.new) == ("True", "False")] == [False, True]


def test_a_sample_stays_when_another_line_changes(tmp_path):
    def ranks(source):
        (tmp_path / "m.py").write_text(source, encoding="utf-8")
        return {m.rank(0, source) for m in mutants(tmp_path / "m.py", tmp_path)}

    before, after = ranks(SOURCE), ranks("import os\n\n" + SOURCE.replace("a += 2", "a += 5"))
    assert len(before - after) == len(after - before) == 2  # the operator and the number
    assert ranks(SOURCE) == before


def test_living_functions_take_the_change(tmp_path, monkeypatch):
    """Whoever holds the function runs the changed one; a wrapped one and a method too."""
    before = (
        "import functools\n\ndef f(x):\n    return [x + k for k in range(2)]\n\n"
        "class A:\n    @property\n    def two(self):\n        return 2\n\n"
        "@functools.wraps(f)\n@functools.cache\ndef g(x):\n    return x + 1\n"
    )
    (tmp_path / "living.py").write_text(before)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("living")
    held, thing, file = module.f, module.A(), str(tmp_path / "living.py")
    for old, new in (("x + k", "x - k"), ("return 2", "return 3"), ("x + 1", "x + 5")):
        changes = changed_functions(before, before.replace(old, new), file)
        assert changes
        assert swap(changes, living(str(tmp_path))[file])
    assert (held(1), thing.two, module.g(1)) == ([1, 0], 3, 6)
    assert changed_functions(before, before.replace("x + k", "x  +  k"), file) != {}  # places count
    assert changed_functions(before, before + "def h():\n    return 1\n", file) is None


def test_a_fork_comes_to_an_end(tmp_path):
    def endless():
        while True:
            pass

    assert forked(lambda: 7, tmp_path / "log", cpu=10) == 7
    assert forked(endless, tmp_path / "log", cpu=1) is None
    assert forked(signal.pause, tmp_path / "log", cpu=10, idle=0.1) is None
    assert forked(lambda: 1 // 0, tmp_path / "log", cpu=10) == BROKEN


def test_who_is_red_without_a_change_has_no_say_and_is_asked_once(tmp_path):
    def run(tests, notes, to_the_end):
        assert to_the_end
        return [test for test in tests if test == "b"]

    control = Control(tmp_path / "part", tmp_path / "log")
    assert not control.new_red(run, ["a"])
    assert control.new_red(run, ["a", "b"])
    assert (control.red, control.green) == ({"b"}, {"a"})
    assert not control.new_red(lambda *_, **__: 1 // 0, ["a"])
    with pytest.raises(SystemExit, match="cannot be run in a fork"):
        control.new_red(lambda *_, **__: 1 // 0, ["c"])
    (tmp_path / "notes").write_text("a\nb[x y]\n")
    assert ran(tmp_path / "notes") == ["a", "b[x y]"]


def test_near_is_the_test_of_the_same_name_then_who_imports_it():
    tests = {
        "tests/a/test_other.py": "from mispair.a.b.part import f\n",
        "tests/a/test_far.py": "from mispair.a.b.particle import f\n",
        "tests/a/b/test_part.py": "",
        "tests/a/test_whole.py": "from mispair.a.b import other, part\n",
        "tests/a/test_patches.py": 'monkeypatch.setattr("mispair.a.b.part.LIMIT", 3)\n',
    }
    found = near_tests("mispair/a/b/part.py", tests)
    assert found == [
        "tests/a/b/test_part.py",
        "tests/a/test_other.py",
        "tests/a/test_whole.py",
        "tests/a/test_patches.py",
    ]
    assert near_tests("mispair/a/b/nobody.py", tests) == ["tests/a/b/test_part.py"]
    assert near_tests("mispair/a/nobody.py", tests) == []
    assert named_tests("mispair/a/b/part.py", tests) == ["tests/a/b/test_part.py"]


def test_what_a_test_reached_is_known_until_something_changes(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    source, test = tmp_path / "src" / "m.py", tmp_path / "tests" / "test_m.py"
    source.write_text("def f():\n    return 1\n")
    test.write_text("")
    asked = []

    def run(files, recorder):
        asked.append(files)
        recorder.lines["tests/test_m.py::a"] = {"m.py": [2]}
        recorder.seconds["tests/test_m.py::a"] = 1.0
        recorder.write("tests/test_m.py", recorder)
        return True

    def reached():
        reach = Reach(tmp_path / "store", tmp_path, [test])
        reach.update(tmp_path / "src", run)
        return reach

    assert reached().tests("m.py", 1, 2) == reached().tests("m.py", 2, 9) == ["tests/test_m.py::a"]
    assert reached().tests("m.py", 3, 9) == []
    assert len(asked) == 1
    for path in (source, test, tmp_path / "tests" / "helper.py"):
        path.write_text("# another\n")
        reached()
    assert len(asked) == 4


def test_lines_that_a_test_ran_are_written_down(tmp_path, monkeypatch):
    """A branch that only a late call takes is seen; a function of another folder is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "traced.py").write_text(
        "def f(x):\n    if x > 1:\n        return [\n            x,\n        ]\n    return 0\n\ndef g():\n    return 1"
    )
    monkeypatch.syspath_prepend(tmp_path / "src")
    module = importlib.import_module("traced")
    kept = []
    recorder = Recorder(tmp_path / "src", lambda name, _: kept.append(name))

    def record(name, *values, following=None):
        protocol = recorder.pytest_runtest_protocol(SimpleNamespace(nodeid=name), following)
        next(protocol)
        for value in values:
            module.f(value)
            PurePosixPath("elsewhere").with_suffix(".py")
        next(protocol, None)
        return recorder.lines[name]

    before = sys.gettrace()
    try:
        assert record("both", 1, 1, 2, 1, following=SimpleNamespace(nodeid="both::more")) == {
            "traced.py": [1, 2, 3, 4, 6]
        }
        assert record("one", 1, 1) == {"traced.py": [1, 2, 6]}
        assert record("none") == {}
        assert kept == ["one", "none"]
    finally:
        sys.settrace(before)


def test_tests_of_files_come_the_quickest_first(tmp_path):
    reach = Reach(tmp_path / "store", tmp_path, [])
    reach.lines = {"a.py::slow": {"m.py": [1]}, "a.py::quick": {}, "b.py::other": {"m.py": [1]}}
    reach.seconds = {"a.py::slow": 2.0, "a.py::quick": 1.0, "b.py::other": 0.5}
    assert reach.tests_in(["a.py"]) == ["a.py::quick", "a.py::slow"]
    assert reach.tests("m.py", 1, 1) == ["b.py::other", "a.py::slow"]


def test_a_test_file_that_kills_its_process_costs_its_own_record_only(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    names = ["tests/test_a.py", "tests/test_b.py", "tests/test_c.py"]
    for name in names:
        (tmp_path / name).write_text("")
    asked = []

    def run(files, recorder):
        asked.append(files)
        for file in files:
            if file == names[1]:
                return False
            recorder.lines[f"{file}::t"], recorder.seconds[f"{file}::t"] = {"m.py": [1]}, 1.0
            recorder.write(file, recorder)
        return True

    reach = Reach(tmp_path / "store", tmp_path, [tmp_path / name for name in names])
    reach.update(tmp_path / "src", run)
    assert asked == [names, names[2:]]
    assert reach.tests("m.py", 1, 1) == ["tests/test_a.py::t", "tests/test_c.py::t"]
    assert "died of tests/test_b.py" in capsys.readouterr().out
