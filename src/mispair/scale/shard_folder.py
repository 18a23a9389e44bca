"""The folder that shards meet in: statistics of each, one calibration, verdicts of each; what does not fit is refused.

S/subject.json                          what is judged, so that whoever merges can open it again
 /statistics-00003-of-00007.npz         written by the first pass over shard 3
 /calibration.npz                       of all of them, by `merge`
 /verdicts-00003-of-00007.parquet       written by the second pass
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mispair.atomic import write_atomically
from mispair.data.files.reading import plain_file
from mispair.errors import InputError
from mispair.missing_path import does_not_exist, is_missing
from mispair.scale.calibration import Calibrations, calibrate_counts
from mispair.scale.frame import Frame, Yardstick
from mispair.scale.statistics import PER_PAIR, Statistics, load_statistics, load_with_more, merge, save_statistics
from mispair.shell_word import in_shell

CALIBRATION = "calibration.npz"
_NAME = re.compile(r"(statistics|verdicts)-(\d{5})-of-(\d{5})\.(?:npz|parquet)")
_VERDICTS = pa.schema(
    [
        pa.field("pair", pa.int64(), nullable=False),
        pa.field("p_mismatch", pa.float64(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
        pa.field("caption_above", pa.int32(), nullable=False),
        pa.field("image_above", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True)
class ShardFolder:
    """A folder of shards."""

    path: Path

    @property
    def calibrated(self) -> bool:
        return (self.path / CALIBRATION).exists()

    def statistics(self, shard: int, of: int) -> Path:
        return self.path / f"statistics-{shard:05d}-of-{of:05d}.npz"

    def verdicts(self, shard: int, of: int) -> Path:
        return self.path / f"verdicts-{shard:05d}-of-{of:05d}.parquet"

    def begun(self) -> int | None:
        """How many shards the set was cut into by whoever wrote the first statistics; None: nobody has."""
        if not self.path.is_dir():
            return None
        return next((int(m[3]) for entry in sorted(self.path.iterdir()) if (m := _NAME.fullmatch(entry.name))), None)

    def shards(self, kind: str) -> int:
        """How many shards the set was cut into, once all files of a kind are there.

        Raises InputError where there are none, some are missing, or the set was cut in two ways.
        """
        if is_missing(self.path):
            raise InputError(f"{does_not_exist(self.path)}; expected the folder that --statistics named")
        if not self.path.is_dir():
            raise InputError(f"{self.path} is no folder; expected the one that --statistics named")
        matches = [
            match for entry in self.path.iterdir() if (match := _NAME.fullmatch(entry.name)) and match[1] == kind
        ]
        ways = sorted({int(match[3]) for match in matches})
        if not matches:
            raise InputError(
                f"{self.path} holds no {kind} of shards; write them with: mispair audit ... --shard 1/4 --statistics"
                f" {self.path}"
            )
        if len(ways) > 1:
            raise InputError(
                f"{self.path} holds {kind} of shards out of {' and out of '.join(map(str, ways))}, which overlap;"
                " remove those of one cut"
            )
        missing = sorted(set(range(1, ways[0] + 1)) - {int(match[2]) for match in matches})
        if missing:
            listed = ", ".join(f"{shard}/{ways[0]}" for shard in missing[:5]) + (" ..." if missing[5:] else "")
            raise InputError(f"{self.path}: {kind} of {len(missing)} of {ways[0]} shards are missing: {listed}")
        return ways[0]

    def merge_statistics(self) -> tuple[Statistics, int]:
        """All statistics as one, and how many there were. Raises InputError where they do not make up one set."""
        of = self.shards("statistics")
        parts = [load_statistics(self.statistics(shard, of)) for shard in range(1, of + 1)]
        at = 0
        for shard, part in enumerate(parts, 1):
            path = self.statistics(shard, of)
            if part.key != parts[0].key or part.pairs != parts[0].pairs:
                raise InputError(
                    f"{path} is of other data, or of vectors of another model, than {self.statistics(1, of).name}"
                    " beside it; write both from the same"
                )
            if part.stop > part.start:
                if part.start != at:
                    how = "overlap" if part.start < at else "leave a gap"
                    raise InputError(
                        f"{path} holds rows {part.start:,} to {part.stop - 1:,}, where row {at:,} should begin: the"
                        f" shards {how}; write this one again"
                    )
                at = part.stop
        if at != parts[0].pairs:
            raise InputError(
                f"{self.path}: the shards end at row {at:,} of {parts[0].pairs:,}; write the last one again"
            )
        return merge(parts), of

    def save_calibration(self, whole: Statistics, of: int, frame: Frame) -> None:
        """What the second pass needs: the counts of all, and the grids."""
        summed = replace(whole, start=0, stop=0, **{name: getattr(whole, name)[:0] for name in PER_PAIR})
        save_statistics(summed, self.path / CALIBRATION, grids=[asdict(frame.full), asdict(frame.near)], of=of)

    def load_calibration(self) -> tuple[Calibrations, str, int]:
        """The calibrations, the key of their frame, and how many shards they are of."""
        path = self.path / CALIBRATION
        whole, more = load_with_more(path)
        try:
            full, near = (Yardstick(**grid) for grid in more["grids"])
            if not (full.low < full.high and near.low < near.high and whole.given.any() and whole.repaired.any()):
                raise ValueError(path)
            return calibrate_counts(whole, full, near), whole.key, int(more["of"])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{path} is damaged; remove it and merge again: mispair merge {in_shell(self.path)}"
            ) from None

    def save_verdicts(self, shard: int, of: int, statistics: Statistics, p: NDArray[np.float64]) -> None:
        columns = [np.arange(statistics.start, statistics.stop), p, statistics.score]
        table = pa.table([*columns, statistics.caption_above, statistics.image_above], schema=_VERDICTS)
        key = {b"mispair": statistics.key.encode()}
        write_atomically(
            self.verdicts(shard, of), lambda target: pq.write_table(table.replace_schema_metadata(key), target)
        )

    def load_verdicts(self, key: str, pairs: int) -> pa.Table:
        """The verdicts of all shards, in order. Raises InputError where they do not make up one set."""
        of = self.shards("verdicts")
        tables = []
        for shard in range(1, of + 1):
            path = plain_file(self.verdicts(shard, of), "verdicts of a shard")
            try:
                table = pq.read_table(path)
            except (pa.ArrowException, OSError):
                raise InputError(f"{path} is damaged; judge this shard again") from None
            if (table.schema.metadata or {}).get(b"mispair") != key.encode() or not table.schema.equals(_VERDICTS):
                raise InputError(f"{path} was judged with another calibration; judge this shard again")
            p, score = table["p_mismatch"].to_numpy(), table["score"].to_numpy()
            if not (((p >= 0) & (p <= 1)).all() and np.isfinite(score).all()):
                raise InputError(f"{path} is damaged; judge this shard again")
            tables.append(table)
        whole = pa.concat_tables(tables)
        if whole.num_rows != pairs or not np.array_equal(whole["pair"].to_numpy(), np.arange(pairs)):
            raise InputError(
                f"{self.path}: the verdicts are not one for each of {pairs:,} pairs; judge the shards again"
            )
        return whole
