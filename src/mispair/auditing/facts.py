"""Facts: what holds for a whole audit, and `audit.json`, where it is kept."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, FailFast, Field, TypeAdapter, ValidationError

from mispair.data.config import DataConfig
from mispair.data.files.reading import read_bytes
from mispair.errors import InputError

VERSION = 2
_MOST_BYTES = 4 << 20

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def _histogram(mixture: dict[str, Any]) -> dict[str, Any]:
    """What the evidence is called, and columns of finite numbers, one more edge than bins."""
    columns = {name: values for name, values in mixture.items() if not isinstance(values, str)}
    for name, values in columns.items():
        if not isinstance(values, list) or not all(isinstance(v, (int, float)) and abs(v) < 1e300 for v in values):
            raise ValueError(f"{name} is no list of numbers")
    bins = len(columns.get("counts", ()))
    if any(len(values) != bins + (name == "edges") for name, values in columns.items()):
        raise ValueError("the columns of the histogram differ in length")
    return mixture


Histogram = Annotated[dict[str, Any], AfterValidator(_histogram)]
Origin = dict[str, str | dict[str, Any] | None]


SHIFTED = "shifted captions"
REPEATED = "one caption on many images"
CROWDED = "one image under many captions"
EMPTY_CAPTIONS = "empty or generic captions"
TWINS = "near-duplicate images"
KINDS = (SHIFTED, REPEATED, CROWDED, EMPTY_CAPTIONS, TWINS)
"""Of damage."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of damage that was found."""

    __pydantic_config__ = _STRICT

    kind: str
    count: Count
    evidence: str
    remedy: str
    pairs: Annotated[tuple[Count, ...], FailFast()] = ()  # the first 50 it concerns


@dataclass(frozen=True, slots=True)
class RematchTrial:
    """What rematching did with matched pairs whose captions were moved on purpose, see `try_rematching`."""

    __pydantic_config__ = _STRICT

    moved: Count
    proposed: Share  # of the moved pairs, those that got a proposal
    true: Share  # of these, those whose own caption was proposed
    by_mistake: Share  # of pairs whose own caption was taken away, those that got a proposal
    present: Share  # of the mismatched pairs of the data, those whose right caption is in the set, estimated
    weights: Annotated[tuple[float, ...], FailFast()]  # levels of the weight of a proposal
    true_at: Annotated[tuple[Share, ...], FailFast()]  # the share of true proposals at each of them, never falling


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for the whole audit. A figure that does not exist is None."""

    __pydantic_config__ = _STRICT

    pairs: Count
    rate: Share  # estimated share of mismatched pairs
    rate_low: Share
    rate_high: Share
    conclusive: bool  # whether the interval of the rate says something; if not, the model cannot tell
    separation: Share  # AUROC with which matched and mismatched pairs are told apart, as far as it can be known
    issues: Count
    held_out: str  # how it was avoided that a memorised pair looks right
    learned: bool  # whether it was not: the judge has learned from these very pairs, so the rate is a lower bound
    run: str | None
    data: Origin  # path, split, format, hash, and what is needed to open it again
    mixture: Histogram = field(repr=False)  # evidence, edges, counts, matched, mismatched
    damage: Annotated[tuple[Damage, ...], FailFast(), Field(max_length=len(KINDS))] = ()
    not_sought: Annotated[tuple[str, ...], FailFast()] = ()  # kinds of damage that nobody looked for
    rematch: RematchTrial | None = None
    truth: dict[str, float] | None = None
    seconds: float = 0.0
    version: int = VERSION


_FACTS = TypeAdapter(Facts)


def judged_config(facts: Facts) -> DataConfig | None:
    """The data that was judged, as a section to open it by; None where it was judged in memory.

    Raises InputError where `audit.json` says it in words of another version.
    """
    config = facts.data.get("config")
    if not isinstance(config, dict):
        return None
    try:
        return DataConfig.model_validate(config)
    except ValidationError:
        raise InputError("audit.json names its data in a way mispair does not know; audit it again") from None


def facts_json(facts: Facts) -> str:
    """The content of the file that `read_facts` reads."""
    return json.dumps(asdict(facts), indent=2)


def read_facts(path: Path) -> Facts:
    """The facts in `audit.json`. Raises InputError where it is damaged, too large, or of another version."""
    damaged = f"{path} is damaged or of another version of mispair; run the audit again"
    content = read_bytes(path, "the facts of an audit", most=_MOST_BYTES)
    try:
        facts = _FACTS.validate_json(content)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(f"{damaged}{f' (wrong: {where})' if where else ''}") from None
    trial = facts.rematch
    if trial is not None and len(trial.weights) != len(trial.true_at):
        raise InputError(damaged)
    concerned = [pair for damage in facts.damage for pair in damage.pairs]
    if max(concerned, default=-1) >= facts.pairs:
        raise InputError(f"{damaged} (wrong: damage, of pairs there are not)")
    if facts.version != VERSION or not facts.rate_low <= facts.rate_high or facts.issues > facts.pairs:
        raise InputError(damaged)
    return facts
