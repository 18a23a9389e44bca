"""What `mispair serve` and `mispair review` put on the page: an index, a run or an audit, opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.audit_folder import AuditFolder
from mispair.auditing.facts import judged_config
from mispair.auditing.verdicts import Verdicts
from mispair.data import DataConfig
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.progress import Tell, silent
from mispair.reviewing.identity import audit_identity
from mispair.reviewing.session import ReviewSession
from mispair.runtime.run_folder import RunFolder
from mispair.searching.index import MANIFEST, Index
from mispair.serving.app import Site
from mispair.workflows.embed import Encoding
from mispair.workflows.index_encoder import build_encoder_index
from mispair.workflows.index_run import build_index, model_hash
from mispair.workflows.report.find_pictures import PicturesById
from mispair.workflows.run_of_audit import run_of_audit
from mispair.workflows.search import encoder_of
from mispair.workflows.trained_run import load_run
from mispair.workflows.why import explainer


class PicturesOfSplits:
    """Pictures of any of several splits, by image id."""

    def __init__(self, parts: Sequence[PicturesById]) -> None:
        self.parts = parts

    def read(self, image_id: str) -> bytes | None:
        """The first split that has the picture gives it."""
        return next((data for part in self.parts if (data := part.read(image_id)) is not None), None)

    def refuse_if_gone(self) -> None:
        """Raises InputError where not one of the pictures is there."""
        if not any(part.present for part in self.parts):
            raise InputError(f"the pictures are gone: {self.parts[0].said()}")


def open_site(folder: Path, audit: Path | None = None, pictures: Path | None = None, tell: Tell = silent) -> Site:
    """The site of an index, a run or an audit folder.

    A run is indexed into RUN/index the first time; an audit brings the review, and the index of its run, or of the
    encoder that judged its pictures, where that is still there.

    Raises:
        InputError: the folder is none of these, or belongs to something else.
    """
    if is_missing(folder):
        raise InputError(f"{does_not_exist(folder)}; expected an index, a run or an audit")
    if AuditFolder(folder).begun:
        return _audit_site(folder, pictures, tell)
    verdicts = None if audit is None else Verdicts.load(audit)
    if (folder / MANIFEST).is_file():
        index = Index.open(folder)
    elif RunFolder(folder).config_file.is_file():
        index = _index_of_run(folder, folder / "index", None, tell)
    else:
        raise InputError(
            f"{folder} is no index (mispair index), no run (mispair train) and no audit (mispair audit); "
            "give one of these"
        )
    review = None if verdicts is None or audit is None else ReviewSession(audit, verdicts)
    return _site(folder.name, index, pictures, review)


def open_review(folder: Path, pictures: Path | None = None, decisions: Path | None = None) -> Site:
    """The review of an audit alone: nothing is indexed."""
    verdicts = Verdicts.load(folder)
    return Site(folder.name, review=ReviewSession(folder, verdicts, decisions), pictures=_of_audit(verdicts, pictures))


def pictures_of_index(
    index: Index, config: DataConfig, folder: Path | None = None, names: Sequence[str] | None = None
) -> PicturesOfSplits:
    """The pictures of an index, or those of `names` alone, beside the data it was made from or in `folder`."""
    splits = ["train", "dev", "test"] if config.path == "scenes" else ["all"]
    ids = index.metadata.distinct("image_path") if names is None else list(names)
    return PicturesOfSplits([PicturesById(config, split, ids, folder=folder) for split in splits])


def _site(name: str, index: Index, pictures: Path | None, review: ReviewSession | None) -> Site:
    encoder = encoder_of(index)
    shown = pictures_of_index(index, encoder.data, pictures)
    if pictures is not None or encoder.data.encoder is not None:  # features alone may come without pictures
        shown.refuse_if_gone()

    def picture_of(pair: int) -> bytes | None:
        return shown.read(index.rows([pair])[0]["image_path"])

    explain = explainer(encoder, picture_of) if encoder.reads_words else None
    judged = None if review is None else _audit_pairs(index, review.verdicts)
    return Site(name, index, encoder, review, shown, explain, judged)


def _audit_pairs(index: Index, verdicts: Verdicts) -> NDArray[np.int64]:
    """(N,) which pair of the audit each pair of the index is; -1 where the audit has not judged it."""
    if index.manifest.audit == audit_identity(verdicts):
        return np.asarray(np.nan_to_num(index.metadata.column("audit_pair"), nan=-1), np.int64)
    audit_pair = np.full(len(index), -1, np.int64)
    mine = index.metadata.where(split=str(verdicts.facts.data.get("split")))
    assert mine is not None
    if mine.sum() == len(verdicts) and index.metadata.same(mine, verdicts.table["caption"]):
        audit_pair[mine] = np.arange(len(verdicts))
    return audit_pair


def _audit_site(folder: Path, pictures: Path | None, tell: Tell) -> Site:
    verdicts = Verdicts.load(folder)
    review = ReviewSession(folder, verdicts)
    run = run_of_audit(verdicts, folder)
    if run is not None:
        return _site(folder.name, _index_of_run(run, folder / "index", verdicts, tell), pictures, review)
    config = judged_config(verdicts.facts)
    if verdicts.facts.run is None and config is not None and config.encoder is not None:
        return _site(folder.name, _index_of_encoder(config, folder / "index", verdicts, tell), pictures, review)
    return Site(folder.name, review=review, pictures=_of_audit(verdicts, pictures))


def _index_of_run(run: Path, folder: Path, verdicts: Verdicts | None, tell: Tell) -> Index:
    """The index in `folder`, made now where there is none or the model, the data or the audit has changed."""
    loaded = load_run(run)
    index = _usable(folder, model_hash(loaded), verdicts)
    if index is None:
        build_index(loaded, folder, verdicts=verdicts, tell=tell)
        index = Index.open(folder)
    return index


def _index_of_encoder(config: DataConfig, folder: Path, verdicts: Verdicts, tell: Tell) -> Index:
    assert config.encoder is not None
    index = _usable(folder, open_encoder(config.encoder).fingerprint, verdicts)
    if index is None:
        raw = config.model_copy(update={"features": None, "joint": None, "second": None, "ids": None})
        build_encoder_index(raw, folder, Encoding(config.encoder), verdicts, tell)
        index = Index.open(folder)
    return index


def _usable(folder: Path, model: str, verdicts: Verdicts | None) -> Index | None:
    if not (folder / MANIFEST).is_file():
        return None
    try:
        index = Index.open(folder, model)
    except InputError:
        return None
    return index if verdicts is None or index.manifest.audit == audit_identity(verdicts) else None


def _of_audit(verdicts: Verdicts, folder: Path | None) -> PicturesOfSplits | None:
    config = judged_config(verdicts.facts)
    if config is None:
        if folder is None:
            return None
        config = DataConfig(path=str(folder))
    split = str(verdicts.facts.data.get("split") or "train")
    ids = verdicts.table["image_id"].unique().to_pylist()
    shown = PicturesOfSplits([PicturesById(config, split, ids, folder=folder)])
    if folder is not None or config.encoder is not None:
        shown.refuse_if_gone()
    return shown
