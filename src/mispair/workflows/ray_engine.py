"""Ray as the engine: a cluster to run on, and pieces of work mapped over it by Ray Data, an actor per worker.

A lost worker costs the pieces it was at: Ray starts another and gives them to it. A piece that fails says why and
leaves the others alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from mispair.errors import InputError
from mispair.progress import Tell

_PATIENCE = 3.0  # seconds for an address to answer


class Worker(Protocol):
    """One piece of work after the other, made once per worker from what `map_pieces` is given."""

    def work(self, piece: str) -> str:
        """Do it; what it says is handed back. InputError: this piece failed."""


@dataclass(frozen=True)
class Cluster:
    """What there is to run on."""

    ray: Any
    workers: int

    def share(self, value: Any) -> Any:
        """A reference by which workers have `value`, see `fetch`; it travels to each machine once."""
        return self.ray.put(value)

    def wake(self, worker: type[Worker]) -> None:
        """Let as many processes import what `worker` needs as will be at work, and do not wait for them."""
        task = self.ray.remote(num_cpus=1)(_import)
        for _ in range(self.workers):
            task.remote(worker)


def fetch(reference: Any) -> Any:
    """In a worker: what `Cluster.share` was given."""
    import ray

    return ray.get(reference)


def _import(worker: type[Worker]) -> None:
    """In a process of the cluster: that the class arrived is enough."""


def require_ray() -> Any:
    """The ray module, or a sentence how to get it. It reports to nobody."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # a cluster of ours is there for this work, not beside it
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("--engine ray needs Ray; install it with: pip install 'mispair[ray]'") from None
    # What it says of itself goes to its log: that a pipeline has ended is no news to whoever sees the progress.
    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setLevel(logging.ERROR)
    return ray


@contextlib.contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[Cluster]:
    """A cluster: the one at `address`, else one of this machine that ends with the block; one that runs is used.

    Raises InputError where ray is not installed or nobody answers at the address.
    """
    ray = require_ray()
    if ray.is_initialized():
        yield Cluster(ray, workers or _cpus(ray))
        return
    if address is not None:
        _refuse_silent(address)
    where = {"include_dashboard": False, "num_cpus": workers} if address is None else {"address": address}
    try:
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # noqa: BLE001 it has many ways to fail, a plain Exception among them
        ray.shutdown()
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"Ray cannot be started or reached: {said}") from None
    try:
        yield Cluster(ray, workers or _cpus(ray))
    finally:
        ray.shutdown()


def map_pieces(
    cluster: Cluster,
    worker: type[Worker],
    made_of: tuple[Any, ...],
    pieces: Sequence[str],
    what: str,
    tell: Tell,
    *,
    actors: bool = False,
) -> list[tuple[str, str]]:
    """Every piece through a worker made of `made_of`; those that failed, with the reason. Progress counts pieces.

    `actors`: an actor for each worker, for what is dear to make, such as an encoder; where the cluster has GPUs, each
    has one of them to itself. Else tasks: their processes live on, and what one has made serves the next pass too.
    """
    if not pieces:
        return []
    data = cluster.ray.data
    data.DataContext.get_current().enable_progress_bars = False
    count = max(1, min(cluster.workers, len(pieces)))
    given = data.from_items([{"piece": piece} for piece in pieces], override_num_blocks=len(pieces))
    if actors:
        gpus = int(cluster.ray.cluster_resources().get("GPU", 0))
        pool = data.ActorPoolStrategy(size=min(count, gpus) if gpus else count)
        needs = {"num_gpus": 1} if gpus else {"num_cpus": 1}  # Ray adds a core to a GPU
        done = given.map(_Actor, fn_constructor_args=(worker, made_of), compute=pool, **needs)
    else:
        done = given.map(_do_piece, fn_args=(worker, made_of), compute=data.TaskPoolStrategy(size=count), num_cpus=1)
    failed = []
    for k, row in enumerate(done.iter_rows(), 1):
        if row["failed"]:
            failed.append((row["piece"], row["said"]))
        tell(what, k, len(pieces))
    return failed


@lru_cache(maxsize=1)
def _made(worker: type[Worker], made_of: tuple[Any, ...]) -> Worker:
    """The worker of this process, made once: opening data and models costs more than a piece."""
    return worker(*made_of)


def _do_piece(row: dict[str, Any], worker: type[Worker], made_of: tuple[Any, ...]) -> dict[str, Any]:
    """In a process of the cluster: one piece of work, and what it said. A worker that cannot be made fails its pieces,
    not the cluster."""
    piece = str(row["piece"])
    try:
        return {"piece": piece, "failed": False, "said": _made(worker, made_of).work(piece)}
    except (InputError, OSError) as error:
        return {"piece": piece, "failed": True, "said": str(error)}


class _Actor:
    """`_do_piece` as a callable that Ray Data keeps alive between pieces."""

    def __init__(self, worker: type[Worker], made_of: tuple[Any, ...]) -> None:
        self._what = worker, made_of

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return _do_piece(row, *self._what)


def refuse_failed(failed: list[tuple[str, str]], total: int, what: str, folder: Path) -> None:
    """Raise InputError where pieces failed: how many, the first with its reason; all are listed in the folder."""
    listed = folder / "failed.txt"
    if not failed:
        listed.unlink(missing_ok=True)  # what failed before has been done by now
    else:
        from mispair.atomic import write_text

        write_text(listed, "".join(f"{piece}\t{reason}\n" for piece, reason in failed))
        raise InputError(
            f"{len(failed)} of {total} {what} failed, the first, {failed[0][0]}: {failed[0][1]}; all are listed in"
            f" {listed}, and the same command goes on with them"
        )


def _cpus(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _refuse_silent(address: str) -> None:
    """An address nobody answers at would be tried for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"--address is host:port of a Ray cluster, got {address!r}")
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"nobody answers at {address} ({getattr(error, 'strerror', None) or error}); start the cluster there (ray"
            " start --head), or leave --address out"
        ) from None
