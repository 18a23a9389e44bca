"""A verb that asks for a group of options takes each of them by its own name."""

from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from mispair.cli.options.grouping import OptionGroup, grouped, option


@dataclass(frozen=True)
class Colours(OptionGroup):
    """Of a drawing."""

    pen: str | None = option(None, panel="Colours", help="Of lines.")
    bold: bool = option(False, "--bold", panel="Colours", help="Thick lines.")
    layers: list[str] = option([], "--layer", panel="Colours", help="Repeatable.")


@dataclass(frozen=True)
class MoreColours(Colours):
    """With a ground."""

    ground: int = option(7, panel="Colours", min=1, help="Of the paper.")


@pytest.fixture
def draw():
    seen = {}

    @grouped
    def draw(what: str = typer.Argument(...), *, colours: MoreColours, quick: bool = typer.Option(False)) -> None:
        """Draw."""
        seen.update(what=what, colours=colours, quick=quick)

    app = typer.Typer()
    app.command()(draw)
    return app, seen


def test_a_group_is_handed_over_as_one_value(draw):
    app, seen = draw
    done = CliRunner().invoke(
        app, ["a house", "--pen", "red", "--layer", "1", "--layer", "2", "--ground", "3", "--quick"]
    )
    assert done.exit_code == 0, done.output
    assert seen == {"what": "a house", "colours": MoreColours("red", False, ["1", "2"], 3), "quick": True}
    assert seen["colours"].said() == {"pen": "red", "layers": ["1", "2"], "ground": 3}


def test_what_nobody_said_is_not_said(draw):
    app, seen = draw
    assert CliRunner().invoke(app, ["a house"]).exit_code == 0
    assert seen["colours"] == MoreColours(None, False, [], 7)
    assert seen["colours"].said() == {"ground": 7}
    assert Colours("", False, []).said() == {"pen": ""}
    assert MoreColours(None, False, [], 0).said() == {"ground": 0}  # nought is something


def test_help_lists_the_options_of_a_group_and_limits_hold(draw):
    app, _ = draw
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(name in shown for name in ("--pen", "--bold", "--layer", "--ground", "Of lines."))
    assert CliRunner().invoke(app, ["a house", "--ground", "0"]).exit_code == 2
