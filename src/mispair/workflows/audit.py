"""From a run folder, or from models and data, to Verdicts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from mispair.auditing.damage import MOST_TWINS
from mispair.auditing.facts import Origin
from mispair.auditing.fixing.earlier import earlier_fix
from mispair.auditing.held_out_evidence import said_without_training
from mispair.auditing.judge import judge
from mispair.auditing.space import space_of
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig, PairData, list_data_splits, open_split
from mispair.data.features import FeatureStore
from mispair.data.identity import content_hash
from mispair.data.prepared_pictures import PreparedPictures
from mispair.data.readers.dispatch import open_source
from mispair.data.readers.table import located
from mispair.data.section_files import data_path, values_in_full
from mispair.data.source import FEWEST
from mispair.data.splits import open_pairs
from mispair.data.vocabulary import TokenStore
from mispair.errors import InputError
from mispair.models.dual import DualConfig
from mispair.progress import Tell, silent
from mispair.protocols import RetrievalModel
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval.scoring import device_of
from mispair.workflows.assemble import input_sizes
from mispair.workflows.audit_truth import compared, refuse_no_truth
from mispair.workflows.crossfit import cross_fit
from mispair.workflows.learned_pairs import FEW, share_learned
from mispair.workflows.networks import network_maker
from mispair.workflows.other_data import other_data
from mispair.workflows.trained_run import TrainedRun, load_run
from mispair.workflows.untrained_pairs import UntrainedPairs

_PATIENCE = 900.0  # seconds of a training up to which it is repeated for an audit


def audit(
    judge_with: str | os.PathLike[str] | TrainedRun | RetrievalModel | Sequence[RetrievalModel],
    data: PairData | DataConfig | str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    folds: int | None = None,
    truth: bool | str = False,
    tell: Tell = silent,
) -> Verdicts:
    """Judge every pair of `data` with a trained run or with models; `mispair.audit` says more of the arguments."""
    if isinstance(judge_with, (str, os.PathLike)):
        judge_with = load_run(Path(judge_with))
    if isinstance(judge_with, TrainedRun):
        config = judge_with.config.data
        if isinstance(data, PairData):
            return _with_models(judge_with.models, data, truth, tell)
        if data is not None and (isinstance(data, DataConfig) or not _same_place(config, data_path(data))):
            config = other_data(judge_with, data, tell)
        return audit_run(judge_with, config, split=split, folds=folds, truth=truth, tell=tell)
    models: list[RetrievalModel] = [*judge_with] if isinstance(judge_with, Sequence) else [judge_with]
    strange = [model for model in models if not hasattr(model, "encode_images")]
    if strange:
        got = type(strange[0]).__name__
        raise InputError(f"pairs are judged by a run folder, by what mispair.load gave or by models, got {got}")
    if not isinstance(data, PairData):
        raise InputError(
            "models alone do not say what to judge: give the pairs too, opened with mispair.data.open_split"
        )
    if folds is not None:
        raise InputError("cross-fitting trains again, so it needs a run, not models")
    return _with_models(models, data, truth, tell)


def _same_place(config: DataConfig, path: str) -> bool:
    """Whether `path` is what the run was trained on: then everything it knows of that data holds."""
    return path == config.path or (os.path.exists(path) and os.path.realpath(path) == os.path.realpath(config.path))


def audit_run(
    run: TrainedRun,
    config: DataConfig,
    *,
    split: str | None = None,
    folds: int | None = None,
    truth: bool | str = False,
    tell: Tell = silent,
) -> Verdicts:
    """Judge the data `config` names; `truth` may be the name of a column of its table."""
    own = config == run.config.data or _learned_from(run, config)
    config = located(config)
    splits = list_data_splits(config)
    split = split or default_split(config, splits)
    data = open_split(config, split, vocabulary=run.vocabulary)
    refuse_other_sizes(run, data)
    refuse_no_truth(config, data, truth)
    learned = own and split in ("train", "all")
    share = 1.0 if learned else 0.0 if own else share_learned(run, data)
    folds = _folds(run, folds, share, data)
    held = None
    if folds:
        dev = run.open_split("dev") if "dev" in splits or splits == ["all"] else data
        held = cross_fit(run.config, data, RecallEvaluator(dev), folds, tell, run.network)
    untrained = None
    if folds or not learned:
        make = network_maker(run.config, input_sizes(data), run.network)
        untrained = UntrainedPairs(data, make, device_of(run.models[0]), tell)()
    verdicts = judge(
        space_of(run.models, data, tell),
        data.table,
        held=held,
        more_evidence=said_without_training(untrained, data.table),
        held_out=held_out(folds, share) + _unfinished(run),
        learned=(share or 0.0) > FEW and not folds,
        features=_features(data.images),
        other_features=_others(config, split, splits),
        run=str(run.folder),
        data=origin_of(config, data) | _towers(run),
        tell=tell,
    )
    return compared(verdicts, data, config, truth)


def _towers(run: TrainedRun) -> Origin:
    """What of the towers learned, where they did: who mends the data and trains again is told to let it learn again."""
    model = run.config.model
    return {"tune": model.tune} if isinstance(model, DualConfig) and run.config.data.live else {}


def _learned_from(run: TrainedRun, config: DataConfig) -> bool:
    """Whether these are the pairs the run was trained on, whatever their files are called and else hold."""
    if run.config.data.noise is not None or config.noise is not None:
        return False  # it learned from other pairs than lie there
    try:
        source, _, _ = open_pairs(config, "train")
    except InputError:
        return False
    return bool(content_hash(source) == run.metrics.get("data", {}).get("hash"))


def default_split(config: DataConfig, splits: list[str]) -> str:
    """Train, where mismatches are injected too; everything where there are no splits."""
    if "train" in splits or config.noise is not None or not splits:
        return "train"  # where there are none, opening it says what is missing
    return "all" if "all" in splits else splits[0]


def _folds(run: TrainedRun, asked: int | None, share: float | None, data: PairData) -> int:
    """How many folds to cross-fit in, 0 for none: where nobody says, two if the run took minutes, not hours, and half
    of the data is enough to train and to judge on."""
    if asked is not None and asked > 0 and share != 1:
        seen = "it has not seen these, so leave --folds out"
        if share is None:
            seen = "its own are no longer there, so train on these: mispair audit DATA --train"
        elif share:
            seen = f"these are so to {share:.0%}, so train on them: mispair audit DATA --train"
        raise InputError(f"cross-fitting is for the pairs a run was trained on; {seen}")
    if asked is not None or share != 1:
        return asked or 0
    if len(data.images) < 2 * FEWEST or len(data) < 3 * run.config.train.batch_size:
        return 0
    seconds = run.metrics.get("seconds")
    return 2 if isinstance(seconds, (int, float)) and seconds <= _PATIENCE else 0


def held_out(folds: int, share: float | None) -> str:
    """How it was avoided that a memorised pair looks right, or that it was not.

    Args:
        share: of the pairs, how many the model has learned from; None where nobody can tell any more.
    """
    if folds:
        return f"cross-fitting in {folds} folds"
    if share is None:
        return "unknown, since the data of the run is no longer there: pairs it has learned by heart look right"
    if not share:
        return "the model has not seen these pairs"
    if share < 1:
        return f"the model was trained on {share:.1%} of these pairs: those it has learned by heart look right"
    return "the model's own scores: pairs it has learned by heart look right, --folds 2 avoids that"


def _unfinished(run: TrainedRun) -> str:
    if run.finished:
        return ""
    return f"; the run is not finished, {len(run.history)} of {run.config.train.epochs} epochs"


def _with_models(models: Sequence[RetrievalModel], data: PairData, truth: bool | str, tell: Tell) -> Verdicts:
    about: Origin = {"path": data.name, "split": data.split, "format": None, "hash": data.content_hash}
    learned = data.split in ("train", "all")  # nobody says; these are what models learn from
    verdicts = judge(
        space_of(models, data, tell),
        data.table,
        held_out=held_out(0, float(learned)),
        learned=learned,
        features=_features(data.images),
        data=about,
        tell=tell,
    )
    return compared(verdicts, data, None, truth)


def refuse_other_sizes(run: TrainedRun, data: PairData) -> None:
    """Raise InputError where the data is not of the kind and widths that the run was trained on."""
    sizes = json.loads(run.about["sizes"])
    if data.images.width != sizes["image_width"]:
        raise InputError(
            f"{data.name} has {data.sides[0]} features of width {data.images.width}, but {run.folder} was trained on"
            f" {sizes['image_width']}; audit the data it was trained on or features of the same network"
        )
    words = isinstance(data.texts, TokenStore)
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


def _features(store: FeatureStore | PreparedPictures) -> Tensor | None:
    """Mean region of every image, (I, F); None for pictures, and where there are too many to compare each with each."""
    if len(store) > MOST_TWINS or not isinstance(store, FeatureStore):
        return None
    return torch.cat([torch.from_numpy(block.mean(1)) for block in store.blocks(1024)])


def _others(config: DataConfig, split: str, splits: list[str]) -> dict[str, Tensor]:
    others = {}
    for name in splits:
        if name not in (split, "all") and split != "all":
            store = open_source(config, name).images
            features = None if store is None else _features(store)
            if features is not None:
                others[name] = features
    return others


def origin_of(config: DataConfig, data: PairData) -> Origin:
    """What is needed to open the data again, and to see whether it is still the same."""
    values = values_in_full(config)
    path = values["path"]
    kind = "scenes" if path == "scenes" else Path(path).suffix.lower().lstrip(".")
    return {
        "path": path,
        "split": data.split,
        "format": kind if kind not in ("", "npy") else "arrays" if data.vocabulary is None else "folder",
        "hash": data.content_hash,
        "noise_hash": data.noise_hash,
        "config": values,
        "mended": earlier_fix(path),
    }
