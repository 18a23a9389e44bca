"""Audit pairs, mend a data set and make a page of it, from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mispair.auditing.fixing import Fixed
    from mispair.auditing.verdicts import Verdicts
    from mispair.data import DataConfig, PairData
    from mispair.protocols import RetrievalModel
    from mispair.workflows.report.verdicts import VerdictsWithReport
    from mispair.workflows.trained_run import TrainedRun

    PathLike = str | os.PathLike[str]


def audit(
    run: PathLike | TrainedRun | RetrievalModel | Sequence[RetrievalModel],
    data: PathLike | DataConfig | PairData | None = None,
    *,
    split: str | None = None,
    folds: int | None = None,
    truth: bool | str = False,
    tell: Callable[[str, int, int], None] | None = None,
) -> VerdictsWithReport:
    """Judge every pair with a trained run: how likely it is mismatched, and what it should have been.

    Args:
        run: a run folder, what `mispair.load` gave, or models whose mean score counts.
        data: what to judge; by default what the run was trained on. Models alone need pairs opened with
            `mispair.data.open_split`.
        split: which split of it; by default train, or everything where there are no splits.
        folds: train so many networks anew, each to judge pairs it has not seen; 0 for none. By default 2 where the run
            took minutes. A run's own training data only.
        truth: compare with the mismatches that were injected, or with the column of the table that this names.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        `Verdicts`: one row per pair and the facts about all of them.

    Example:
        >>> verdicts = mp.audit("runs/a")
        >>> verdicts.report("audit.html")
    """
    from mispair.progress import silent
    from mispair.workflows.audit import audit as audit_pairs
    from mispair.workflows.report.verdicts import with_report

    return with_report(audit_pairs(run, data, split=split, folds=folds, truth=truth, tell=tell or silent))


def quick_audit(
    image_embeddings: Any,
    text_embeddings: Any,
    *,
    captions: Any = None,
    image_ids: Any = None,
    table: Any = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> VerdictsWithReport:
    """Judge pairs whose embeddings you have already: row k of one side is paired with row k of the other.

    Args:
        image_embeddings, text_embeddings: (n, d) from one encoder for both sides, such as CLIP: arrays, memory maps
            (read in blocks), tensors, or columns with one array in each row.
        captions, image_ids: (n,) to be shown in the verdicts. Rows with the same image id are one image with several
            captions; without ids, rows that are equal are (below 200,000 pairs).
        table: a pandas or polars frame, a pyarrow table, a Hugging Face data set or a dictionary of columns; the four
            above may then be names of its columns.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        `Verdicts`: one row per pair and the facts about all of them.

    Example:
        >>> verdicts = mp.quick_audit("image_vector", "text_vector", captions="caption", table=frame)
        >>> verdicts.fix("drop", "clean", data="pairs.csv")
    """
    from mispair.auditing.embeddings import GivenPairs
    from mispair.progress import silent
    from mispair.workflows.quick_audit import quick_audit as judge_embeddings
    from mispair.workflows.report.verdicts import with_report

    pairs = GivenPairs(image_embeddings, text_embeddings, captions, image_ids, table)
    return with_report(judge_embeddings(pairs, tell=tell or silent))


def fix(
    verdicts: Verdicts | PathLike,
    action: str,
    out: PathLike,
    *,
    data: PathLike | DataConfig | None = None,
    threshold: float = 0.5,
    min_weight: float = 0.0,
    min_gain: float = 0.0,
    decisions: PathLike | None = None,
) -> Fixed:
    """Write the data set mended as an audit says, in the format it came in; the original is never changed.

    Args:
        verdicts: an audit, or the folder it was saved in.
        action: "drop" leaves mismatched pairs out, "weight" keeps all and adds how far each can be trusted, "rematch"
            gives an image the caption proposed for it, "swap" exchanges captions where that mends two pairs.
        out: a new folder for the data set.
        data: the data, where the audit does not say (a quick_audit of arrays in memory).
        threshold: a pair counts as mismatched from this probability on.
        min_weight, min_gain: least weight and gain of a proposal that is followed.
        decisions: the decisions.jsonl of a review; what people said stands above any probability.

    Returns:
        How many pairs there were, were kept and were changed, and the folder.

    Example:
        >>> mp.fix("audit", "drop", "clean").kept
    """
    from mispair.api.data_section import data_section
    from mispair.auditing.fixing import fix_data
    from mispair.auditing.verdicts import Verdicts

    named = None if data is None else data_section(data, {})
    judged = verdicts if isinstance(verdicts, Verdicts) else Verdicts.load(verdicts)
    captions: dict[int, str] = {}
    if decisions is not None:
        from mispair.reviewing.applied import apply_decisions
        from mispair.workflows.review import decisions_of

        applied = apply_decisions(judged, decisions_of(judged, Path(decisions)).standing)
        judged, captions = applied.verdicts, applied.captions
    return fix_data(
        judged, action, Path(out), data=named, threshold=threshold, min_weight=min_weight, min_gain=min_gain,
        captions=captions,
    )  # fmt: skip


def undo_fix(fixed: PathLike, out: PathLike) -> Path:
    """Take what `fix` wrote back to the data it was made from.

    Args:
        fixed: the folder `fix` wrote, or the fix.patch in it.
        out: a new folder.

    Returns:
        `out`.

    Example:
        >>> mp.undo_fix("clean", "original")
    """
    from mispair.auditing.fixing import undo_fix as undo

    undo(Path(fixed), Path(out))
    return Path(out)


def make_report(
    folder: PathLike,
    out: PathLike = "report.html",
    *,
    pictures: PathLike | None = None,
    allow_outside: bool = False,
    rows: int = 10_000,
) -> Path:
    """Write one self-contained HTML page about a run or an audit.

    Args:
        folder: a run folder or an audit folder.
        out: where to write the page; what is there is replaced.
        pictures: folder of the pictures, where they do not lie beside the data.
        allow_outside: whether the names of pictures may lead out of the folder in which they are looked up.
        rows: how many of the worst pairs the table holds.

    Returns:
        Where the page is.

    Example:
        >>> mp.make_report("audit", "audit.html")
    """
    from mispair.atomic import write_text
    from mispair.report.page import render
    from mispair.workflows.report import build_page

    place = None if pictures is None else Path(pictures)
    page = build_page(Path(folder), pictures=place, allow_outside=allow_outside, rows=rows)
    write_text(Path(out), render(page))
    return Path(out)
