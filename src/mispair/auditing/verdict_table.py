"""The columns of an audit, one row per pair: `audit.parquet`, checked when it is read, and CSV for spreadsheets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from mispair.data.files.reading import plain_file
from mispair.errors import InputError
from mispair.memory import refuse_beyond_memory
from mispair.spreadsheet import FORMULA, QUOTED

SCHEMA = pa.schema(
    [
        pa.field("pair", pa.int64(), nullable=False),  # row of the pair in the data that was judged
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("image_id", pa.string(), nullable=False),
        pa.field("caption", pa.string(), nullable=False),
        pa.field("p_mismatch", pa.float64(), nullable=False),  # probability that the pair does not match
        pa.field("mismatch_score", pa.float64(), nullable=False),  # 1 - p_mismatch: 1 = matches
        pa.field("is_mismatch_issue", pa.bool_(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),  # of the given pair, by the model
        pa.field("caption_rank", pa.int64(), nullable=False),  # of the given caption for its image, 1 = best
        pa.field("image_rank", pa.int64(), nullable=False),  # of the given image for its caption, 1 = best
        pa.field("proposed_caption", pa.string()),
        pa.field("proposed_caption_pair", pa.int64()),  # the pair that holds it
        pa.field("proposed_caption_weight", pa.float64()),  # its share of the image's mass in the transport plan
        pa.field("proposed_caption_gain", pa.float64()),  # its score less the score of the given pair
        pa.field("proposed_image_id", pa.string()),
        pa.field("proposed_image_pair", pa.int64()),
        pa.field("proposed_image_weight", pa.float64()),
        pa.field("proposed_image_gain", pa.float64()),
        pa.field("swap_with", pa.int64()),  # the pair with which exchanging captions mends both
        pa.field("look", pa.int64(), nullable=False),  # order of what is most worth a person's look, 1 first
    ]
)
TRUTH = pa.schema(
    [
        pa.field("truth_mismatched", pa.bool_(), nullable=False),
        pa.field("proposal_true", pa.bool_()),  # null where nothing was proposed, or nothing true was there to propose
    ]
)
_PAIRS = ("proposed_caption_pair", "proposed_image_pair", "swap_with")  # numbers of other pairs
_SHARES = ("p_mismatch", "mismatch_score", "proposed_caption_weight", "proposed_image_weight")
_FINITE = ("score", "proposed_caption_gain", "proposed_image_gain")
_FROM_ONE = ("caption_rank", "image_rank", "look")
_OF_PROPOSALS = {  # there where the pair is, and nowhere else
    f"proposed_{side}_pair": [f"proposed_{side}_{name}" for name in ("weight", "gain")]
    + ["proposed_caption" if side == "caption" else "proposed_image_id"]
    for side in ("caption", "image")
}


def read_table(path: Path, pairs: int) -> pa.Table:
    """The table in `audit.parquet`, `pairs` rows. Raises InputError where a column is missing or out of bounds."""
    plain_file(path, "the table of an audit")
    other = f"{path} is not the table of the audit.json beside it; audit again"
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows != pairs:
                raise InputError(other)
            schema = file.schema_arrow
            known = [*SCHEMA, *(field for field in TRUTH if field.name in schema.names)]
            if any(field.name not in schema.names or schema.field(field.name).type != field.type for field in known):
                raise InputError(other)
            refuse_beyond_memory(8 * pairs * len(known), f"{path} with {pairs:,} pairs", "it is not one of ours")
            table = file.read([field.name for field in known])
            table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged; run the audit again") from None
    wrong = _out_of_bounds(table, known, pairs)
    if wrong is not None:
        raise InputError(f"{path} is damaged: column {wrong!r} holds what no audit writes; run the audit again")
    return table


def _out_of_bounds(table: pa.Table, known: list[pa.Field], pairs: int) -> str | None:
    """The first column that holds a null, a number out of range or no number; None where all is well."""
    for field in known:
        if not field.nullable and table[field.name].null_count:
            return str(field.name)
    if not table["pair"].combine_chunks().equals(pa.array(range(pairs), pa.int64())):
        return "pair"
    for names, low, high in (
        (_PAIRS, 0, pairs - 1),
        (_SHARES, 0.0, 1.0),
        (_FROM_ONE, 1, 1 << 62),
        (_FINITE, -1e300, 1e300),
    ):
        for name in names:
            inside = pc.and_(pc.greater_equal(table[name], low), pc.less_equal(table[name], high))
            if pc.any(pc.invert(inside)).as_py():  # NaN is inside nothing
                return name
    if not np.array_equal(np.sort(table["look"].to_numpy()), np.arange(1, pairs + 1)):
        return "look"
    for pair, others in _OF_PROPOSALS.items():
        there = table[pair].is_valid()
        for name in others:
            if not table[name].is_valid().equals(there):
                return name
    return None


def write_csv(table: pa.Table, path: Path) -> None:
    """Rows of an audit as CSV; a text that a spreadsheet would run gets an apostrophe, which `read_csv` takes away."""
    pyarrow.csv.write_csv(_replaced(table, FORMULA, r"'\1"), path)


def read_csv(path: Path) -> pa.Table:
    """Rows that `write_csv` wrote, the texts as they were."""
    types = {field.name: field.type for field in (*SCHEMA, *TRUTH)}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    plain_file(path, "rows of an audit")
    try:
        table = pyarrow.csv.read_csv(
            path, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True), convert_options=options
        )
    except (pa.ArrowException, OSError):
        raise InputError(f"{path} is no table of an audit; write it again") from None
    return _replaced(table, QUOTED, r"\1")


def _replaced(table: pa.Table, pattern: str, replacement: str) -> pa.Table:
    for k, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(k, field, pc.replace_substring_regex(table[k], pattern, replacement))
    return table
