"""What is judged in shards, opened as vectors: two arrays, a folder of `mispair embed`, or data seen by a run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mispair.atomic import write_text
from mispair.auditing.embeddings import arrays_as_data
from mispair.auditing.fixing.earlier import earlier_fix
from mispair.auditing.space import Space, space_of
from mispair.data import PairData, list_data_splits, open_split
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder, table_of
from mispair.data.files.reading import plain_file
from mispair.data.identity import content_hash
from mispair.data.readers.dispatch import open_source
from mispair.data.readers.table import located
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.ordinary_file import read_ordinary
from mispair.runtime.run_folder import RunFolder
from mispair.scale.judge_many import AuditContext
from mispair.scale.vectors import Floats32, PairVectors, Rows, StoredSide, join_pairs
from mispair.section import Section
from mispair.shell_word import in_shell
from mispair.workflows.audit import default_split, held_out, origin_of, refuse_other_sizes
from mispair.workflows.learned_pairs import FEW, share_learned
from mispair.workflows.other_data import like_own, refuse_other_encoder
from mispair.workflows.trained_run import TrainedRun, load_run

_NAME = "subject.json"
_PROBE = 32  # items of each side on which it is seen whether products of vectors are the score


class Subject(Section):
    """What is judged: enough to open it again, on another machine that sees the same files."""

    data: DataConfig  # with both sides as vectors, unless a run or an encoder makes them
    origin: DataConfig | None = None  # what `fix` rewrites, where that is not `data`
    run: str | None = None
    encoder: str | None = None  # whose picture vectors are led into the space of its texts
    parts: tuple[str, ...] = ()  # folders of `mispair embed`, one after the other, that make up the data
    split: str = "all"

    @classmethod
    def of_embeddings(cls, first: str, second: str, table: DataConfig | None) -> Subject:
        """Two .npy files, and the table whose rows they are, where there is one: this, or that of their folder."""
        table = table or table_of(first, second)
        config, origin = arrays_as_data(first, second, table)
        return cls(data=config, origin=None if table is None else origin)

    @classmethod
    def of_folder(cls, folder: str) -> Subject:
        """A folder that `mispair embed` wrote. Raises InputError where it is none."""
        files = EmbeddedFolder(Path(os.path.abspath(folder)))
        made_by = files.made_by()
        if made_by.cells or not files.texts_file.exists():
            raise InputError(
                f"{folder} holds cells or no vectors of its captions; embed without --cells, with an encoder that"
                " knows texts"
            )
        config = DataConfig(path=str(files.path))
        vectors = config.model_copy(update={"second": str(files.texts_file)})
        return cls(data=vectors, origin=config, encoder=made_by.encoder)

    @staticmethod
    def file(folder: Path) -> Path:
        """Where the shards in a folder say what they are of."""
        return folder / _NAME

    def save(self, folder: Path) -> None:
        write_text(self.file(folder), self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Subject:
        path = plain_file(cls.file(folder), "what the shards of this folder are of")
        try:
            return cls.model_validate_json(read_ordinary(path))
        except (OSError, ValueError):
            raise InputError(f"{path} is damaged; write a shard again: mispair audit ... --shard 1/4") from None


def open_vectors(subject: Subject) -> PairVectors:
    """The pairs as vectors. Raises InputError where they cannot be had."""
    if subject.run is not None:
        return _of_run(load_run(Path(subject.run)), subject)[0]
    if subject.parts:
        return join_pairs([open_vectors(Subject.of_folder(folder)) for folder in subject.parts])
    config = subject.data
    source = open_source(config, "all")
    if source.images is None or source.text_features is None:
        raise InputError(
            f"{config.path} holds no vectors of both sides; embed it first: mispair embed {in_shell(config.path)}"
        )
    data = PairVectors.of_source(source, (config.features or config.path, config.second or config.path))
    return data if subject.encoder is None else _in_one_space(data, subject.encoder)


def about_subject(subject: Subject) -> AuditContext:
    """What to say of the data in the facts; a hash of all of it among that, so it is asked for once, at the end."""
    if subject.run is not None:
        return _of_run(load_run(Path(subject.run)), subject)[1]
    if subject.parts:
        return AuditContext({"path": subject.data.path, "split": "all", "format": "parts", "hash": None})
    origin = subject.origin or subject.data
    kind = "arrays" if subject.origin is None else os.path.splitext(origin.path)[1].lower().lstrip(".")
    return AuditContext(
        {
            "path": origin.path, "split": "all", "format": kind or "folder",
            "hash": content_hash(open_source(origin, "all")),
            "noise_hash": None, "config": origin.model_dump(mode="json"),
            "mended": earlier_fix(origin.path),
        }
    )  # fmt: skip


def _in_one_space(data: PairVectors, name: str) -> PairVectors:
    encoder = open_encoder(name)
    if not encoder.joint:
        raise InputError(
            f"the encoder '{name}' has no common space for pictures and texts, so it cannot judge pairs without"
            " training; choose one that has (mispair encoders)"
        )
    assert isinstance(data.images, StoredSide)
    images = StoredSide(data.images.name, data.images.store, encoder.in_text_space)
    return PairVectors(
        images, data.texts, data.image_of, data.captions, data.image_ids, data.pair_ids, encoder.fingerprint
    )


@dataclass(frozen=True, eq=False)
class _RunSide:
    """One side of a split as the networks of a run see it."""

    run: TrainedRun
    data: PairData
    rows: Rows  # (.,) row of the split's store for each row asked for
    of_images: bool
    name: str

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Rows) -> Floats32:
        mine = self.rows[rows]
        some = np.zeros(1, np.int64)  # the other side is not asked for
        space = space_of(
            self.run.models,
            self.data,
            image_rows=mine if self.of_images else some,
            text_rows=some if self.of_images else mine,
        )
        vectors: Floats32 = (space.images if self.of_images else space.texts).numpy()
        return vectors

    def stored(self, rows: Rows) -> Floats32:
        return self.take(rows)


def _of_run(run: TrainedRun, subject: Subject) -> tuple[PairVectors, AuditContext]:
    data = open_split(subject.data, subject.split, vocabulary=run.vocabulary)
    refuse_other_sizes(run, data)
    with torch.no_grad():
        few = [np.arange(min(_PROBE, count)) for count in (len(data.images), len(data.image_of_text))]
        probe: Space = space_of(run.models, data, image_rows=few[0], text_rows=few[1])
    if probe.fine is not None:
        raise InputError(
            f"{run.folder} scores regions and words, not one vector for each side, so it cannot judge in shards;"
            " audit without --shard, or train a model with vectors: --model vse"
        )
    table = data.table
    own = subject.data == run.config.data
    share = float(subject.split in ("train", "all")) if own else share_learned(run, data)
    pairs = PairVectors(
        _RunSide(run, data, np.arange(len(data.images)), True, "images of the run"),
        _RunSide(run, data, table.text_rows, False, "texts of the run"),
        table.image_rows,
        None if table.captions is None else _TextsOfPairs(table.captions, table.text_rows),
        table.image_ids,
        None if table.text_ids is None else _TextsOfPairs(table.text_ids, table.text_rows),
        run.about.get("hash", "") or json.dumps(run.about, sort_keys=True),
    )
    return pairs, AuditContext(origin_of(subject.data, data), held_out(0, share), (share or 0.0) > FEW, str(run.folder))


class _TextsOfPairs(Sequence[str]):
    """Texts by pair: those of the rows that the pairs show."""

    def __init__(self, texts: Sequence[str], rows: Rows) -> None:
        self._texts, self._rows = texts, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, pair: Any) -> Any:
        return self._texts[int(self._rows[pair])]


def subject_of(
    target: str | None, embeddings: tuple[str, str] | None, data: DataConfig | None, split: str | None
) -> Subject:
    """What is judged in shards: two arrays, a folder of `mispair embed`, or data seen by a run.

    Args:
        target: a run folder or a folder of `mispair embed`; None with `embeddings`.
        embeddings: two .npy files, row by row.
        data: other data than the run's own, or the table whose rows the embeddings are.
        split: which split a run shall judge.

    Raises:
        InputError: it is none of these, or more than one.
    """
    if embeddings is not None:
        if target is not None or split is not None:
            raise InputError("--embeddings brings the vectors: leave TARGET and --split out")
        return Subject.of_embeddings(*embeddings, data)
    if target is None:
        raise InputError("say what to judge: --embeddings a.npy b.npy, a folder of mispair embed, or a run")
    if RunFolder(Path(target)).begun:
        run = load_run(Path(target))
        own = run.config.data
        if data is not None:
            refuse_other_encoder(own, data)
        return _subject_of_run(run, own if data is None else like_own(own, data), split)
    if is_missing(target):
        raise InputError(f"{does_not_exist(target)}; expected a folder of mispair embed, or a run")
    if not EmbeddedFolder(Path(target)).begun:
        raise InputError(
            f"{target} is no run and no folder of mispair embed, and shards are cut from vectors; embed it first:"
            f" mispair embed {in_shell(target)} --shard 1/4"
        )
    return Subject.of_folder(target)


def _subject_of_run(run: TrainedRun, config: DataConfig, split: str | None) -> Subject:
    """A run and the data it shall judge."""
    config = located(config)
    chosen = split or default_split(config, list_data_splits(config))
    return Subject(data=config, run=os.path.abspath(run.folder), split=chosen)
