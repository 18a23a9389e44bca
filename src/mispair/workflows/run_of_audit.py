"""Which run judged an audit's pairs, wherever both lie now."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.verdicts import Verdicts
from mispair.runtime.run_folder import RunFolder


def run_of_audit(verdicts: Verdicts, folder: Path | None) -> Path | None:
    """The run an audit names: where it said, or in or beside `folder`, the audit, when both were moved.

    None where the audit needed no run, or it is gone.
    """
    if verdicts.facts.run is None:
        return None
    named = Path(verdicts.facts.run)
    beside = () if folder is None else (folder / named, folder / "run", folder.parent / named.name)
    return next((place for place in (named, *beside) if RunFolder(place).begun), None)
