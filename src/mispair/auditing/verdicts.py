"""Verdicts: what an audit found, one row per pair and the facts about all of them; saved, loaded, shown.

`audit_folder` says how they lie on disk, `verdict_table.SCHEMA` what the columns are.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.atomic import write_atomically, write_text
from mispair.auditing.audit_folder import AuditFolder
from mispair.auditing.facts import Facts, facts_json, read_facts
from mispair.auditing.rate_words import rate_words
from mispair.auditing.verdict_table import read_table, write_csv
from mispair.counted import counted, either
from mispair.data.config import DataConfig
from mispair.data.section_files import data_path
from mispair.errors import InputError
from mispair.value_words import shorten

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Self

    from mispair.auditing.fixing import Fixed

_SHOWN = 10  # rows of a notebook's table


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """What the audit says of one pair; the columns of the table, see `verdict_table.SCHEMA`."""

    pair: int
    pair_id: str
    image_id: str
    caption: str
    p_mismatch: float
    mismatch_score: float
    is_mismatch_issue: bool
    score: float
    caption_rank: int
    image_rank: int
    proposed_caption: str | None
    proposed_caption_pair: int | None
    proposed_caption_weight: float | None
    proposed_caption_gain: float | None
    proposed_image_id: str | None
    proposed_image_pair: int | None
    proposed_image_weight: float | None
    proposed_image_gain: float | None
    swap_with: int | None
    look: int
    truth_mismatched: bool | None = None
    proposal_true: bool | None = None

    def __repr__(self) -> str:
        """One line for a notebook; `dataclasses.asdict` has every column."""
        rather = "" if self.proposed_caption is None else f", rather {shorten(self.proposed_caption)}"
        said = f"{self.image_id!r} with {shorten(self.caption)}, p_mismatch {self.p_mismatch:.3f}{rather}"
        return f"Verdict({self.pair}: {said})"


@dataclass(frozen=True, slots=True, repr=False)
class Verdicts:
    """One verdict per pair, in the order of the data.

    Example:
        verdicts = mispair.quick_audit(images, texts, captions=captions)
        verdicts[17].p_mismatch, verdicts.worst(10), verdicts.to_pandas(), verdicts.fix("drop", "clean", data="x.csv")
    """

    table: pa.Table
    facts: Facts

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, pair: int) -> Verdict: ...

    @overload
    def __getitem__(self, pair: slice) -> list[Verdict]: ...

    def __getitem__(self, pair: Any) -> Verdict | list[Verdict]:
        """The verdict on one pair, by its row in the data, or those of a slice; negative rows count from the end."""
        if isinstance(pair, slice):
            return [Verdict(**row) for row in self.table.take(pa.array(range(len(self))[pair], pa.int64())).to_pylist()]
        if isinstance(pair, str):
            raise TypeError(f"verdicts[17] is a pair by its row; a column is verdicts.column({pair!r})")
        try:
            pair = operator.index(pair)
        except TypeError:
            raise TypeError(
                "verdicts[17] is a pair by its row, or a slice; for a choice of rows take verdicts.table or"
                f" to_pandas(), got {type(pair).__name__}"
            ) from None
        if not -len(self) <= pair < len(self):
            raise IndexError(f"there are {len(self):,} pairs, so no pair {pair}")
        return Verdict(**self.table.slice(pair % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Verdict]:
        return (Verdict(**row) for batch in self.table.to_batches(4096) for row in batch.to_pylist())

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

    def worst(self, count: int = 10) -> list[Verdict]:
        """The pairs least likely to match, worst first."""
        return self._first([("p_mismatch", "descending"), ("pair", "ascending")], count)

    def look(self, count: int = 10) -> list[Verdict]:
        """The pairs most worth a person's look, first one first."""
        return self._first([("look", "ascending")], count)

    def _first(self, order: list[tuple[str, str]], count: int) -> list[Verdict]:
        rows = pc.select_k_unstable(self.table, min(max(count, 0), len(self)), order)
        return [Verdict(**row) for row in self.table.take(rows).to_pylist()]

    def summary(self) -> str:
        """What was found, in a few sentences."""
        facts = self.facts
        sentences = [rate_sentence(facts), issues_sentence(facts)]
        if facts.issues:
            better = f"{self._proposals():,}" if self._proposals() else "none"
            sentences.append(f"For {better} of the images shown with them another caption of the set scores better.")
        if left_out := left_out_sentence(facts):
            sentences.append(left_out)
        sentences += [f"{d.kind} ({d.count:,}): {d.evidence} {d.remedy}" for d in facts.damage]
        return "\n".join(sentences)

    def _proposals(self) -> int:
        return len(self) - int(self.table["proposed_caption_pair"].null_count)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per pair, as a pandas frame. Raises InputError where pandas is not installed."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise InputError("pandas is not installed: pip install pandas, or use verdicts.table (pyarrow)") from None
        return self.table.to_pandas()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        write_atomically(Path(path), lambda temporary: pq.write_table(self.table, temporary))

    def to_csv(self, path: str | os.PathLike[str], look: int | None = None) -> None:
        """Every pair, or the `look` pairs most worth a person's look, the first of them first."""
        table = self.table if look is None else self.table.sort_by("look").slice(0, look)
        write_atomically(Path(path), lambda temporary: write_csv(table, temporary))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the audit folder; one that holds an audit already is refused."""
        files = AuditFolder(Path(folder))
        files.refuse_second()
        self.to_parquet(files.table_file)
        write_text(files.facts_file, facts_json(self.facts))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read an audit folder. Raises InputError where it is none, damaged, or holds what no audit writes."""
        files = AuditFolder(Path(folder))
        files.refuse_unless_whole()
        facts = read_facts(files.facts_file)
        return cls(read_table(files.table_file, facts.pairs), facts)

    def fix(
        self,
        action: str,
        out: str | os.PathLike[str],
        *,
        data: str | os.PathLike[str] | DataConfig | None = None,
        threshold: float = 0.5,
        min_weight: float = 0.0,
        min_gain: float = 0.0,
    ) -> Fixed:
        """Write the judged data set back, mended, into the new folder `out`; the original is only read.

        Args:
            action: drop, weight, rematch or swap, as in `mispair fix`.
            data: where the data lies, for verdicts on arrays in memory or data that was moved.
            threshold: p_mismatch above which a pair counts as mismatched.
            min_weight, min_gain: of a proposal, below which it counts as none.

        Returns:
            How many pairs there were, were kept and were changed, and the folder.

        Example:
            >>> verdicts.fix("drop", "clean", data="pairs.csv").kept
        """
        from mispair.auditing.fixing import fix_data

        if data is not None and not isinstance(data, DataConfig):
            data = DataConfig(path=data_path(data))
        return fix_data(
            self, action, Path(out), data=data, threshold=threshold, min_weight=min_weight, min_gain=min_gain
        )

    def __repr__(self) -> str:
        facts = self.facts
        lines = [
            f"Verdicts on {facts.pairs:,} pairs, {self._proposals():,} with a caption in the set that scores better",
            f"  {rate_sentence(facts)}",
            f"  {issues_sentence(facts)}",
        ]
        if facts.damage:
            lines.append(f"  damage: {', '.join(f'{d.kind} ({d.count:,})' for d in facts.damage)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        worst = self.worst(_SHOWN)
        pictures = self._thumbnails([verdict.image_id for verdict in worst])
        headings = [*(["picture"] if pictures else []), "pair", "image", "caption", "p", "proposed caption"]
        rows = []
        for verdict in worst:
            uri = pictures.get(verdict.image_id)
            picture = f'<img src="{escape(uri)}" alt="">' if uri else ""
            texts = [verdict.pair_id, verdict.image_id, verdict.caption, f"{verdict.p_mismatch:.3f}"]
            cells = [escape(_cut(text)) for text in (*texts, verdict.proposed_caption or "")]
            rows.append([*([picture] if pictures else []), *cells])
        head = "".join(f"<th>{name}</th>" for name in headings)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        text = escape(self.summary()).replace("\n", "<br>")
        return f"<p>{text}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _thumbnails(self, image_ids: Sequence[str]) -> dict[str, str]:
        """Image id -> data URI of a small picture, of those that can be shown; verdicts alone have none."""
        return {}


def rate_sentence(facts: Facts) -> str:
    """The estimated rate as far as it can be trusted: the one place that says it."""
    if facts.learned and not facts.data.get("mended"):
        return (
            f"At least {facts.rate_low:.0%} of the pairs are mismatched; how many more cannot be told, since this model"
            " has learned from these very pairs and those it knows by heart look right to it. Networks that have not"
            " seen them judge better: --folds 2, or where data was changed since the training, an audit with --train."
        )
    return rate_words(facts.rate, facts.rate_low, facts.rate_high, facts.conclusive, facts.data.get("mended"))


def left_out_sentence(facts: Facts) -> str:
    """How many pairs were not judged since their pictures cannot be used, and why; nothing where all were."""
    left_out = facts.data.get("left_out")
    if not isinstance(left_out, dict) or not isinstance(left_out.get("reasons"), dict):
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out["reasons"].items())
    pairs = left_out.get("pairs")
    said = counted(pairs, "pair was", "pairs were") if isinstance(pairs, int) else "Some pairs were"
    return f"{said} left out and not judged: the pictures cannot be used ({reasons})."


def issues_sentence(facts: Facts) -> str:
    """How many pairs are called mismatched, and no more than the rate supports."""
    called = f"{facts.issues:,} of {facts.pairs:,} pairs"
    if facts.conclusive or facts.issues == 0:
        return f"{called} {either(facts.issues, 'is', 'are')} more likely mismatched than matched."
    if facts.learned:
        return f"{called} {either(facts.issues, 'looks', 'look')} mismatched even so."
    return (
        f"{called} {either(facts.issues, 'has', 'have')} p_mismatch > 0.5, which is a guess as long as the rate is"
        " open; their order may still help."
    )


def _cut(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
