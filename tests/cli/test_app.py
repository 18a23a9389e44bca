"""The command line as a person meets it: help, version, typos, doctor."""

import ast
import json
import os
import subprocess
import sys

import pytest

from mispair.cli.app import VERBS, main
from mispair.runtime import machine
from mispair.version import __version__
from tests.data.samples import run


def mispair(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "mispair", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120", **environment},
    )


def test_help_lists_every_verb():
    done = mispair("--help")
    assert done.returncode == 0
    for verb in VERBS:
        assert verb in done.stdout


def test_help_imports_the_command_line_library_and_little_else():
    """A count instead of a clock: what --help loads beside typer and rich is the same on every machine."""
    listing = "print(sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    ours = f"import atexit, sys; atexit.register(lambda: {listing}); from mispair.cli.app import main; main()"
    shown = subprocess.run([sys.executable, "-c", ours, "--help"], capture_output=True, text=True, check=True)
    library = f"import sys, typer, typer.rich_utils, rich.table; {listing}"
    alone = subprocess.run([sys.executable, "-c", library], capture_output=True, text=True, check=True)
    beside = set(ast.literal_eval(shown.stdout.splitlines()[-1])) - set(ast.literal_eval(alone.stdout))
    assert beside <= {"mispair", "markdown_it", "mdurl", "pygments"}, "something heavy is imported at start"


def test_help_reads_nothing_of_ours_but_the_command_line():
    code = "import sys, mispair.cli.app; print([name for name in sys.modules if name.startswith('mispair.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in ast.literal_eval(done.stdout) if not name.startswith("mispair.cli")}
    assert loaded == {
        "mispair.version",
        "mispair.errors",
        "mispair.lazy_exports",
        "mispair.counted",
        "mispair.missing_path",
    }


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, forks):
    done = forks.run(verb, "--help")
    assert done.code == 0
    assert "Usage:" in done.out


def test_extras_in_a_help_keep_their_brackets(forks):
    """They look like markup, which is not shown."""
    assert "'mispair[encoders]'" in forks.run("demo", "--help").out


def test_version():
    assert mispair("--version").stdout == f"mispair {__version__}\n"


def test_no_arguments_show_the_help():
    done = mispair()
    assert "Usage:" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("help", "mispair: 'mispair -h' lists the verbs, and -h behind a verb explains it: mispair train -h\n"),
        ("pairs.csv train", "mispair: there is no verb 'pairs.csv'. The verb comes first: mispair train pairs.csv\n"),
        ("docter", "mispair: there is no verb 'docter'. Did you mean 'mispair doctor'?\n"),
        ("zzz", f"mispair: there is no verb 'zzz'. The verbs are: {', '.join(sorted(VERBS))}.\n"),
    ],
)
def test_a_wrong_verb_gets_one_sentence(typed, sentence):
    done = mispair(*typed.split())
    assert done.returncode == 2
    assert done.stderr == sentence


def test_a_wrong_option_is_refused():
    done = mispair("doctor", "--jsno")
    assert done.returncode == 2
    assert "--json" in done.stderr


def test_doctor_reports_this_machine(forks):
    done = forks.run("doctor", "--json")
    checks = {c["name"]: c for c in json.loads(done.out)}
    assert done.code == 0
    assert checks["python"]["found"].startswith(".".join(map(str, sys.version_info[:2])))
    assert {"torch", "device", "threads", "memory", "disk", "libraries", "extra [track]", "extra [dev]"} <= set(checks)
    table = forks.run("doctor")
    assert "torch" in table.out
    assert "extra [dev]" in table.out  # not swallowed as markup
    assert table.code == 0


def test_doctor_names_what_is_missing_and_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_version", lambda name: None if name in ("pyarrow", "tensorboard") else "1")
    monkeypatch.setattr(machine, "available_bytes", lambda: 2**28)
    checks = {c.name: c for c in machine.inspect_machine(tmp_path)}
    assert checks["libraries"].state == "missing"
    assert checks["libraries"].remedy == "pip install pyarrow"
    assert checks["extra [track]"].state == "note"
    assert "mispair[track]" in checks["extra [track]"].remedy
    assert checks["memory"].state == "missing"


def test_every_missing_thing_has_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_version", lambda name: None)
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    for check in machine.inspect_machine(tmp_path):
        assert check.state == "ok" or check.remedy


def test_public_names_resolve_lazily():
    import mispair as package

    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "scenes", "-o", ""), ("train", "--resume", ""), ("audit", "scenes", "--train", "--out="),
        ("fix", "audit", "--action", "drop", "-o", " "), ("report", ""), ("index", "run", "-o", ""),
        ("embed", "pairs.csv", "-o", ""), ("corrupt", "scenes", "--rate", "0.4", "-o", ""),
        ("experiments", "run", "main", "-o", ""), ("demo", "-o", ""), ("export", "run", "-o", ""),
    ],
)  # fmt: skip
def test_an_empty_path_is_not_the_present_folder(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ran = run(monkeypatch, capsys, *arguments)
    assert ran.code == 2
    assert "is empty; is a variable of your shell not set?" in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["check", "embed", "audit", "train"])
def test_tars_that_the_shell_spelled_out_are_told_apart_from_two_sides(verb, monkeypatch, capsys):
    ran = run(monkeypatch, capsys, verb, "s/0.tar", "s/1.tar", "s/2.tar", "-o", "x.tar")
    assert ran.code == 2
    assert "the pattern in quotes, as in 'shards/*.tar'" in ran.err
    one = run(monkeypatch, capsys, verb, "s/0.tar", "-o", "x.tar")
    assert "in quotes" not in one.err


@pytest.mark.parametrize("arguments", [["--version"], ["methods"], ["methods", "--json"]])
def test_a_closed_stream_hears_nothing(arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["mispair", *arguments])
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    sys.stdout.close()
    sys.stderr.close()
