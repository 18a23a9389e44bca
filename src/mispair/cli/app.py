"""The verbs, and what an error looks like: one sentence, exit code 2."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import sys
from importlib import import_module

import typer

from mispair.errors import InputError

# verb -> the module that holds its function of the same name. Verbs import what they need when called:
# `mispair --help` must not pay for torch.
VERBS = {
    "audit": "mispair.cli.audit",
    "check": "mispair.cli.check",
    "corrupt": "mispair.cli.corrupt",
    "demo": "mispair.cli.demo",
    "doctor": "mispair.cli.doctor",
    "embed": "mispair.cli.embed",
    "encoders": "mispair.cli.encoders",
    "evaluate": "mispair.cli.evaluate",
    "experiments": "mispair.cli.experiments",
    "export": "mispair.cli.export",
    "fix": "mispair.cli.fix",
    "index": "mispair.cli.index",
    "merge": "mispair.cli.merge",
    "methods": "mispair.cli.methods",
    "report": "mispair.cli.report",
    "review": "mispair.cli.review",
    "runs": "mispair.cli.runs",
    "search": "mispair.cli.search",
    "serve": "mispair.cli.serve",
    "train": "mispair.cli.train",
}

app = typer.Typer(
    name="mispair",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with [bold]mispair demo[/bold]; if something does not work, [bold]mispair doctor[/bold].",
)


def _print_version(asked: bool) -> None:
    if asked:
        from mispair.version import __version__

        typer.echo(f"mispair {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Train cross-modal retrieval on pairs nobody can trust, find the wrong ones, propose the right ones."""


for _verb, _module in VERBS.items():
    _command = getattr(import_module(_module), _verb.replace("-", "_"))
    if isinstance(_command, typer.Typer):  # a verb with verbs of its own
        app.add_typer(_command, name=_verb)
    else:
        app.command(_verb)(_command)


def main() -> None:
    """Run a verb. A person's mistake costs one sentence and exit code 2, never a traceback."""
    _open_closed_streams()
    _suggest_verb(sys.argv[1:])
    _refuse_empty(sys.argv[1:])
    _refuse_many_tars(sys.argv[2:])
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still get its sentence
    except InputError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _discard_output()  # `mispair ... | head` closed the pipe: nobody reads any more
        sys.exit(141)
    except OSError as error:
        why = error.strerror or error
        if error.filename is None:
            _discard_output()
            _fail(f"the output cannot be used: {why}")
        _fail(f"{error.filename} cannot be used: {why}; choose another place or name")
    except MemoryError:
        _fail("the memory is full; use a smaller model, smaller batches or less data")


def _open_closed_streams() -> None:
    """Who closed a stream (`>&-`) wants to hear nothing; Python has None in its place, on which printing fails."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _discard_output() -> None:
    """Python would try to write what is left once more at exit, and complain."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _suggest_verb(arguments: list[str]) -> None:
    first = arguments[0] if arguments else "--help"
    if first.startswith("-") or first in VERBS:
        return
    if first == "help":
        _fail("'mispair -h' lists the verbs, and -h behind a verb explains it: mispair train -h")
    later = next((word for word in arguments[1:] if word in VERBS), None)
    if later is not None:
        from mispair.shell_word import in_shell

        _fail(f"there is no verb '{first}'. The verb comes first: mispair {later} {in_shell(first)}")
    near = difflib.get_close_matches(first, VERBS, n=1, cutoff=0.5)
    hint = f"Did you mean 'mispair {near[0]}'?" if near else f"The verbs are: {', '.join(sorted(VERBS))}."
    _fail(f"there is no verb '{first}'. {hint}")


def _refuse_empty(arguments: list[str]) -> None:
    """An empty word is a shell variable that was not set; as a path it would be the present folder."""
    for before, word in itertools.pairwise(["", *arguments]):
        option = before if before.startswith("-") else ""
        if word.startswith("--") and "=" in word:
            option, _, word = word.partition("=")
        if not word.strip():
            what = f"what follows {option}" if option else "an argument"
            _fail(f"{what} is empty; is a variable of your shell not set? '.' is the present folder")


def _refuse_many_tars(arguments: list[str]) -> None:
    """A shell has made several arguments of the pattern that names the shards."""
    words = [word for before, word in itertools.pairwise(["", *arguments]) if not before.startswith("-")]
    if sum(word.lower().endswith(".tar") for word in words) > 1:
        _fail("several tars are one data set: give their folder, or the pattern in quotes, as in 'shards/*.tar'")


def _fail(sentence: str) -> None:
    typer.secho(f"mispair: {sentence}", fg="red", err=True)
    sys.exit(2)
