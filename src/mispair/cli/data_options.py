"""Options that several verbs share to say what data is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.data.config import DataConfig

DATA = typer.Argument(
    "scenes", help="A precomputed folder, a table (.csv .tsv .jsonl .parquet), a first .npy, or the generated scenes."
)
SECOND = typer.Argument(None, help="The second side's .npy, when it has no words.")
FEATURES = typer.Option(None, "--features", help="For a table: the image features, an .npy.", rich_help_panel="Tables")
IDS = typer.Option(
    None,
    "--ids",
    help="For a table: which image each row of the features is (.txt, .json, .npy).",
    rich_help_panel="Tables",
)
IMAGE_COLUMN = typer.Option(None, help="Name of the image column.", rich_help_panel="Tables")
CAPTION_COLUMN = typer.Option(None, help="Name of the caption column.", rich_help_panel="Tables")
SPLIT_COLUMN = typer.Option(None, help="Name of the split column.", rich_help_panel="Tables")
MISSING = typer.Option(
    None, help="Pairs whose image has no features: refuse (stop and say so) or skip.", rich_help_panel="Tables"
)
SIDES = typer.Option("image,text", help="What the two sides are called, for instance audio,text.")


def table_options(
    features: str | None,
    ids: str | None,
    image_column: str | None,
    caption_column: str | None,
    split_column: str | None,
    missing: str | None = None,
) -> dict[str, Any]:
    """What the options of the panel Tables say, as values of a data section; only what was said."""
    columns = {"image": image_column, "caption": caption_column, "split": split_column}
    named = {name: column for name, column in columns.items() if column is not None}
    said = {"features": features, "ids": ids, "missing": missing, "columns": named or None}
    return {name: value for name, value in said.items() if value is not None}


def data_config(**given: Any) -> DataConfig:
    """A data section from options; what it refuses is said in one sentence."""
    from pydantic import ValidationError

    from mispair.data.config import DataConfig

    sides = tuple(name.strip() for name in given.pop("sides", "image,text").split(","))
    if len(sides) != 2:
        raise InputError(f"--sides names the two sides, for instance audio,text; got {','.join(sides)!r}")
    try:
        return DataConfig(sides=sides, **{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(
            f"{where + ': ' if where else ''}{reason}, got {first['input']!r:.60}" if where else reason
        ) from None


def other_data(own: DataConfig, path: str, table: dict[str, Any]) -> DataConfig:
    """Data at `path` as a run reads its own: the same sides and words; nothing else is taken over."""
    given = data_config(path=path, **table, sides=",".join(own.sides))
    return given.model_copy(update={"min_count": own.min_count, "max_words": own.max_words})
