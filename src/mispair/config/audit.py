"""From a run folder, or from models and data, to Verdicts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mispair.audit.damage import MOST_TWINS
from mispair.audit.judge import FEWEST, judge
from mispair.audit.scan import Tell, silent, space_of
from mispair.audit.truth import who_belongs, with_truth
from mispair.audit.verdicts import Verdicts
from mispair.config.assemble import LoadedRun, load_run, read_summary
from mispair.config.crossfit import cross_fit
from mispair.config.splits import read_split
from mispair.data import DataConfig, PairData, list_data_splits, open_split
from mispair.data.features import FeatureStore
from mispair.data.rows import read_rows
from mispair.data.sources import located, open_source
from mispair.errors import InputError
from mispair.protocols import RetrievalModel
from mispair.retrieval.evaluate import RecallEvaluator

_PATIENCE = 900.0  # seconds of a training up to which it is repeated for an audit


def audit(
    model_or_run: str | os.PathLike[str] | RetrievalModel | Sequence[RetrievalModel],
    table: PairData | str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    folds: int | None = None,
    truth: bool = False,
    tell: Tell = silent,
) -> Verdicts:
    """Judge every pair of `table` with a trained run or with models.

    Args:
        model_or_run: a run folder, a model, or several whose mean score counts.
        table: pairs opened with `mispair.data.open_split`, or, for a run, the path of other data; by default the data
            the run was trained on.
        split: which split of it; by default train, or everything where there are no splits.
        folds: train so many networks anew, each to judge pairs it has not seen; 0 for none. By default 2 where the run
            took minutes. A run's own training data only.
        truth: compare with the mismatches that were injected.
    """
    if isinstance(model_or_run, (str, os.PathLike)):
        run = load_run(Path(model_or_run))
        config = run.config.data
        if isinstance(table, PairData):
            return _with_models(run.models, table, truth, tell)
        if table is not None:
            of_its_own = dict.fromkeys(("noise", "features", "ids", "second"))
            config = config.model_copy(update={"path": os.fspath(table), **of_its_own})
        return audit_run(run, config, split=split, folds=folds, truth=truth, tell=tell)
    if not isinstance(table, PairData):
        raise InputError(
            "models alone do not say what to judge: give the pairs too, opened with mispair.data.open_split"
        )
    if folds is not None:
        raise InputError("cross-fitting trains again, so it needs a run folder, not models")
    models: list[RetrievalModel] = [*model_or_run] if isinstance(model_or_run, Sequence) else [model_or_run]
    return _with_models(models, table, truth, tell)


def audit_run(
    run: LoadedRun,
    config: DataConfig,
    *,
    split: str | None = None,
    folds: int | None = None,
    truth: bool | str = False,
    tell: Tell = silent,
) -> Verdicts:
    """Judge the data `config` names; `truth` may be the name of a column of its table."""
    own = config == run.config.data
    config = located(config)
    splits = list_data_splits(config)
    split = split or _usual_split(config, splits)
    data = open_split(config, split, vocabulary=run.vocabulary)
    _refuse_other_sizes(run, data)
    _refuse_no_truth(config, data, truth)
    learned = own and split in ("train", "all")
    history = _history(run.folder, len(data)) if own and split == "train" else None
    folds = _folds(run, folds, learned, data)
    evidence = None
    if folds:
        dev = run.open_split("dev") if "dev" in splits or splits == ["all"] else data
        evidence = cross_fit(run.config, data, RecallEvaluator(dev), folds, tell)
    verdicts = judge(
        space_of(run.models, data, tell),
        data.table,
        history=history,
        evidence=evidence,
        held_out=_held_out(folds, history is not None, learned),
        features=_features(data.images),
        other_features=_others(config, split, splits),
        run=str(run.folder),
        data=_about(config, data),
        tell=tell,
    )
    return _compared(verdicts, data, config, truth)


def _usual_split(config: DataConfig, splits: list[str]) -> str:
    """Train, where mismatches are injected too; everything where there are no splits."""
    if "train" in splits or config.noise is not None or not splits:
        return "train"  # where there are none, opening it says what is missing
    return "all" if "all" in splits else splits[0]


def _folds(run: LoadedRun, asked: int | None, learned: bool, data: PairData) -> int:
    """How many folds to cross-fit in, 0 for none: where nobody says, two if the run took minutes, not hours, and half
    of the data is enough to train and to judge on."""
    if asked is not None and asked > 0 and not learned:
        raise InputError(
            "cross-fitting is for the pairs a run was trained on; it has not seen these, so leave --folds out"
        )
    if asked is not None or not learned:
        return asked or 0
    if len(data.images) < 2 * FEWEST or len(data) < 3 * run.config.train.batch_size:
        return 0
    seconds = read_summary(run.folder).get("seconds")
    return 2 if isinstance(seconds, (int, float)) and seconds <= _PATIENCE else 0


def _held_out(folds: int, history: bool, learned: bool) -> str:
    past = ", ordered with the losses of every epoch" if history else ""
    if folds:
        return f"cross-fitting in {folds} folds{past}"
    if not learned:
        return "the model has not seen these pairs"
    return f"the model's own scores{past}: pairs it has learned by heart look right, --folds 2 avoids that"


def _with_models(models: Sequence[RetrievalModel], data: PairData, truth: bool, tell: Tell) -> Verdicts:
    about = {"path": data.name, "split": data.split, "format": None, "hash": data.content_hash}
    space = space_of(models, data, tell)
    verdicts = judge(
        space, data.table, held_out=_held_out(0, False, True), features=_features(data.images), data=about, tell=tell
    )
    return _compared(verdicts, data, None, truth)


def _refuse_other_sizes(run: LoadedRun, data: PairData) -> None:
    sizes = json.loads(run.about["sizes"])
    if data.images.width != sizes["image_width"]:
        raise InputError(
            f"{data.name} has {data.sides[0]} features of width {data.images.width}, but {run.folder} was trained on"
            f" {sizes['image_width']}; audit the data it was trained on or features of the same network"
        )
    words = data.vocabulary is not None
    if words != (sizes["vocabulary_size"] is not None):
        raise InputError(
            f"{data.name} has {'captions' if words else 'features'} as its {data.sides[1]} side, but {run.folder} was"
            f" trained on {'features' if words else 'captions'}; audit data of the same kind"
        )
    if not words and isinstance(data.texts, FeatureStore) and data.texts.width != sizes["text_width"]:
        raise InputError(
            f"{data.name} has {data.sides[1]} features of width {data.texts.width}, but {run.folder} was trained on"
            f" {sizes['text_width']}; audit the data it was trained on or features of the same network"
        )


def _history(folder: Path, pairs: int) -> NDArray[np.float64] | None:
    """The running loss of every pair at the last epoch that was split; None where the method keeps none."""
    files = sorted((folder / "split.parquet").glob("epoch-*.parquet"))
    if not files:
        return None
    table = read_split(files[-1])
    if "signal" not in table.column_names or table.num_rows != pairs:
        return None
    signal: NDArray[np.float64] = table["signal"].to_numpy().astype(np.float64)
    return signal if np.isfinite(signal).all() else None


def _features(store: FeatureStore) -> Tensor | None:
    """Mean region of every image, (I, F); None where there are too many to compare each with each."""
    if len(store) > MOST_TWINS:
        return None
    return torch.cat([torch.from_numpy(block.mean(1)) for block in store.blocks(1024)])


def _others(config: DataConfig, split: str, splits: list[str]) -> dict[str, Tensor]:
    found = {}
    for name in splits:
        if name not in (split, "all") and split != "all":
            store = open_source(config, name).images
            features = None if store is None else _features(store)
            if features is not None:
                found[name] = features
    return found


def _about(config: DataConfig, data: PairData) -> dict[str, Any]:
    """What is needed to open the data again, and to see whether it is still the same."""
    files = {name: getattr(config, name) for name in ("path", "features", "ids", "second", "vocabulary")}
    absolute = {name: os.path.abspath(file) for name, file in files.items() if file not in (None, "scenes")}
    path = absolute.get("path", "scenes")
    values = config.model_dump(mode="json") | absolute
    if config.noise is not None and config.noise.index is not None:
        values["noise"]["index"] = os.path.abspath(config.noise.index)
    kind = "scenes" if path == "scenes" else Path(path).suffix.lower().lstrip(".")
    return {
        "path": path,
        "split": data.split,
        "format": kind if kind not in ("", "npy") else "arrays" if data.vocabulary is None else "folder",
        "hash": data.content_hash,
        "noise_hash": data.noise_hash,
        "config": values,
    }


def _compared(verdicts: Verdicts, data: PairData, config: DataConfig | None, truth: bool | str) -> Verdicts:
    if truth is False:
        return verdicts
    table = data.table
    if isinstance(truth, str):
        assert config is not None
        mismatched = _truth_column(config, data.split, truth)
        return with_truth(verdicts, mismatched, table.image_rows, table.text_rows, None)
    _refuse_no_truth(config, data, truth)
    assert table.truth is not None
    return with_truth(verdicts, table.truth.mismatched, table.image_rows, table.text_rows, who_belongs(data))


def _refuse_no_truth(config: DataConfig | None, data: PairData, truth: bool | str) -> None:
    """Before anything is judged, which may take long."""
    if isinstance(truth, str):
        assert config is not None
        _truth_column(config, data.split, truth)
    elif truth and data.table.truth is None:
        raise InputError(
            f"nobody injected mismatches into {data.name}, so there is no truth to compare with; name a column of the"
            " table that says which pairs are mismatched: --truth-column NAME"
        )


_YES = {"1", "1.0", "true", "yes", "mismatched", "wrong"}
_NO = {"0", "0.0", "false", "no", "matched", "right"}


def _truth_column(config: DataConfig, split: str, name: str) -> NDArray[np.bool_]:
    """Which pairs a column of the table calls mismatched."""
    lines = open_source(config, split).lines
    if lines is None:
        raise InputError(
            f"{config.path} is no table, so it has no column {name!r}; --truth compares with injected mismatches"
        )
    rows = read_rows(Path(config.path))
    if name not in rows.columns:
        raise InputError(f"{config.path} has no column {name!r}; its columns are {', '.join(rows.header)}")
    said = dict(zip(rows.lines, rows.columns[name], strict=True))
    found = np.empty(len(lines), bool)
    for pair, line in enumerate(lines.tolist()):
        word = str(said[line]).strip().lower()
        if word not in _YES | _NO:
            raise InputError(
                f"{config.path}, line {line}: column {name!r} holds {word[:40]!r}; expected 1 or 0, true or false"
            )
        found[pair] = word in _YES
    return found
