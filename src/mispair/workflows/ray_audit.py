"""An audit on Ray: read and encode files, measure shards, calibrate, judge shards, propose; finished parts stay.

The functions are those of the shards; Ray only says where they run. Everything meets in one folder that all workers
see. A second call goes on where the first ended: files that are encoded and shards that are measured or judged are not
done again.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mispair.atomic import write_atomically, write_text
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.ordinary_file import read_ordinary
from mispair.progress import Tell, silent
from mispair.runtime.run_folder import RunFolder
from mispair.scale.evidence import BLOCK
from mispair.scale.frame import make_frame
from mispair.scale.rematch import Where
from mispair.scale.rematch_pieces import RematchPieces
from mispair.scale.shard_folder import ShardFolder
from mispair.spreadsheet import as_cell
from mispair.workflows.embed import Encoding
from mispair.workflows.embed_folder import embed
from mispair.workflows.pair_vectors import Subject, open_vectors, subject_of
from mispair.workflows.ray_engine import Cluster, connected, fetch, map_pieces, refuse_failed, require_ray
from mispair.workflows.shards import ShardJudge, merge_shards, same_data

_ENDINGS = (".parquet", ".tar")
_BEGUN = "begun.json"  # in the folder of partitions: what they are made of
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
    batch: int = 32,
    workers: int | None = None,
    address: str | None = None,
    tell: Tell = silent,
) -> Verdicts:
    """Verdicts of all shards, which meet in `folder`; raw pictures are encoded on the cluster first.

    Args:
        target, embeddings, data, split: as `mispair.workflows.pair_vectors.subject_of` has them; or `target` names
            Parquet or tar files with pictures.
        encoder: what encodes raw pictures; basic if not said.
        batch: pictures encoded at a time.
        workers: how many at a time.
        address: host:port of a cluster; by default one of this machine is started.
    """
    require_ray()
    raw = embeddings is None and target is not None and is_raw(target)
    # What cannot be judged is said before a cluster is started.
    subject = None if raw else subject_of(target, embeddings, data, split)
    if subject is not None and encoder is not None:
        raise InputError(f"the vectors of {target or ' and '.join(embeddings or ())} are there: leave --encoder out")
    if raw and (data is not None or split is not None):
        raise InputError(
            f"{target} brings pictures and captions, and all of them are judged: leave --data and --split out"
        )
    with connected(address, workers) as cluster:
        if subject is None:
            assert target is not None
            subject = encode_on_ray(target, encoder or "basic", folder, cluster, tell, batch)
        return audit_on_ray(subject, folder, cluster, tell)


class EncodeWorker:
    """Encodes files of pairs, each into a folder of its own."""

    def __init__(self, encoder: str, folder: str, batch: int) -> None:
        self.encoder, self.folder, self.batch = open_encoder(encoder), Path(folder), batch

    def work(self, piece: str) -> str:
        number, _, url = piece.partition(" ")
        out = self.folder / f"part-{number}"
        if not out.exists():
            how = Encoding(self.encoder, texts=True, batch=self.batch, workers=0)
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


def encode_on_ray(target: str, encoder: str, folder: Path, cluster: Cluster, tell: Tell, batch: int = 32) -> Subject:
    """Encode every file of `target`, a partition each; pictures that fail are left out and listed in failed.csv.

    Raises InputError where `folder` has begun with other files, or with another encoder.
    """
    opened = open_encoder(encoder)
    if not opened.joint:
        raise InputError(
            f"the encoder '{encoder}' has no common space for pictures and texts, so it cannot judge pairs without"
            " training; choose one that has (mispair encoders)"
        )
    files = list_files(target)
    encoded = folder.absolute() / "encoded"
    encoded.mkdir(parents=True, exist_ok=True)
    _refuse_other_files(encoded, opened.fingerprint, files)
    parts = [encoded / f"part-{number:05d}" for number in range(len(files))]
    todo = [f"{k:05d} {url}" for k, url in enumerate(files) if not parts[k].exists()]
    failed = map_pieces(
        cluster, EncodeWorker, (encoder, str(encoded), batch), todo, "encoding files", tell, actors=True
    )
    refuse_failed(failed, len(files), "files", folder)
    _list_failed(files, parts, EmbeddedFolder(folder).failed_file)
    return Subject(data=DataConfig(path=target), parts=tuple(map(str, parts)))


def _refuse_other_files(encoded: Path, encoder: str, files: list[str]) -> None:
    """Partitions go by the number of their file: those of another list, or another encoder, would be taken for ours."""
    begun = encoded / _BEGUN
    listed = [[url, *_stamp(url)] for url in files]
    if begun.exists():
        try:
            said = json.loads(read_ordinary(begun))
            same_encoder, same_files = said["encoder"] == encoder, said["files"] == listed
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{begun} is damaged; remove {encoded} and give the command again") from None
        if not (same_encoder and same_files):
            other = "other files than there are now" if same_encoder else "vectors by another encoder"
            raise InputError(f"{encoded} holds {other}; choose another folder with --statistics, or remove it")
    elif any(encoded.iterdir()):
        raise InputError(f"{encoded} does not say what it holds vectors of; choose another folder with --statistics")
    else:
        write_text(begun, json.dumps({"encoder": encoder, "files": listed}) + "\n")


def _stamp(url: str) -> list[str]:
    """What changes with the content of a file: its size, and its time or tag where the system has one."""
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    about = system.info(path)
    return [str(about.get(name)) for name in ("size", "mtime", "ETag", "LastModified")]


def _list_failed(files: list[str], parts: list[Path], listed: Path) -> None:
    """The pictures that all partitions do without, in one list; none where there are none."""
    rows = []
    for url, part in zip(files, parts, strict=True):
        one = EmbeddedFolder(part).failed_file
        if one.exists():
            text = read_ordinary(one, most=None).decode("utf-8", "surrogateescape")
            rows += [[*row, as_cell(url)] for row in list(csv.reader(io.StringIO(text, newline="")))[1:]]
    if rows:
        whole = io.StringIO()
        csv.writer(whole, lineterminator="\n").writerows([("row", "name", "reason", "file"), *rows])
        write_atomically(listed, lambda to: to.write_bytes(whole.getvalue().encode("utf-8", "surrogateescape")))


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
