"""What does an experiment consist of? The YAML of `experiments/`, typed; and where a spec is found by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from mispair.data.files.reading import read_text
from mispair.errors import InputError
from mispair.ordinary_file import NOTES
from mispair.section import Section
from mispair.shipped_files import homes
from mispair.value_words import complaint, kind_of
from mispair.yaml_values import read_yaml

MOST_SEEDS = 1_000
FigureKind = Literal["sweep", "cost", "alignment", "rematched"]


class Row(Section):
    """One line of the table: a configuration and what is changed in it."""

    label: str = ""  # what the table prints; unset: the row's key
    config: str = ""  # fills {config} of the data set's template; unset: the row's key
    method: str | None = None  # a method preset laid over the configuration, such as l2rm-paper
    set: dict[str, Any] = Field(default_factory=dict)  # dotted values: {method.transport.mass: 0.2}
    backbones: tuple[str, ...] = ()  # the only backbones it is run with; unset: all of the data set's
    published: str | None = None  # its name in the paper's tables; {backbone} is filled in capitals
    knows_truth: bool = False  # stands outside the comparison, and the table says so


class Column(Section):
    """One setting every row is run under, such as a mismatching rate."""

    label: str = ""
    set: dict[str, Any] = Field(default_factory=dict)
    row_set: dict[str, dict[str, Any]] = Field(default_factory=dict)  # further values of single rows
    published: str | None = None  # the setting's name in the paper's tables; unset: the column's key


class Evaluation(Section):
    """What is ranked: a split as one gallery, or the mean over equal parts of it."""

    split: str = "test"
    folds: int | None = Field(default=None, ge=1)
    published: tuple[str, ...] = ()  # the paper's tables beside it; unset: those of the spec

    @property
    def label(self) -> str:
        return self.split if self.folds is None else f"{self.split}, mean of {self.folds} galleries"


class DataSetup(Section):
    """How the experiment is run on one kind of data."""

    config: str | None = None  # a file such as ../configs/f30k/{config}-{backbone}.yaml, seen from the spec's folder
    backbones: tuple[str, ...] = ("vse",)  # `sgraf` is the mean score of the rows with sgr and saf
    model: str | None = None  # a model preset laid over the configuration, such as {backbone}:small
    set: dict[str, Any] = Field(default_factory=dict)
    row_set: dict[str, dict[str, Any]] = Field(default_factory=dict)  # further values of single rows
    rows: tuple[str, ...] = ()  # the only rows that are run; unset: all
    columns: tuple[str, ...] = ()
    evaluate: tuple[Evaluation, ...] = Field(default=(Evaluation(),), min_length=1)  # the first is the table's

    @field_validator("evaluate", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


class Spec(Section):
    """One table or figure."""

    name: str
    title: str
    shows: str  # which table or figure of the paper, in words
    about: str = ""  # what a reader must know besides
    published: tuple[str, ...] = ()  # labels of the paper's tables whose rows are printed beside
    rows: dict[str, Row]
    columns: dict[str, Column]
    data: dict[str, DataSetup]
    compares: Literal["trainings", "detectors"] = "trainings"  # detectors: see experiments/detectors.py
    figure: FigureKind | None = None
    quick: tuple[str, ...] = ()  # the cells that `--quick` runs, as --only takes them; unset: see quick_cells

    @field_validator("rows", "columns", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """Keys such as 0.4 are names; a row that changes nothing may be left empty."""
        return {str(k): v or {} for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        if not self.rows or not self.columns:
            raise ValueError("an experiment needs at least one row and one column")
        for axis, names in (("row", self.rows), ("column", self.columns), ("name", [self.name])):
            for name in names:
                _refuse_no_name(axis, name)
        if self.figure == "sweep" and not all(_number(name) for name in self.columns):
            raise ValueError(f"a sweep is drawn over columns that are numbers, got {', '.join(self.columns)}")
        for kind, how in self.data.items():
            for name in how.backbones:
                _refuse_no_name(f"data.{kind}: backbone", name)
            _refuse_unknown(f"data.{kind}", "row", [*how.rows, *how.row_set], self.rows)
            _refuse_unknown(f"data.{kind}", "column", how.columns, self.columns)
            if "sgraf" in how.backbones and not {"sgr", "saf"} <= set(how.backbones):
                raise ValueError(f"data.{kind}: sgraf is the mean of sgr and saf, so both must be among the backbones")
        for name, column in self.columns.items():
            _refuse_unknown(f"column {name}", "row", column.row_set, self.rows)
        return self

    def quick_cells(self, kind: str) -> list[str]:
        """What `--quick` runs, as --only takes it: what the spec names, else every row in the middle column.

        Of a sweep the first and the last column, since one point is no curve.
        """
        if self.quick:
            return list(self.quick)
        columns = list(self.data[kind].columns or self.columns)
        ends = [columns[0], columns[-1]] if self.figure == "sweep" else [columns[(len(columns) - 1) // 2]]
        return [f"column={','.join(dict.fromkeys(ends))}"]

    def kind_of(self, data: str, asked: str | None) -> str:
        """Which of the spec's kinds of data a path is: as said, or by its name."""
        known = ", ".join(self.data)
        if asked is not None:
            if asked not in self.data:
                raise InputError(f"experiment {self.name} knows no data {asked!r}; --as takes one of {known}")
            return asked
        stem = Path(data).name.lower()
        for kind in sorted(self.data, key=len, reverse=True):
            if stem == kind or stem.startswith((f"{kind}_", f"{kind}-")):
                return kind
        raise InputError(f"{data}: its name is none of {known}; say with --as which settings it takes")


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def refuse_seeds(seeds: int) -> None:
    """Raise InputError for a number of seeds that no grid has."""
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"an experiment has 1 to {MOST_SEEDS:,} seeds, got {seeds:,}")


def _refuse_no_name(what: str, name: str) -> None:
    if not name or set(name) & set("/\\ ,=") or name.startswith("."):
        raise ValueError(f"{what} {name!r} names a file or folder: no blanks, commas or slashes")


def _refuse_unknown(where: str, axis: str, used: Iterable[str], known: Iterable[str]) -> None:
    for name in used:
        if name not in known:
            raise ValueError(f"{where} names {axis} {name!r}, which the spec does not have")


def load_spec(name: str) -> tuple[Spec, Path]:
    """The spec at a path, or by its name in `experiments/`; and the file."""
    path = _find(name)
    text = read_text(path, "an experiment in YAML", NOTES)
    return parse_spec(read_yaml(text, str(path), "compare it with the files in experiments/"), str(path)), path


def parse_spec(values: Any, where: str) -> Spec:
    """The spec in plain values; `where` begins the sentence of the InputError that refuses them."""
    if not isinstance(values, dict):
        raise InputError(f"{where} must hold name, title, rows, columns and data, got {kind_of(values)}")
    try:
        return Spec.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        dotted = ".".join(str(step) for step in first["loc"]) or "it"
        if first["type"] == "extra_forbidden":
            raise InputError(f"{where}: there is no {dotted} in an experiment; see docs/experiments.md") from None
        raise InputError(f"{where}: {dotted}: {complaint(first)}") from None


def list_specs() -> list[Path]:
    """The specs of the present folder, else those of the checkout, else those that came with the package."""
    return next((specs for home in homes("experiments") if (specs := sorted(home.glob("*.yaml")))), [])


def _find(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    known = {spec.stem: spec for spec in list_specs()}
    if path.suffix not in ("", ".yaml", ".yml") or path.stem not in known or len(path.parts) > 1:
        near = difflib.get_close_matches(path.stem, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "'mispair experiments list' shows those there are"
        raise InputError(f"there is no experiment {name}; {hint}")
    return known[path.stem]
