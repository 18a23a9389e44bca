"""metrics.json: what a finished run says of itself. What others read of it has its type, or the file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mispair.data.files.reading import read_bytes
from mispair.errors import InputError

_MOST_BYTES = 16 << 20
_SECTIONS = ("data", "noise", "cost")  # left out where they are null: readers ask for their values

Number = int | float
MeasuredNumber = Annotated[float, Field(allow_inf_nan=True)]  # one that does not exist is NaN
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]


class _Typed(BaseModel):
    """Known values have their type; what another version adds is kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Data(_Typed):
    name: str
    pairs: Count
    hash: str


class _Noise(_Typed):
    text: str
    rate: Share | None = None
    hash: str | None = None


class _Cost(_Typed):
    steps: Count = 0
    passes: float = 0.0


class _Summary(_Typed):
    method: str = ""
    model: str = ""
    seed: int = 0
    best_epoch: int = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    dev: dict[str, Number] = {}
    test: dict[str, Number] = {}
    data: _Data | None = None
    noise: _Noise | None = None
    cost: _Cost | None = None
    mismatch_rate: Share | None = None
    mismatch_rate_ci: Annotated[list[Share], Field(min_length=2, max_length=2)] | None = None
    conclusive: bool | None = None
    mended: dict[str, str | float | None] | None = None
    called_mismatched: Share | None = None
    detection: dict[str, MeasuredNumber] | None = None
    rematching: dict[str, MeasuredNumber] | None = None


def read_summary(path: Path, damaged: str) -> dict[str, Any]:
    """The content of the file. Raises InputError with the sentence `damaged` where it holds what no run writes."""
    try:
        content = read_bytes(path, "the summary of a run", most=_MOST_BYTES)
        _Summary.model_validate_json(content)
        summary: dict[str, Any] = json.loads(content)
    except (InputError, ValueError, RecursionError):
        raise InputError(damaged) from None
    return {key: value for key, value in summary.items() if value is not None or key not in _SECTIONS}
