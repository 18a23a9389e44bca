"""Options that cut the work into shards."""

from __future__ import annotations

import typer

_PANEL = "Shards"
SHARD = typer.Option(None, "--shard", help="The i-th of n shards alone, i/n: 3/7.", rich_help_panel=_PANEL)
STATISTICS = typer.Option(
    None,
    "--statistics",
    help="The folder that the shards of an audit meet in: each writes its statistics there, 'mispair merge' calibrates,"
    " then the same command judges.",
    rich_help_panel=_PANEL,
)
ENGINE = typer.Option(
    None, "--engine", help="ray: all shards on a Ray cluster, one of this machine by default.", rich_help_panel=_PANEL
)
ADDRESS = typer.Option(None, "--address", help="With --engine ray: the cluster's host:port.", rich_help_panel=_PANEL)
