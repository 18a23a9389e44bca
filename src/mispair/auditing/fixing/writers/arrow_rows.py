"""Rows of Parquet and Arrow files: some leave, some show another caption, a column of weights is added.

A row group or record batch at a time, so pictures in the rows are copied, never gathered. Schema, its metadata and the
compression stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mispair.data.files.picture_column import arrow_batches

Decide = Callable[[int, dict[str, Any]], dict[str, Any] | None]  # row number and values: the new ones, None: it leaves
WEIGHT = "weight"
_MOST = 256 << 20  # bytes of a row group that are held at a time


def rewrite_parquet(path: Path, touched: list[str], decide: Decide, out: Path, weighted: bool = False) -> None:
    """Write the Parquet file `path` to `out`, its rows as `decide` says; it is shown the columns `touched`."""
    with pq.ParquetFile(path) as file:
        meta = file.metadata
        compression = {
            meta.row_group(0).column(k).path_in_schema: meta.row_group(0).column(k).compression
            for k in range(meta.num_columns if meta.num_row_groups else 0)
        }
        known = {name: kind for name, kind in compression.items() if kind != "UNCOMPRESSED"}
        schema = _with_weight(file.schema_arrow, weighted, _several(file, touched))
        with pq.ParquetWriter(out, schema, compression=known or "NONE") as writer:
            first = 0
            for part in _parts(file):
                made = _edited(part, first, touched, decide, schema)
                first += part.num_rows
                if made.num_rows:
                    writer.write_table(made)


def rewrite_arrow(path: Path, touched: list[str], decide: Decide, out: Path, weighted: bool = False) -> int:
    """The same for an Arrow file or stream; how many rows it has then."""
    batches = arrow_batches(path)
    with pa.memory_map(str(path), "r") as source:
        file = source.read(6) == b"ARROW1"
    if not batches:
        out.write_bytes(path.read_bytes())
        return 0
    lists = bool(touched) and any(pa.types.is_list(batches[0].schema.field(name).type) for name in touched)
    schema = _with_weight(batches[0].schema, weighted, lists)
    first = rows = 0
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with pa.OSFile(str(out), "wb") as sink, new(sink, schema) as writer:
        for batch in batches:
            made = _edited(pa.Table.from_batches([batch]), first, touched, decide, schema)
            first += batch.num_rows
            rows += made.num_rows
            writer.write_table(made)
    return rows


def _parts(file: pq.ParquetFile) -> Iterator[pa.Table]:
    for group in range(file.metadata.num_row_groups):
        about = file.metadata.row_group(group)
        if about.total_byte_size <= _MOST:
            yield file.read_row_group(group)
            continue
        rows = max(1, about.num_rows * _MOST // about.total_byte_size)
        for batch in file.iter_batches(batch_size=rows, row_groups=[group]):
            yield pa.Table.from_batches([batch])


def _edited(table: pa.Table, first: int, touched: list[str], decide: Decide, schema: pa.Schema) -> pa.Table:
    kept: list[int] = []
    rows: list[dict[str, Any]] = []
    for row, before in enumerate(table.select(touched).to_pylist()):
        after = decide(first + row, before)
        if after is not None:
            kept.append(row)
            rows.append(after)
    result = table if len(kept) == table.num_rows else table.take(pa.array(kept, pa.int64()))
    for name in touched:
        kind = schema.field(name)
        at = result.schema.get_field_index(name)
        result = result.set_column(at, kind, pa.array([row[name] for row in rows], kind.type))
    if WEIGHT in schema.names and WEIGHT not in table.schema.names:
        result = result.append_column(
            schema.field(WEIGHT), pa.array([row[WEIGHT] for row in rows], schema.field(WEIGHT).type)
        )
    return result.cast(schema)


def _several(file: pq.ParquetFile, touched: list[str]) -> bool:
    kinds = [file.schema_arrow.field(name).type for name in touched]
    return any(pa.types.is_list(kind) or pa.types.is_large_list(kind) for kind in kinds)


def _with_weight(schema: pa.Schema, weighted: bool, several: bool) -> pa.Schema:
    """The schema with a column of weights; what Hugging Face writes about its columns says so too."""
    if not weighted:
        return schema
    kind = pa.list_(pa.float64()) if several else pa.float64()
    extended = schema.append(pa.field(WEIGHT, kind))
    features = (schema.metadata or {}).get(b"huggingface")
    if features is None:
        return extended
    try:
        about = json.loads(features)
        about["info"]["features"][WEIGHT] = weight_feature(several)
    except (ValueError, RecursionError, KeyError, TypeError):
        return extended  # not what Hugging Face writes: left as it is
    return extended.with_metadata({**schema.metadata, b"huggingface": json.dumps(about).encode()})


def weight_feature(several: bool) -> dict[str, Any]:
    """How Hugging Face describes the column of weights."""
    one = {"dtype": "float64", "_type": "Value"}
    return {"feature": one, "_type": "Sequence"} if several else one
