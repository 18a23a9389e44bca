"""`mispair audit` in shards: one of them in this process, or all of them on a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.cli.options.encoding import EncodeBothOptions, tell_failed
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.auditing.verdicts import Verdicts
    from mispair.data.config import DataConfig


@dataclass(frozen=True)
class ShardedAudit:
    """What is judged in shards, and how it is cut."""

    target: str | None
    embeddings: tuple[Path, Path] | None
    data: DataConfig | None
    split: str | None
    shard: str | None
    statistics: Path | None
    encode: EncodeBothOptions

    @property
    def vectors(self) -> tuple[str, str] | None:
        return None if self.embeddings is None else (str(self.embeddings[0]), str(self.embeddings[1]))

    def judge_one(self, as_json: bool) -> str:
        """One pass over one shard of vectors that are there; a sentence that says what was done."""
        from mispair.cli.progress import ProgressLine
        from mispair.workflows.pair_vectors import subject_of
        from mispair.workflows.shards import judge_shard, parse_shard

        if self.encode.asked or self.encode.workers is not None or as_json:
            raise InputError(
                "a shard is measured from vectors that are there, and says so in a sentence: leave --encoder, --cells,"
                " --texts, --workers and --json out"
            )
        if self.shard is None or self.statistics is None:
            raise InputError("a shard needs both options: --shard 3/7 --statistics FOLDER")
        cut = parse_shard(self.shard)
        with ProgressLine() as progress:
            subject = subject_of(self.target, self.vectors, self.data, self.split)
            return judge_shard(subject, cut, self.statistics, progress)

    def judge_on_cluster(self, engine: str, address: str | None, out: Path) -> Verdicts:
        """All shards, saved in `out`; raw pictures are encoded on the cluster first."""
        from mispair.cli.progress import ProgressLine
        from mispair.data.embedded_folder import EmbeddedFolder
        from mispair.workflows.ray_audit import audit_with_ray

        if self.shard is not None or self.encode.cells or self.encode.texts:
            raise InputError(
                "--engine ray cuts the shards itself and compares vectors: leave --shard, --cells and --texts out"
            )
        if engine != "ray":
            raise InputError(f"--engine is ray, got {engine!r}")
        place = self.statistics or out / "shards"
        with ProgressLine() as progress:
            verdicts = audit_with_ray(
                self.target, self.vectors, self.data, self.split, place, encoder=self.encode.encoder,
                batch=self.encode.batch, workers=self.encode.workers, address=address, tell=progress,
            )  # fmt: skip
        verdicts.save(out)
        tell_failed(str(EmbeddedFolder(place).features_file), out)
        return verdicts
