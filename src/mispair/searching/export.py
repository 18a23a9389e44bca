"""An index as one Parquet file, as vector databases import it: one row per pair, vectors as lists of fixed length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mispair.atomic import write_atomically
from mispair.errors import InputError
from mispair.searching.index import Index, Side
from mispair.searching.nearest import release_pages

_BLOCK = 16_384
VECTORS: dict[Side, str] = {"images": "image_vector", "texts": "text_vector"}


def export_parquet(index: Index, path: Path) -> int:
    """Write an index to `path`, block by block; how many pairs.

    The columns: id, those of the metadata, image_vector and text_vector (float32 lists of the index's width).

    Raises:
        InputError: a name that does not end in .parquet, or a place that cannot be written.
    """
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{path}: an index is exported as .parquet")
    width = index.manifest.width
    lists = pa.list_(pa.float32(), width)
    metadata = index.metadata.schema
    schema = pa.schema([("id", pa.int64()), *metadata, *((name, lists) for name in VECTORS.values())])

    def write(target: Path) -> None:
        with pq.ParquetWriter(target, schema) as writer:
            for start in range(0, len(index), _BLOCK):
                stop = min(start + _BLOCK, len(index))
                known = index.metadata.part(start, stop)
                columns = {"id": pa.array(np.arange(start, stop))}
                columns |= {name: known[name] for name in metadata.names}
                for side, name in VECTORS.items():
                    block = np.asarray(index.vectors[side][start:stop], np.float32)
                    columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), width)
                    release_pages(index.vectors[side])
                writer.write_table(pa.table(columns, schema=schema))

    write_atomically(path, write)
    return len(index)
