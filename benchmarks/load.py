"""How much can one server take? `python -m benchmarks.load [--seconds 60] [--connections 32] [--pairs 200000]`.

A server of its own on loopback, an index of vectors at random, clients that keep their connection and ask for the
neighbours of a random pair. Prints requests per second, p50 and p99, errors, and the server's memory: its own
(anonymous pages) every tenth of the time, and the pages of the index it has looked at, which the system takes back when
it needs them. Exits with 1 on an error, or where its own memory grows after the first third.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from mispair.searching.index import Manifest
from mispair.searching.write import write_index

WIDTH = 256
_LOOKS = 10  # at the server's memory
_SERVER = """
import sys
from pathlib import Path
from mispair.searching.index import Index
from mispair.serving.app import Site, run_server
run_server(Site("load", Index.open(Path(sys.argv[1]))), "127.0.0.1", int(sys.argv[2]), None, print)
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=200_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mispair-load-") as folder:
        _write(Path(folder) / "index", asked.pairs)
        port = _free_port()
        server = subprocess.Popen([sys.executable, "-c", _SERVER, f"{folder}/index", str(port)])
        try:
            return _report(server.pid, port, asked)
        finally:
            server.terminate()
            server.wait(30)


def _write(folder: Path, pairs: int) -> None:
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(500, WIDTH)).astype(np.float32)
    blocks = []
    for start in range(0, pairs, 65_536):
        size = min(65_536, pairs - start)
        block = topics[rng.integers(500, size=size)] + 0.7 * rng.standard_normal((size, WIDTH), np.float32)
        blocks.append(block / np.linalg.norm(block, axis=1, keepdims=True))
    table = pa.table(
        {
            "image": pa.array(np.arange(pairs), pa.int64()),
            "image_path": [f"{k}.jpg" for k in range(pairs)],
            "caption": [f"caption number {k}" for k in range(pairs)],
            "split": ["train"] * pairs,
        }
    )
    kind = "exact" if pairs < 200_000 else "inverted"
    manifest = Manifest(model="none", source="none", data="none", pairs=pairs, width=WIDTH, kind=kind)
    write_index(folder, manifest, {"images": blocks, "texts": blocks}, table, lambda *_: None)


def _report(pid: int, port: int, asked: argparse.Namespace) -> int:
    _wait(port)
    times: list[list[float]] = [[] for _ in range(asked.connections)]
    errors: list[str] = []
    stop = time.monotonic() + asked.seconds
    clients = [
        threading.Thread(target=_client, args=(port, asked.pairs, k, stop, times[k], errors))
        for k in range(asked.connections)
    ]
    for client in clients:
        client.start()
    memory = []
    for _ in range(_LOOKS):
        time.sleep(asked.seconds / (_LOOKS + 1))
        memory.append(_memory(pid))
    for client in clients:
        client.join()
    every = np.sort(np.concatenate([np.array(t) for t in times]))
    print(
        f"{len(every) / asked.seconds:.0f} requests/s over {asked.seconds:.0f} s on {asked.connections} connections, "
        f"{asked.pairs:,} x {WIDTH} vectors; p50 {1e3 * every[len(every) // 2]:.0f} ms, "
        f"p99 {1e3 * every[int(0.99 * len(every))]:.0f} ms; {len(errors)} errors"
    )
    own = [anonymous >> 20 for anonymous, _ in memory]
    print(f"memory of its own in MB, every {asked.seconds / (_LOOKS + 1):.0f} s: {', '.join(map(str, own))}")
    print(f"pages of the index in memory, at the end: {memory[-1][1] >> 20} MB")
    for error in errors[:3]:
        print(error)
    settled = own[len(own) // 3 :]
    return 1 if errors or settled[-1] > 1.05 * settled[0] + 2 else 0


def _client(port: int, pairs: int, seed: int, stop: float, times: list[float], errors: list[str]) -> None:
    rng = np.random.default_rng(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < stop:
        body = json.dumps({"pair": int(rng.integers(pairs)), "k": 10})
        began = time.monotonic()
        try:
            connection.request("POST", "/api/search", body, {"content-type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                errors.append(f"{response.status} {content[:100]!r}")
        except OSError as error:
            errors.append(repr(error))
        times.append(time.monotonic() - began)
    connection.close()


def _wait(port: int) -> None:
    for _ in range(6_000):  # ten minutes: a busy machine starts slowly
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/api/health")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def _memory(pid: int) -> tuple[int, int]:
    """Bytes of memory that is the process's own, and of pages of files it has mapped."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: 1024 * int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
    return sizes["Anonymous"], sizes["Rss"] - sizes["Anonymous"] - sizes.get("Pss_Shmem", 0)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
