"""build_page: a run or an audit folder in, the content of its page out. What cannot be had is named on the page."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mispair.auditing.audit_folder import TABLE as AUDIT_TABLE
from mispair.auditing.audit_folder import AuditFolder
from mispair.auditing.facts import KINDS, judged_config
from mispair.auditing.verdicts import Verdicts
from mispair.config.load import dump_config
from mispair.data import DataConfig, PairData, open_split
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.report.content import DamageKind, PairRow, ReportPage
from mispair.runtime.run_folder import SPLITS
from mispair.shell_word import in_shell
from mispair.workflows.report import training
from mispair.workflows.report.answer import answer
from mispair.workflows.report.evidence import evidence
from mispair.workflows.report.find_pictures import PicturesById
from mispair.workflows.report.pairs import (
    JudgedPairs,
    gallery,
    images_shown,
    judged_by_audit,
    judged_by_run,
    worst_pairs,
)
from mispair.workflows.report.reviewed import reviewed
from mispair.workflows.report.trained_pairs import trained_pairs
from mispair.workflows.run_of_audit import run_of_audit
from mispair.workflows.trained_run import TrainedRun, load_run

Say = Callable[[str], None]


def build_page(
    folder: Path,
    *,
    pictures: Path | None = None,
    allow_outside: bool = False,
    rows: int = 10_000,
    say: Say | None = None,
) -> ReportPage:
    """The page of a run or an audit folder.

    Args:
        pictures: folder of the pictures, where they do not lie beside the data or the run.
        allow_outside: whether the names of pictures may lead out of the folder in which they are looked up.
        rows: how many of the worst pairs the table holds.
        say: told what is being done.
    """
    if is_missing(folder):
        raise InputError(f"{does_not_exist(folder)}; expected a run (mispair train) or an audit (mispair audit)")
    if not os.path.isdir(folder):
        raise InputError(f"{folder} is not a folder; give a run (mispair train) or an audit (mispair audit)")
    pictured = _Pictured(pictures, allow_outside)
    if not AuditFolder(folder).begun:
        return _page(training.open_run_folder(folder), None, folder, pictured, rows, say, [])
    return page_of_audit(
        Verdicts.load(folder), folder, pictures=pictures, allow_outside=allow_outside, rows=rows, say=say
    )


def page_of_audit(
    audit: Verdicts,
    folder: Path | None = None,
    *,
    pictures: Path | None = None,
    allow_outside: bool = False,
    rows: int = 10_000,
    say: Say | None = None,
) -> ReportPage:
    """The page of verdicts, saved in `folder` or not at all."""
    missing: list[str] = []
    run = _run_of(audit, folder, missing)
    return _page(run, audit, folder, _Pictured(pictures, allow_outside), rows, say, missing)


@dataclass(frozen=True)
class _Pictured:
    """Where a person says the pictures are, and whether names may lead out of that folder."""

    folder: Path | None
    allow_outside: bool

    def __post_init__(self) -> None:
        if self.folder is not None and is_missing(self.folder):
            raise InputError(f"{does_not_exist(self.folder)}; expected the folder of the pictures (--pictures)")


def _page(
    run: training.RunRecord | None,
    audit: Verdicts | None,
    folder: Path | None,
    pictured: _Pictured,
    rows: int,
    say: Say | None,
    missing: list[str],
) -> ReportPage:
    tell = say or (lambda _: None)
    tell("opening model and data")
    loaded, data = _open(run, audit, missing)
    tell("collecting the pairs")
    judged = judged_by_audit(audit) if audit is not None else _judged_by_run(run, loaded, data, missing)
    part: dict[str, Any] = {} if run is None else _training_parts(run, audit, judged, missing)
    if judged is not None:
        near = [place for place in (folder, None if run is None else run.path) if place is not None]
        config, split = _judged_data(run, audit)
        shown = PicturesById(
            config,
            split,
            images_shown(judged),
            folder=pictured.folder,
            near=near,
            allow_outside=pictured.allow_outside,
        )
        tell(f"pictures: {shown.said()}")
        if not shown.complete:
            missing.append(f"Pictures: {shown.said()}.")
        tell("making the gallery")
        part["gallery"] = gallery(judged, loaded, data, shown if shown.present else None)
        source = AUDIT_TABLE if audit is not None else SPLITS
        part["pairs"] = worst_pairs(judged, shown, rows, source)
    if audit is not None:
        part["losses"] = [*evidence(audit), *part.get("losses", ())]
        facts = audit.facts
        part["damage"] = [DamageKind(d.kind, d.count, d.evidence, d.remedy) for d in facts.damage]
        part["damage_sought"] = [kind for kind in KINDS if kind not in facts.not_sought]
        part["damage_not_sought"] = facts.not_sought
    sentences, cautions = answer(run, audit, judged)
    if audit is not None and folder is not None and (decided := reviewed(folder, audit)):
        sentences.insert(1, decided)
    return ReportPage(
        title=_title(run, audit),
        subject=_subject(run, audit),
        created=datetime.date.today().isoformat(),
        answer=sentences,
        caution=cautions,
        truth=_truth(run, audit),
        provenance=_provenance(run, audit),
        missing=missing,
        **part,
    )


def _run_of(audit: Verdicts, folder: Path | None, missing: list[str]) -> training.RunRecord | None:
    place = run_of_audit(audit, folder)
    if place is not None:
        return training.open_run_folder(place)
    if audit.facts.run is not None:
        gone = f"the run {audit.facts.run} that judged these pairs is no longer there"
        missing.append(f"The training and the marked words: {gone}.")
    return None


def _open(
    run: training.RunRecord | None, audit: Verdicts | None, missing: list[str]
) -> tuple[TrainedRun | None, PairData | None]:
    """The model and the data it judged, as far as they can still be opened."""
    if run is None:
        return None, None
    try:
        loaded = load_run(run.path)
        if audit is None:
            return loaded, loaded.open_split("train")
        config, split = audited_data(run, audit)
        data = open_split(config, split, vocabulary=loaded.vocabulary)
    except InputError as error:
        missing.append(f"Marked words and, without an audit, pairs: {error}.")
        return None, None
    if _holds(data, audit):
        return loaded, data
    missing.append(f"Marked words: the data at {config.path} is not what was audited any more.")
    return None, None


def audited_data(run: training.RunRecord | None, audit: Verdicts) -> tuple[DataConfig, str]:
    """Which data and split the audit judged."""
    about = audit.facts.data
    split = str(about.get("split") or "train")
    config = judged_config(audit.facts)
    if config is not None:
        return config, split
    known = DataConfig(path="") if run is None else run.config.data
    return known.model_copy(update={"path": str(about.get("path") or known.path)}), split


def _holds(data: PairData, audit: Verdicts) -> bool:
    """Whether these are the audited pairs, by number and by the captions of some of them."""
    if len(data) != len(audit):
        return False
    if data.table.captions is None:
        return True
    some = range(0, len(data), max(1, len(data) // 50))
    captions = audit.table["caption"]
    return all(data.table.captions[data.table.text_rows[k]] == captions[k].as_py() for k in some)


def _judged_by_run(
    run: training.RunRecord | None, loaded: TrainedRun | None, data: PairData | None, missing: list[str]
) -> JudgedPairs | None:
    if run is None or data is None:
        return None
    judged = judged_by_run(run, loaded, data)
    audit = f"'mispair audit {in_shell(run.path)} -o audit'"
    if judged is None:
        missing.append(f"Judged pairs: {run.config.method.name} has kept no split; {audit} judges them.")
    else:
        missing.append(f"Kinds of damage, ranks, and pairs whose exchange mends both: {audit} finds them.")
    return judged


def _training_parts(
    run: training.RunRecord, audit: Verdicts | None, judged: JudgedPairs | None, missing: list[str]
) -> dict[str, Any]:
    """The sections about the training, made of the run's files alone; what is not there is named in `missing`."""
    costs, ranked = training.costs(run), training.ranked(run)
    if run.splits and not costs:
        missing.append("Transport costs: this run recorded none.")
    if run.splits and not ranked:
        missing.append("Refined alignments: this run recorded none.")
    return {
        "recalls": training.recalls(run),
        "evaluated_on_clean": training.evaluated_on_clean(run),
        "losses": [losses] if (losses := training.losses(run)) is not None else [],
        "curves": training.curves(run),
        "history": training.history(run, _who_trained(run, audit, judged)),
        "costs": costs,
        "ranked": ranked,
        "configuration": dump_config(run.config),
        "sides": run.config.data.sides,
    }


def _who_trained(
    run: training.RunRecord, audit: Verdicts | None, judged: JudgedPairs | None
) -> Sequence[PairRow] | None:
    """The training pairs as the page calls them, where they are among those it shows."""
    if judged is None or not run.splits:
        return None
    return trained_pairs(*_judged_data(run, audit), judged.pairs, training.split_size(run))


def _judged_data(run: training.RunRecord | None, audit: Verdicts | None) -> tuple[DataConfig, str]:
    """Which data and split the pairs are of."""
    if audit is not None:
        return audited_data(run, audit)
    assert run is not None, "a page is about a run or an audit"
    return run.config.data, "train"


def _title(run: training.RunRecord | None, audit: Verdicts | None) -> str:
    if audit is not None:
        return f"Audit of {_data_name(run, audit)}"
    return f"Training on {_data_name(run, audit)}"


def _data_name(run: training.RunRecord | None, audit: Verdicts | None) -> str:
    named = audit.facts.data.get("name") or audit.facts.data.get("path") if audit is not None else None
    if named is None and run is not None:
        named = run.summary.get("data", {}).get("name") or run.config.data.path
    return Path(str(named)).stem if named else "pairs"


def _subject(run: training.RunRecord | None, audit: Verdicts | None) -> str:
    parts = [f"{audit.facts.pairs:,} pairs"] if audit is not None else []
    if run is not None:
        if audit is None and "data" in run.summary:
            parts.append(f"{run.summary['data']['pairs']:,} pairs")
        parts.append(f"{run.config.method.name} on {run.config.model.name}")
        own = run.path.name == "run"  # as audit --train calls it, which says nothing
        parts.append(f"run {run.path.absolute().parent.name}/run" if own else f"run {run.path.name}")
    return " · ".join(parts)


def _truth(run: training.RunRecord | None, audit: Verdicts | None) -> dict[str, float]:
    known = audit.facts.truth if audit is not None else run.summary.get("detection") if run is not None else None
    return {key: float(value) for key, value in (known or {}).items() if isinstance(value, (int, float))}


def _provenance(run: training.RunRecord | None, audit: Verdicts | None) -> list[tuple[str, str]]:
    listed = training.provenance(run) if run is not None else []
    if audit is not None:
        facts = audit.facts
        about = [f"{key} {facts.data[key]}" for key in ("path", "split", "format", "hash") if facts.data.get(key)]
        listed.append(("audited data", ", ".join(about)))
        beside = "" if facts.run is None else ", beside training"
        listed += [("held out", facts.held_out), ("judging took", f"{facts.seconds:.1f} s{beside}")]
    return listed + training.versions()
