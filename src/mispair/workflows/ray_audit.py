"""An audit on Ray: read and encode files, measure shards, calibrate, judge shards, propose; finished parts stay.

The functions are those of the shards; Ray only says where they run. Everything meets in one folder that all workers
see. A second call goes on where the first ended: files that are encoded and shards that are measured or judged are not
done again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.runtime.run_folder import RunFolder
from mispair.scale.evidence import BLOCK
from mispair.scale.frame import make_frame
from mispair.scale.rematch import Where
from mispair.scale.rematch_pieces import RematchPieces
from mispair.scale.shard_folder import ShardFolder
from mispair.workflows.embed import Encoding
from mispair.workflows.embed_folder import embed
from mispair.workflows.pair_vectors import Subject, open_vectors, subject_of
from mispair.workflows.ray_engine import Cluster, connected, fetch, map_pieces, refuse_failed
from mispair.workflows.shards import ShardJudge, merge_shards, same_data

_ENDINGS = (".parquet", ".tar")
_PER_WORKER = 8  # shards: a slow worker then holds up the others by little


def is_raw(target: str) -> bool:
    """Whether `target` names files with pictures to encode: Parquet or tar, one, a folder or a pattern, anywhere."""
    if EmbeddedFolder(Path(target)).begun or RunFolder(Path(target)).begun:
        return False
    return bool(list_files(target))


def list_files(target: str) -> list[str]:
    """The Parquet or tar files of a path that fsspec knows (local, s3://, gs://, ...), in order."""
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(target)
        if any(mark in path for mark in "*?["):
            names = system.glob(path)
        elif system.isdir(path):
            names = system.find(path, maxdepth=1)
        else:
            names = [path] if system.exists(path) else []
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{target} cannot be listed: {error}") from None
    named = sorted(str(name) for name in names if str(name).lower().endswith(_ENDINGS))
    return [system.unstrip_protocol(name) for name in named]


def audit_with_ray(
    target: str | None,
    embeddings: tuple[str, str] | None,
    data: DataConfig | None,
    split: str | None,
    folder: Path,
    *,
    encoder: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """Verdicts of all shards, which meet in `folder`; raw pictures are encoded on the cluster first.

    Args:
        target, embeddings, data, split: as `mispair.workflows.pair_vectors.subject_of` has them; or `target` names
            Parquet or tar files with pictures.
        encoder: what encodes raw pictures; basic if not said.
        workers: how many at a time.
        address: host:port of a cluster; by default one of this machine is started.
    """
    with connected(address, workers) as cluster:
        if embeddings is None and target is not None and is_raw(target):
            subject = encode_on_ray(target, encoder or "basic", folder, cluster, tell)
        else:
            subject = subject_of(target, embeddings, data, split)
        return audit_on_ray(subject, folder, cluster, tell)


class EncodeWorker:
    """Encodes files of pairs, each into a folder of its own."""

    def __init__(self, encoder: str, folder: str) -> None:
        self.encoder, self.folder = open_encoder(encoder), Path(folder)

    def work(self, piece: str) -> str:
        number, _, url = piece.partition(" ")
        out = self.folder / f"part-{number}"
        if not out.exists():
            how = Encoding(self.encoder, texts=True, workers=0)
            with tempfile.TemporaryDirectory(prefix="mispair-part-") as scratch, _cache_in(scratch):
                embed(DataConfig(path=_local(url, Path(scratch)), missing="skip"), how, out)
        return str(out)


@contextlib.contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    """A cache of this partition's own: workers of one machine would wait for each other at the shared one."""
    before = os.environ.get("MISPAIR_CACHE")
    os.environ["MISPAIR_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["MISPAIR_CACHE"]
        else:
            os.environ["MISPAIR_CACHE"] = before


def _local(url: str, scratch: Path) -> str:
    """The file itself where it is local, else a copy."""
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    if "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)):
        return str(path)
    copy = scratch / Path(path).name
    system.get_file(path, str(copy))
    return str(copy)


class ShardWorker:
    """Measures or judges shards; `frame` is a reference to what the first process has made."""

    def __init__(self, subject: str, of: int, folder: str, frame: Any) -> None:
        self.judge = ShardJudge(Subject.model_validate_json(subject), of, Path(folder), fetch(frame))

    def work(self, piece: str) -> str:
        return self.judge.judge(int(piece))


class RematchWorker:
    """Does pieces of the search for proposals."""

    def __init__(self, subject: str, folder: str, frame: Any) -> None:
        data = open_vectors(Subject.model_validate_json(subject))
        self.pieces = RematchPieces(data, same_data(data, fetch(frame)), Path(folder))

    def work(self, piece: str) -> str:
        self.pieces.do(piece)
        return piece


def encode_on_ray(target: str, encoder: str, folder: Path, cluster: Cluster, tell: Tell) -> Subject:
    """Encode every file of `target`, a partition each; pictures that fail are left out and listed in its failed.csv."""
    if not open_encoder(encoder).joint:
        raise InputError(
            f"the encoder '{encoder}' has no common space for pictures and texts, so it cannot judge pairs without"
            " training; choose one that has (mispair encoders)"
        )
    files = list_files(target)
    encoded = folder.absolute() / "encoded"
    encoded.mkdir(parents=True, exist_ok=True)
    parts = [encoded / f"part-{number:05d}" for number in range(len(files))]
    todo = [f"{k:05d} {url}" for k, url in enumerate(files) if not parts[k].exists()]
    failed = map_pieces(cluster, EncodeWorker, (encoder, str(encoded)), todo, "encoding files", tell, actors=True)
    refuse_failed(failed, len(files), "files", folder)
    return Subject(data=DataConfig(path=target), parts=tuple(map(str, parts)))


def audit_on_ray(
    subject: Subject, folder: Path, cluster: Cluster, tell: Tell, worker: type[ShardWorker] = ShardWorker
) -> Verdicts:
    """Both passes over all shards and what comes of them; finished shards are in `folder`, as with `--shard`."""
    folder = folder.absolute()
    place = ShardFolder(folder)
    cluster.wake(worker)
    data = open_vectors(subject)
    of = _cut(place, len(data), cluster)
    frame = make_frame(data)
    shared = cluster.share(frame)
    made_of = subject.model_dump_json(), of, str(folder), shared
    for what, path_of in (("measuring shards", place.statistics), ("judging shards", place.verdicts)):
        todo = [str(shard) for shard in range(1, of + 1) if not path_of(shard, of).exists()]
        failed = map_pieces(cluster, worker, made_of, todo, what, tell)
        refuse_failed(failed, of, "shards", folder)
        if not place.calibrated:
            merge_shards(folder, tell, frame=frame)

    def spread(scratch: Path, pieces: list[str], what: str, tell: Tell) -> None:
        failed = map_pieces(cluster, RematchWorker, (made_of[0], str(scratch), shared), pieces, what, tell)
        refuse_failed(failed, len(pieces), "pieces", folder)

    merged = merge_shards(folder, tell, frame=frame, where=Where(spread, folder))
    assert isinstance(merged, Verdicts)
    return merged


def _cut(place: ShardFolder, pairs: int, cluster: Cluster) -> int:
    """How many shards: as begun, else some for each worker, none without a block of pairs."""
    begun = place.begun()
    if begun is not None:
        return begun
    return max(1, min(_PER_WORKER * cluster.workers, pairs // BLOCK))
