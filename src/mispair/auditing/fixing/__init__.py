"""A data set mended as an audit says, written back in its own format; and back again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mispair.atomic import make_atomically
from mispair.auditing.fixing.actions import plan_fix
from mispair.auditing.fixing.expectation import expect
from mispair.auditing.fixing.judged_data import JudgedData, reopen
from mispair.auditing.fixing.patch import NAME, Patch, revert
from mispair.auditing.fixing.write import train_arguments, write_fixed
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.readers.dispatch import open_pairing

__all__ = ["Fixed", "fix_data", "undo_fix"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a fix wrote."""

    folder: Path
    pairs: int  # judged
    kept: int
    changed: int  # pairs that show another caption than before
    train: str  # the arguments with which `mispair train` reads it
    wrong: float | None  # expected share of the written pairs that are mismatched; None where it cannot be told
    true: float | None  # expected share of the changed captions that are right
    unjudged: int  # pairs of other splits, or left out when it was judged; they stay as they were
    beyond: int = 0  # pairs of the split beyond the limit up to which it was judged; they are not written


def fix_data(
    verdicts: Verdicts,
    action: str,
    out: Path,
    *,
    data: DataConfig | None = None,
    threshold: float = 0.5,
    min_weight: float = 0.0,
    min_gain: float = 0.0,
    captions: Mapping[int, str] | None = None,
) -> Fixed:
    """Write the judged data back in its format, mended by `action` (see `plan_fix`), into the new folder `out`.

    Args:
        data: where the data lies, for an audit that was made in memory or whose data has moved.
        captions: by pair, captions that people gave (`mispair.reviewing.applied`); they stand whatever the action is.

    Raises InputError where the data is not what was judged, or `out` cannot be written.
    """
    plan = plan_fix(verdicts, action, threshold=threshold, min_weight=min_weight, min_gain=min_gain)
    plan = replace(plan, captions=captions or {})
    judged = reopen(verdicts, data)
    expected = expect(verdicts, plan)
    write_fixed(judged, plan, out, expected.wrong)
    train = train_arguments(judged.config, out, plan.weights is not None, verdicts.facts.data.get("tune"))
    unjudged = max(judged.source.listed - len(verdicts), 0)
    return Fixed(
        out,
        len(verdicts),
        len(plan.kept),
        plan.changed,
        train,
        expected.wrong,
        expected.true,
        unjudged,
        _beyond(judged),
    )


def _beyond(judged: JudgedData) -> int:
    """Pairs that a limit kept from being read, where the split is written anew; a table keeps what nobody judged."""
    if judged.source.listed:
        return 0
    whole = judged.config.model_copy(update={"limit": None, "dev_limit": None, "test_limit": None})
    return len(open_pairing(whole, judged.split).image_of_text) - len(judged.source.image_of_text)


def undo_fix(fixed: Path, out: Path) -> Patch:
    """Write the original files of the folder `fixed` (or of its fix.patch) into the new folder `out`."""
    with make_atomically(out) as folder:
        original = folder / "original"
        original.mkdir()
        patch = revert(fixed.parent if fixed.name == NAME else fixed, original)
        original.rename(out)
    return patch
