"""`mispair embed`: a data set of pictures as a folder of features that every verb reads (`EmbeddedFolder`)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mispair.atomic import make_atomically, write_text
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.readers.dispatch import list_data_splits, open_pairing
from mispair.data.source import Source
from mispair.encoders.registry import open_encoder
from mispair.progress import Tell, silent
from mispair.workflows.embed import EncodedData, Encoding, encode_data
from mispair.workflows.embed_shards import POSITION, write_shard


def embed(
    config: DataConfig, encoding: Encoding, out: Path, tell: Tell = silent, shard: tuple[int, int] | None = None
) -> EncodedData:
    """Encode a data set into the new folder `out`; it is there whole or not at all, and the cache keeps what was done.

    `shard`: (i, n) for the i-th of n shares of it; `mispair.workflows.embed_shards.merge_embedded` makes one of all.

    Returns:
        What was encoded; its `config` is that of the new folder.

    Raises:
        InputError: `out` exists, or as `mispair.workflows.embed.encode_data` does.
    """
    with make_atomically(out) as hidden:
        folder = hidden / "features"
        folder.mkdir()
        files = EmbeddedFolder(folder)
        texts = bool(open_encoder(encoding.encoder, device=encoding.device).texts)
        captions = open_pairing(config, "all").captions is not None
        asked = replace(encoding, texts=texts and captions)
        encoded = encode_data(config, asked, tell, folder, shard)
        _write_table(config, encoded.kept, files.table_file, shard is not None)
        if shard is not None:
            write_shard(folder, shard, open_pairing(config, "all"))
        write_text(files.about_file, json.dumps(_about(config, asked, encoded), indent=2) + "\n")
        os.rename(folder, out)
    return replace(encoded, config=DataConfig(path=str(out), missing=config.missing, sides=config.sides))


def _write_table(config: DataConfig, source: Source, path: Path, placed: bool) -> None:
    """Every pair of the source with its split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = np.array(list(source.image_ids or ()), object)
    columns: dict[str, Any] = {"image_id": ids[source.image_of_text].tolist()}
    if source.captions is not None:
        columns["caption"] = list(source.captions)
    splits = _splits(config, source)
    if splits is not None:
        columns["split"] = splits
    if source.text_ids is not None:
        columns["pair_id"] = list(source.text_ids)
    if placed:
        columns[POSITION] = source.positions
    pq.write_table(pa.table(columns), path)


def _splits(config: DataConfig, source: Source) -> list[str] | None:
    """The split of each pair, by its place among all; None where the data has none."""
    names = list_data_splits(config)
    if names == ["all"]:
        return None
    split_of: dict[int, str] = {}
    for name in names:
        part = open_pairing(config, name)
        assert part.positions is not None
        split_of |= dict.fromkeys(part.positions.tolist(), name)
    assert source.positions is not None
    return [split_of[place] for place in source.positions.tolist()]


def _about(config: DataConfig, encoding: Encoding, encoded: EncodedData) -> dict[str, Any]:
    return {
        "encoder": encoded.encoder.name,
        "fingerprint": encoded.encoder.fingerprint,
        "output": "cells" if encoding.cells else "vector",
        "texts": encoding.texts,
        "data": os.path.abspath(config.path),
        "images": None if config.images is None else os.path.abspath(config.images),
        "pictures": len(encoded.source.pictures or ()) + len(encoded.source.no_picture),
        "failed": len(encoded.failures),
    }
