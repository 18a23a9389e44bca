"""The verbs, and what an error looks like: one sentence, exit code 2."""

from __future__ import annotations

import difflib
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
    "evaluate": "mispair.cli.evaluate",
    "experiments": "mispair.cli.experiments",
    "fix": "mispair.cli.fix",
    "methods": "mispair.cli.methods",
    "report": "mispair.cli.report",
    "runs": "mispair.cli.runs",
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
    _found = getattr(import_module(_module), _verb.replace("-", "_"))
    if isinstance(_found, typer.Typer):  # a verb with verbs of its own
        app.add_typer(_found, name=_verb)
    else:
        app.command(_verb)(_found)


def main() -> None:
    """Run a verb. A person's mistake costs one sentence and exit code 2, never a traceback."""
    _suggest_verb(sys.argv[1:])
    try:
        app()
    except InputError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # `mispair ... | head` closed the pipe: nobody reads any more. Python would complain again at exit.
        sys.stderr.close()
        sys.exit(141)


def _suggest_verb(arguments: list[str]) -> None:
    first = arguments[0] if arguments else "--help"
    if first.startswith("-") or first in VERBS:
        return
    near = difflib.get_close_matches(first, VERBS, n=1, cutoff=0.5)
    hint = f"Did you mean 'mispair {near[0]}'?" if near else f"The verbs are: {', '.join(sorted(VERBS))}."
    _fail(f"there is no verb '{first}'. {hint}")


def _fail(sentence: str) -> None:
    typer.secho(f"mispair: {sentence}", fg="red", err=True)
    sys.exit(2)
