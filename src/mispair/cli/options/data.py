"""Options that several verbs share to say what data is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from mispair.cli.options.grouping import OptionGroup, option
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.data.config import DataConfig

DATA_HELP = (
    "A folder of pictures or of features, a table (.csv .tsv .jsonl .parquet), tar shards, a .json or .token of"
    " captions, a first .npy, or the generated scenes."
)
DATA = typer.Argument("scenes", help=DATA_HELP)
SECOND = typer.Argument(None, help="The second side's .npy, when it has no words.")
SIDES = typer.Option("image,text", help="What the two sides are called, for instance audio,text.")
_MISSING = "Pairs whose image has no features or no picture: refuse (stop and say so) or skip."


@dataclass(frozen=True)
class ColumnOptions(OptionGroup):
    """How a table is read."""

    image_column: str | None = option(None, panel="Tables", help="Name of the image column.")
    caption_column: str | None = option(None, panel="Tables", help="Name of the caption column.")
    split_column: str | None = option(None, panel="Tables", help="Name of the split column.")
    missing: str | None = option(None, panel="Tables", help=_MISSING)

    def section(self) -> dict[str, Any]:
        """What was said, as values of a data section."""
        said = self.said()
        columns = {name: said.pop(f"{name}_column", None) for name in ("image", "caption", "split")}
        named = {name: column for name, column in columns.items() if column is not None}
        return {**said, **({"columns": named} if named else {})}


@dataclass(frozen=True)
class TableOptions(ColumnOptions):
    """How a table is read, and where its features are."""

    features: str | None = option(None, panel="Tables", help="For a table: the image features, an .npy.")
    ids: str | None = option(
        None, panel="Tables", help="For a table: which image each row of the features is (.txt, .json, .npy)."
    )


@dataclass(frozen=True)
class WeightedTableOptions(TableOptions):
    """The same for a verb that trains on the pairs."""

    weights: str | None = option(
        None,
        panel="Tables",
        help="How much each training pair counts: a column of the table, or W for train_W.npy or W.npy beside arrays.",
    )


@dataclass(frozen=True)
class PictureOptions(OptionGroup):
    """Where pictures are."""

    images: str | None = option(
        None, panel="Pictures", help="Where the pictures are: a folder, a tar, a folder of tars."
    )
    allow_outside: bool = option(
        False, "--allow-outside", panel="Pictures", help="Names may lead out of the folder of pictures."
    )

    section = OptionGroup.said


def data_config(**given: Any) -> DataConfig:
    """A data section from options; what it refuses is said in one sentence."""
    from pydantic import ValidationError

    from mispair.data.config import DataConfig
    from mispair.value_words import complaint, shorten

    sides = tuple(name.strip() for name in given.pop("sides", "image,text").split(","))
    if len(sides) != 2:
        raise InputError(f"--sides names the two sides, for instance audio,text; got {','.join(sides)!r}")
    try:
        return DataConfig(sides=sides, **{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = complaint(first)
        raise InputError(f"{where}: {reason}, got {shorten(first['input'])}" if where else reason) from None


def other_data(own: DataConfig, path: str, table: dict[str, Any]) -> DataConfig:
    """Data at `path` as a run reads its own; `table` are the options that describe it."""
    from mispair.workflows.other_data import like_own

    return like_own(own, data_config(path=path, **table))
