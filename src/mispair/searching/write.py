"""Writing an index: vectors block by block into memory-mapped arrays, then the inverted files, the manifest last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.atomic import clear_leftovers, temporary_beside
from mispair.data.files.npy import open_array
from mispair.data.files.npy_blocks import write_blocks
from mispair.errors import InputError
from mispair.progress import Tell
from mispair.searching.index import COLUMNS, EXACT_BELOW, FILES, MANIFEST, METADATA, Manifest, Side
from mispair.searching.inverted import build_inverted, extend_inverted, require_faiss

_BLOCK = 65_536
_GROUP = 1_024  # pairs in a row group of the metadata: a page of answers reads few of them


def write_index(
    folder: Path,
    manifest: Manifest,
    blocks: Mapping[Side, Iterable[NDArray[np.floating[Any]]]],
    metadata: pa.Table,
    tell: Tell,
    arrays: dict[str, NDArray[Any]] | None = None,
) -> None:
    """Write a whole index beside `folder` and put it in place in one step; an index that is there is replaced.

    The inverted files of an index that is there are kept and extended where its vectors are the first of the new ones.

    Args:
        blocks: for each side, blocks of (b, D) unit vectors, N in all, in the order of the pairs.
        metadata: (N,) rows with the columns of `COLUMNS` and any others.
        arrays: further files by name, such as `KEYS`.

    Raises:
        InputError: the disk is full or the place cannot be written; what was there before stays.
    """
    if manifest.kind == "inverted":
        require_faiss()  # before any work
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} holds something else than an index; choose another folder with -o")
    beside, aside = (temporary_beside(folder, ending) for ending in ("part", "tmp"))
    try:
        clear_leftovers(folder.parent, folder.name)
        for side, (vectors, _) in FILES.items():
            _write_vectors(beside / vectors, manifest, blocks[side], side, tell)
        (beside / METADATA).parent.mkdir(parents=True)
        for name, kind in COLUMNS.items():
            assert metadata.schema.field(name).type == kind, name
        pq.write_table(metadata, beside / METADATA, row_group_size=_GROUP)
        if manifest.kind == "inverted":
            for side, (vectors, inverted) in FILES.items():
                stored = np.load(beside / vectors, mmap_mode="r")
                tell_grouping = partial(tell, f"grouping {side}")
                known = _is_prefix(folder / vectors, stored)
                if not known or not extend_inverted(folder / inverted, stored, beside / inverted, tell_grouping):
                    build_inverted(stored, beside / inverted, tell_grouping)
        for name, values in (arrays or {}).items():
            np.save(beside / name, values, allow_pickle=False)
        (beside / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            os.replace(folder, aside)
        os.replace(beside, folder)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}); free some space or choose another -o"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def kind_for(pairs: int) -> Literal["exact", "inverted"]:
    """exact below 200,000 pairs, inverted from there on."""
    return "exact" if pairs < EXACT_BELOW else "inverted"


def _is_prefix(path: Path, vectors: NDArray[Any]) -> bool:
    """Whether the array in `path`, if there is one, is the beginning of `vectors`, to the bit."""
    try:
        before = open_array(path, "vectors of an index")
    except InputError:
        return False
    if before.dtype != vectors.dtype or before.shape[1:] != vectors.shape[1:] or len(before) > len(vectors):
        return False
    blocks = range(0, len(before), _BLOCK)
    return all(np.array_equal(before[k : k + _BLOCK], vectors[k : min(k + _BLOCK, len(before))]) for k in blocks)


def _write_vectors(
    path: Path, manifest: Manifest, blocks: Iterable[NDArray[np.floating[Any]]], side: str, tell: Tell
) -> None:
    def checked() -> Iterator[NDArray[np.floating[Any]]]:
        done = 0
        for block in blocks:
            if not np.isfinite(block).all():
                raise InputError(
                    f"vectors of the {side} hold NaN or infinity from pair {done:,} on; check the features"
                )
            yield block
            done += len(block)
            tell(f"writing {side}", done, manifest.pairs)
        assert done == manifest.pairs, (done, manifest.pairs)

    path.parent.mkdir(parents=True)
    write_blocks(path, (manifest.pairs, manifest.width), "<f2", checked())
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
