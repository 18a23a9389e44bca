"""The command line, with an encoder by the name of colours that costs nothing."""

from __future__ import annotations

from mispair.cli import app
from mispair.encoders.registry import register_encoder
from tests.colours import colour_encoder


def main() -> None:
    register_encoder("colours", colour_encoder)
    app.main()
