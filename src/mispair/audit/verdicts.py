"""Verdicts: what an audit found, one row per pair and the facts about all of them; saved, loaded, shown.

An audit folder holds `audit.parquet` (the columns of `SCHEMA`, one row per pair) and `audit.json` (`Facts`). The JSON
is written last: a folder without it is no audit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.errors import InputError

VERSION = 1

SCHEMA = pa.schema(
    [
        pa.field("pair", pa.int64(), nullable=False),  # row of the pair in the data that was judged
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("image_id", pa.string(), nullable=False),
        pa.field("caption", pa.string(), nullable=False),
        pa.field("p_mismatch", pa.float64(), nullable=False),  # probability that the pair does not match
        pa.field("mismatch_score", pa.float64(), nullable=False),  # 1 - p_mismatch: 1 = matches
        pa.field("is_mismatch_issue", pa.bool_(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),  # of the given pair, by the model
        pa.field("caption_rank", pa.int64(), nullable=False),  # of the given caption for its image, 1 = best
        pa.field("image_rank", pa.int64(), nullable=False),  # of the given image for its caption, 1 = best
        pa.field("proposed_caption", pa.string()),
        pa.field("proposed_caption_pair", pa.int64()),  # the pair that holds it
        pa.field("proposed_caption_weight", pa.float64()),  # its share of the image's mass in the transport plan
        pa.field("proposed_caption_gain", pa.float64()),  # its score less the score of the given pair
        pa.field("proposed_image_id", pa.string()),
        pa.field("proposed_image_pair", pa.int64()),
        pa.field("proposed_image_weight", pa.float64()),
        pa.field("proposed_image_gain", pa.float64()),
        pa.field("swap_with", pa.int64()),  # the pair with which exchanging captions mends both
        pa.field("look", pa.int64(), nullable=False),  # order of what is most worth a person's look, 1 first
    ]
)
TRUTH = pa.schema(
    [
        pa.field("truth_mismatched", pa.bool_(), nullable=False),
        pa.field("proposal_true", pa.bool_()),  # null where nothing was proposed, or nothing true was there to propose
    ]
)


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of damage that was found."""

    kind: str
    count: int
    evidence: str
    remedy: str
    pairs: tuple[int, ...] = ()  # the first 50 it concerns


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for the whole audit. A figure that does not exist is None."""

    pairs: int
    rate: float  # estimated share of mismatched pairs
    rate_low: float
    rate_high: float
    bimodal: bool  # whether matched and mismatched pairs show as two groups; if not, the rate is a guess
    issues: int
    held_out: str  # how it was avoided that a memorised pair looks right
    run: str | None
    data: dict[str, Any]  # path, split, format, hash, and what is needed to open it again
    mixture: dict[str, Any]  # evidence, edges, counts, matched, mismatched: the histogram and the two components
    damage: tuple[Damage, ...] = ()
    truth: dict[str, float] | None = None
    seconds: float = 0.0
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One verdict per pair, in the order of the data."""

    table: pa.Table = field(repr=False)
    facts: Facts

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> NDArray[Any]:
        """One column as an array; numbers that are missing become NaN, texts None."""
        if name not in self.table.column_names:
            raise InputError(f"an audit has no column {name!r}; its columns are {', '.join(self.table.column_names)}")
        values: NDArray[Any] = self.table[name].to_numpy(zero_copy_only=False)
        return values

    @property
    def p_mismatch(self) -> NDArray[np.float64]:
        return self.column("p_mismatch")

    @property
    def is_mismatch_issue(self) -> NDArray[np.bool_]:
        return self.column("is_mismatch_issue")

    def worst(self, count: int = 10) -> pa.Table:
        """The rows least likely to match, worst first."""
        return self.table.sort_by([("p_mismatch", "descending"), ("pair", "ascending")]).slice(0, count)

    def look(self, budget: int) -> pa.Table:
        """The rows most worth a person's look, first one first."""
        return self.table.sort_by("look").slice(0, budget)

    def summary(self) -> str:
        """What was found, in a few sentences."""
        facts = self.facts
        mended = pc.sum(pc.is_valid(self.table["proposed_caption_pair"])).as_py() or 0
        sentences = [
            f"{facts.issues:,} of {facts.pairs:,} pairs are more likely mismatched than matched.",
            f"The estimated rate is {facts.rate:.1%} ({facts.rate_low:.1%} to {facts.rate_high:.1%}).",
            f"For {mended:,} of the images shown with them another caption of the set fits better.",
        ]
        if not facts.bimodal:
            sentences.append("Matched and mismatched pairs do not show as two groups: take the rate as a guess.")
        sentences += [f"{d.kind} ({d.count:,}): {d.evidence} {d.remedy}" for d in facts.damage]
        return "\n".join(sentences)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        _beside(Path(path), lambda temporary: pq.write_table(self.table, temporary))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        write_csv(self.table, Path(path))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the audit folder; one that holds an audit already is refused."""
        folder = Path(folder)
        if (folder / "audit.json").exists():
            raise InputError(f"{folder} already holds an audit; choose another folder with -o")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be made ({error.strerror}); choose another folder with -o") from None
        self.to_parquet(folder / "audit.parquet")
        content = json.dumps(asdict(self.facts), indent=2)
        _beside(folder / "audit.json", lambda temporary: temporary.write_text(content, encoding="utf-8"))

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Verdicts:
        """Read an audit folder."""
        folder = Path(folder)
        if not (folder / "audit.json").is_file() or not (folder / "audit.parquet").is_file():
            raise InputError(f"{folder} is not an audit folder: 'mispair audit' writes audit.json and audit.parquet")
        facts = _facts(folder / "audit.json")
        try:
            table = pq.read_table(folder / "audit.parquet")
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{folder / 'audit.parquet'} is damaged ({error}); run the audit again") from None
        missing = [
            f.name for f in SCHEMA if f.name not in table.column_names or table.schema.field(f.name).type != f.type
        ]
        if missing or table.num_rows != facts.pairs:
            raise InputError(f"{folder / 'audit.parquet'} is not the table of {folder / 'audit.json'}; audit again")
        return Verdicts(table, facts)

    def _repr_html_(self) -> str:
        shown = ["pair_id", "image_id", "caption", "p_mismatch", "proposed_caption", "proposed_image_id"]
        head = "".join(f"<th>{name}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(row[name]))}</td>" for name in shown) + "</tr>"
            for row in self.worst(10).select(shown).to_pylist()
        )
        text = escape(self.summary()).replace("\n", "<br>")
        return f"<p>{text}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_csv(rows: pa.Table, path: Path) -> None:
    """Some rows of an audit as CSV."""
    _beside(path, lambda temporary: pyarrow.csv.write_csv(rows, temporary))


def _cell(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _facts(path: Path) -> Facts:
    damaged = f"{path} is damaged or of another version of mispair; run the audit again"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        damage = tuple(Damage(**{**d, "pairs": tuple(d["pairs"])}) for d in content.pop("damage"))
        facts = Facts(damage=damage, **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(damaged) from None
    numbers = all(isinstance(getattr(facts, name), (int, float)) for name in ("pairs", "rate", "rate_low", "rate_high"))
    if facts.version != VERSION or not numbers or len(content) < len(fields(Facts)) - 1:
        raise InputError(damaged)
    return facts


def _beside(path: Path, write: Callable[[Path], object]) -> None:
    """Written beside and renamed: whoever looks finds the whole file or none."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written ({error.strerror or error}); choose another place") from None
