"""experiment.json: what was asked of a grid, beside its cells; checked when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mispair.errors import InputError
from mispair.experiments.spec import MOST_SEEDS, Spec, parse_spec
from mispair.missing_path import does_not_exist, is_missing
from mispair.ordinary_file import read_ordinary
from mispair.shell_word import in_shell

NAME = "experiment.json"


class GridFile(BaseModel):
    """What the file says."""

    model_config = ConfigDict(strict=True, frozen=True)

    spec: dict[str, Any]
    kind: str  # whose settings were taken
    data: str  # the name of the data
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    commands: Annotated[tuple[str, ...], Field(max_length=10_000)]
    hardware: str
    versions: str


def read_grid_file(out: Path) -> tuple[GridFile, Spec]:
    """What `experiment.json` in `out` holds, and its spec. Raises InputError where it is missing or damaged."""
    path = out / NAME
    damaged = f"{path} is damaged; run the experiment's command again, finished cells are kept"
    try:
        content = read_ordinary(path)
    except (FileNotFoundError, NotADirectoryError):
        if is_missing(out):
            raise InputError(f"{does_not_exist(out)}; expected a folder of 'mispair experiments run'") from None
        raise InputError(
            f"{out} holds no experiment; 'mispair experiments run SPEC -o {in_shell(out)}' makes one"
        ) from None
    except OSError:
        raise InputError(damaged) from None
    try:
        down = GridFile.model_validate_json(content)
        spec = parse_spec(down.spec, str(path))
    except (ValidationError, InputError):
        raise InputError(damaged) from None
    if down.kind not in spec.data:
        raise InputError(damaged)
    return down, spec
