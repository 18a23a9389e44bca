"""build_page: a run or an audit folder in, the content of its page out. What cannot be had is named on the page."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mispair.audit.verdicts import Verdicts
from mispair.config.assemble import LoadedRun, load_run
from mispair.config.load import dump_config
from mispair.config.reporting import run as told
from mispair.config.reporting.answer import answer
from mispair.config.reporting.evidence import evidence
from mispair.config.reporting.pairs import Judged, gallery, judged_by_audit, judged_by_run, worst_pairs
from mispair.config.reporting.pictures import Pictures
from mispair.data import DataConfig, PairData, open_split
from mispair.errors import InputError
from mispair.report.content import Kind, Page

Say = Callable[[str], None]


def build_page(folder: Path, *, pictures: Path | None = None, rows: int = 10_000, say: Say | None = None) -> Page:
    """The page of `folder`, with the `rows` worst pairs and the pictures found beside the data or in `pictures`."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; give a run (mispair train) or an audit (mispair audit)")
    if pictures is not None and not pictures.is_dir():
        raise InputError(f"there is no folder {pictures} to take pictures from; check --pictures")
    tell = say or (lambda _: None)
    missing: list[str] = []
    audit = Verdicts.load(folder) if (folder / "audit.json").exists() else None
    run = told.open_run_folder(folder) if audit is None else _run_of(audit, folder, missing)
    tell("opening model and data")
    loaded, data = _open(run, audit, missing)
    tell("collecting the pairs")
    judged = judged_by_audit(audit) if audit is not None else _judged_by_run(run, loaded, data, missing)
    part: dict[str, Any] = {} if run is None else _told(run, judged, missing)
    if judged is not None:
        shown = _pictures(run, audit, judged, pictures, missing)
        tell("making the gallery")
        part["gallery"] = gallery(judged, loaded, data, shown)
        part["pairs"] = worst_pairs(judged, shown, rows, "audit.parquet" if audit is not None else "split.parquet")
    if audit is not None:
        part["losses"] = [*part.get("losses", ()), *evidence(audit)]
        part["damage"] = [Kind(d.kind, d.count, d.evidence, d.remedy) for d in audit.facts.damage]
    sentences, cautions = answer(run, audit, judged)
    return Page(
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


def _run_of(audit: Verdicts, folder: Path, missing: list[str]) -> told.RunFolder | None:
    """The run an audit names: where it said, or beside the audit when both were moved."""
    if audit.facts.run is None:
        return None
    named = Path(audit.facts.run)
    for place in (named, folder / named, folder / "run", folder.parent / named.name):
        if (place / "config.yaml").is_file():
            return told.open_run_folder(place)
    missing.append(f"The training and the marked words: the run {named} that judged these pairs is no longer there.")
    return None


def _open(
    run: told.RunFolder | None, audit: Verdicts | None, missing: list[str]
) -> tuple[LoadedRun | None, PairData | None]:
    """The model and the data it judged, as far as they can still be opened."""
    if run is None:
        return None, None
    try:
        loaded = load_run(run.path)
        if audit is None:
            return loaded, loaded.open_split("train")
        config, split = _audited(run, audit)
        data = open_split(config, split, vocabulary=loaded.vocabulary)
    except InputError as error:
        missing.append(f"Marked words and, without an audit, pairs: {error}.")
        return None, None
    if _holds(data, audit):
        return loaded, data
    missing.append(f"Marked words: the data at {config.path} is not what was audited any more.")
    return None, None


def _audited(run: told.RunFolder | None, audit: Verdicts) -> tuple[DataConfig, str]:
    """Which data and split the audit judged."""
    about = audit.facts.data
    split = str(about.get("split") or "train")
    if isinstance(about.get("config"), dict):
        try:
            return DataConfig.model_validate(about["config"]), split
        except ValidationError:
            raise InputError("audit.json tells of data in a way this version of mispair does not know") from None
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
    run: told.RunFolder | None, loaded: LoadedRun | None, data: PairData | None, missing: list[str]
) -> Judged | None:
    if run is None or data is None:
        return None
    judged = judged_by_run(run, loaded, data)
    audit = f"'mispair audit {run.path} -o audit'"
    if judged is None:
        missing.append(f"Judged pairs: {run.config.method.name} keeps no split; {audit} judges them.")
    else:
        missing.append(f"Kinds of damage, ranks, and pairs whose exchange mends both: {audit} finds them.")
    return judged


def _told(run: told.RunFolder, judged: Judged | None, missing: list[str]) -> dict[str, Any]:
    """The parts that need no model."""
    costs, ranked = told.costs(run), told.ranked(run)
    if run.splits and not costs:
        missing.append("Transport costs: this run recorded none.")
    if run.splits and not ranked:
        missing.append("Refined alignments: this run recorded none.")
    return {
        "recalls": told.recalls(run),
        "losses": [losses] if (losses := told.losses(run)) is not None else [],
        "curves": told.curves(run),
        "history": told.history(run, None if judged is None else judged.pairs),
        "costs": costs,
        "ranked": ranked,
        "configuration": dump_config(run.config),
        "sides": run.config.data.sides,
    }


def _pictures(
    run: told.RunFolder | None, audit: Verdicts | None, judged: Judged, folder: Path | None, missing: list[str]
) -> Pictures | None:
    if audit is not None:
        config, split = _audited(run, audit)
    else:
        assert run is not None, "a page is about a run or an audit"
        config, split = run.config.data, "train"
    ids = [pair.image_id for pair in judged.pairs[:: max(1, len(judged.pairs) // 50)]]
    pictures = Pictures(config, split, ids, folder)
    if not pictures.present:
        where = str(folder) if folder is not None else "the data"
        missing.append(f"Pictures: none was found beside {where}; name their folder with --pictures.")
        return None
    return pictures


def _title(run: told.RunFolder | None, audit: Verdicts | None) -> str:
    if audit is not None:
        return f"Audit of {_data_name(run, audit)}"
    return f"Training on {_data_name(run, audit)}"


def _data_name(run: told.RunFolder | None, audit: Verdicts | None) -> str:
    named = audit.facts.data.get("name") or audit.facts.data.get("path") if audit is not None else None
    if named is None and run is not None:
        named = run.summary.get("data", {}).get("name") or run.config.data.path
    return Path(str(named)).stem if named else "pairs"


def _subject(run: told.RunFolder | None, audit: Verdicts | None) -> str:
    parts = [f"{audit.facts.pairs:,} pairs"] if audit is not None else []
    if run is not None:
        if audit is None and "data" in run.summary:
            parts.append(f"{run.summary['data']['pairs']:,} pairs")
        parts.append(f"{run.config.method.name} on {run.config.model.name}")
        parts.append(f"run {run.path.name}")
    return " · ".join(parts)


def _truth(run: told.RunFolder | None, audit: Verdicts | None) -> dict[str, float]:
    found = audit.facts.truth if audit is not None else run.summary.get("detection") if run is not None else None
    return {key: float(value) for key, value in (found or {}).items() if isinstance(value, (int, float))}


def _provenance(run: told.RunFolder | None, audit: Verdicts | None) -> list[tuple[str, str]]:
    found = told.provenance(run) if run is not None else []
    if audit is not None:
        facts = audit.facts
        about = [f"{key} {facts.data[key]}" for key in ("path", "split", "format", "hash") if facts.data.get(key)]
        found.append(("audited data", ", ".join(about)))
        found += [("held out", facts.held_out), ("audit took", f"{facts.seconds:.0f} s")]
    return found + told.versions()
