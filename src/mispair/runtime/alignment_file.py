"""alignment.json: how rematching distributed its mass, and how that compares with a known truth; checked when read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.data.files.reading import read_bytes
from mispair.errors import InputError

_MOST_BYTES = 4 << 20

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Ranks = Annotated[list[Share], Field(max_length=4096)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Sides(_Strict):
    """Mass by rank, on average; empty where there are no such images."""

    transported: Ranks = []
    untransported: Ranks = []


class RematchingShares(_Strict):
    """Shares of the transported mass, over the pairs the last epoch called mismatched."""

    true: Share  # lands on a caption that is true of its image
    chance: Share  # would, if the plan were uniform over the allowed cells
    batches: Annotated[int, Field(ge=1)]


class AlignmentContent(_Strict):
    """What the file says."""

    epochs: dict[Annotated[str, Field(pattern=r"^[0-9]{1,8}$")], Sides] = {}
    rematching: RematchingShares | None = None


def read_alignment(path: Path, damaged: str) -> AlignmentContent:
    """The content of the file. Raises InputError with the sentence `damaged` where it holds what no run writes."""
    try:
        content = read_bytes(path, "how a run rematched", most=_MOST_BYTES)
        return AlignmentContent.model_validate_json(content)
    except (InputError, ValidationError):
        raise InputError(damaged) from None
