"""A real Ray runs the shards: the same answer, a lost worker costs its own, finished parts are not done again."""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mispair.cli.options.encoding import tell_failed
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.encoders import registry
from mispair.errors import InputError
from mispair.progress import silent
from mispair.scale import rematch, shortlists
from mispair.scale.frame import draw_landmarks, make_frame
from mispair.scale.judge_many import AuditContext, judge_many
from mispair.workflows import ray_audit
from mispair.workflows.pair_vectors import Subject, open_vectors
from mispair.workflows.ray_audit import audit_on_ray, encode_on_ray, is_raw, list_files
from mispair.workflows.ray_engine import Cluster, connected, map_pieces
from mispair.workflows.shards import ShardJudge
from tests.colours import NAMES, colour_encoder, colour_picture
from tests.data.picture_samples import write_tar
from tests.data.samples import run
from tests.scale.many import vectors, write_arrays
from tests.scale.ray_workers import LostOnce, Noting

# Ray's own, about itself: its choice of defaults, and files it leaves to the collector.
pytestmark = [
    pytest.mark.timeout(1200),  # a cluster starts in ten seconds, and in minutes where others keep the machine busy
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def small_pieces(monkeypatch):
    """An index, several blocks and several pieces of each step, for few pairs too: the first process decides."""
    for module, name, value in (
        (shortlists, "FEW", 300), (shortlists, "_GROUP", 20), (rematch, "ROWS", 128), (rematch, "PIECE", 301),
        (rematch, "BLOCKS", 3),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("small_pieces")
def test_a_lost_worker_costs_its_own_shards_and_the_answer_is_that_of_one_process(cluster, tmp_path):
    files, _, _ = write_arrays(tmp_path, 3000)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    told = []
    found = audit_on_ray(subject, tmp_path / "s", cluster, lambda *said: told.append(said), LostOnce)
    assert (tmp_path / "lost").exists()
    known = judge_many(open_vectors(subject), AuditContext({}))
    assert found.facts.rate == known.facts.rate
    assert found.table.equals(known.table), "proposals too, to the bit"
    assert (found.column("proposed_caption_pair") >= 0).sum() > 500
    pieces = {what: total for what, _, total in told}
    assert {"measuring shards", "judging shards"} < set(pieces)
    assert min(pieces[what] for what in ("shortlisting partners", "rematching", "judging proposals")) > 1
    assert not list((tmp_path / "s").glob("mispair-rematch-*"))
    begun = Counter((tmp_path / "log.txt").read_text().split())
    assert set(begun) == {str(k) for k in range(1, 6)}, "five blocks, five shards"
    assert sum(begun.values()) <= 2 * 5 + 2, "what others had done was not done again"
    assert len(list((tmp_path / "s").glob("verdicts-*-of-00005.parquet"))) == 5
    (tmp_path / "s" / "verdicts-00002-of-00005.parquet").unlink()
    (tmp_path / "log.txt").unlink()
    again = audit_on_ray(subject, tmp_path / "s", cluster, silent, Noting)
    assert (tmp_path / "log.txt").read_text().split() == ["2"]
    assert again.table.equals(found.table)


def test_shards_that_fail_are_counted_and_listed(cluster, tmp_path):
    files, _, _ = write_arrays(tmp_path, 4500)
    values = np.load(files[1])
    bad = int(np.setdiff1d(np.arange(4500), draw_landmarks(4500))[200])
    values[bad] = np.nan
    np.save(files[1], values)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    with pytest.raises(InputError, match=rf"1 of 8 shards failed.*row {bad} holds NaN"):
        audit_on_ray(subject, tmp_path / "s", cluster, silent)
    assert len((tmp_path / "s" / "failed.txt").read_text().splitlines()) == 1
    assert len(list((tmp_path / "s").glob("statistics-*"))) == 7


def test_a_worker_that_sees_other_data_refuses(tmp_path):
    data, (files, _, _) = vectors(3000, seed=1)[0], write_arrays(tmp_path, 3000)
    subject = Subject.of_embeddings(str(files[0]), str(files[1]), None)
    ShardJudge(subject, 1, tmp_path / "s", make_frame(open_vectors(subject)))
    with pytest.raises(InputError, match="sees other data under the same name"):
        ShardJudge(subject, 1, tmp_path / "s", make_frame(data))


def test_pictures_in_parquet_and_tar_files_are_encoded_there(cluster, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    pictures = [colour_picture(NAMES[k % 8], k) for k in range(36)]
    pictures[5] = b"no picture"
    captions = [f"a {NAMES[k % 8]} square" for k in range(36)]
    table = {"image": pictures[:18], "caption": captions[:18], "key": [f"k{k}" for k in range(18)]}
    pq.write_table(pa.table(table), folder / "a.parquet")
    samples = {f"k{k}": (pictures[k], captions[k]) for k in range(18, 36)}
    write_tar(folder / "b.tar", {
        name: content for key, (picture, text) in samples.items()
        for name, content in ((f"{key}.png", picture), (f"{key}.txt", text.encode()))
    })  # fmt: skip
    assert is_raw(str(folder))
    assert [name.rsplit("/", 1)[1] for name in list_files(f"file://{folder}")] == ["a.parquet", "b.tar"]
    subject = encode_on_ray(str(folder), "basic", tmp_path / "s", cluster, silent)
    data = open_vectors(subject)
    assert len(data) == 35
    assert list(data.captions) == captions[:5] + captions[6:]
    assert "k5" in (tmp_path / "s/encoded/part-00000/failed.csv").read_text()
    before = (tmp_path / "s/encoded/part-00001/features.npy").stat().st_mtime_ns
    again = encode_on_ray(str(folder), "basic", tmp_path / "s", cluster, silent)
    assert again == subject
    assert (tmp_path / "s/encoded/part-00001/features.npy").stat().st_mtime_ns == before
    found = audit_on_ray(subject, tmp_path / "s", cluster, silent)
    assert len(found) == 35
    assert found[4].caption == captions[4]


def test_without_ray_a_sentence_names_the_extra(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    files, _, _ = write_arrays(tmp_path, 50)
    ran = run(monkeypatch, capsys, "audit", "--embeddings", *files, "--engine", "ray", "-o", tmp_path / "audit")
    assert ran.code == 2
    assert "pip install 'mispair[ray]'" in ran.err
    assert not (tmp_path / "audit").exists()


def test_an_address_that_does_not_answer_costs_seconds_and_a_sentence(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    started = time.monotonic()
    for address, sentence in (("127.0.0.1:1", "nobody answers at 127.0.0.1:1"), ("here", "--address is host:port")):
        with pytest.raises(InputError, match=sentence), connected(address, None):
            pass
    assert time.monotonic() - started < 30


def test_options_that_do_not_fit(monkeypatch, capsys, tmp_path):
    files, _, _ = write_arrays(tmp_path, 50)
    ray = "--engine", "ray"
    for options, sentence in (
        (("--engine", "spark"), "--engine is ray"), (("--address", "x:1"), "add --engine ray"),
        ((*ray, "--shard", "1/2"), "leave --shard, --cells"), ((*ray, "--cells"), "leave --shard, --cells"),
        ((*ray, "--encoder", "basic"), "are there: leave --encoder out"),
    ):  # fmt: skip
        ran = run(monkeypatch, capsys, "audit", "--embeddings", *files, *options, "-o", tmp_path / "audit")
        assert ran.code == 2
        assert sentence in ran.err, ran.err


@pytest.fixture
def here(monkeypatch):
    """Pieces of encoding are done in this process: what is tested is what comes before and after them."""

    def do(cluster, worker, made_of, pieces, what, tell, *, actors=False):
        return [(piece, "") for piece in pieces if not worker(*made_of).work(piece)]

    monkeypatch.setattr(ray_audit, "map_pieces", do)


def write_parquet(path, first, count=18):
    pictures = [colour_picture(NAMES[k % 8], first + k) for k in range(count)]
    captions = [f"a {NAMES[k % 8]} square" for k in range(count)]
    keys = [f"k{first + k}" for k in range(count)]
    pq.write_table(pa.table({"image": pictures, "caption": captions, "key": keys}), path)


@pytest.mark.usefixtures("here")
def test_files_of_other_data_or_for_another_encoder_do_not_join_those_that_are_encoded(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    folder, place = tmp_path / "shards", tmp_path / "s"
    folder.mkdir()
    for name, first in (("b", 0), ("c", 20)):
        write_parquet(folder / f"{name}.parquet", first)
    encode_on_ray(str(folder), "colours", place, None, silent)
    known = {path: path.stat().st_mtime_ns for path in (place / "encoded").rglob("*")}
    with pytest.raises(InputError, match="by another encoder"):
        encode_on_ray(str(folder), "basic", place, None, silent)
    write_parquet(folder / "a.parquet", 40)  # the first now: every file has another number than before
    with pytest.raises(InputError, match="other files"):
        encode_on_ray(str(folder), "colours", place, None, silent)
    (folder / "a.parquet").unlink()
    write_parquet(folder / "c.parquet", 60)
    with pytest.raises(InputError, match="other files"):
        encode_on_ray(str(folder), "colours", place, None, silent)
    assert {path: path.stat().st_mtime_ns for path in (place / "encoded").rglob("*")} == known
    (place / "encoded" / "begun.json").write_text("[]")
    with pytest.raises(InputError, match=r"begun\.json is damaged"):
        encode_on_ray(str(folder), "colours", place, None, silent)


@pytest.mark.usefixtures("here")
def test_pictures_that_failed_in_any_file_are_counted_and_listed_together(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(registry._REGISTERED, "colours", colour_encoder)
    folder, place = tmp_path / "shards", tmp_path / "s"
    folder.mkdir()
    for name, first, bad in (("a", 0, 3), ("b", 20, 5), ("c", 40, None)):
        write_parquet(folder / f"{name}.parquet", first)
        if bad is not None:
            table = pq.read_table(folder / f"{name}.parquet").to_pydict()
            table["image"][bad] = b"no picture"
            pq.write_table(pa.table(table), folder / f"{name}.parquet")
    encode_on_ray(str(folder), "colours", place, None, silent)
    tell_failed(str(EmbeddedFolder(place).features_file), tmp_path)
    assert "2 pictures that cannot be used are listed with the reason in" in capsys.readouterr().err
    with (tmp_path / "failed.csv").open(newline="") as listed:
        rows = list(csv.DictReader(listed))
    assert ["k3" in rows[0]["name"], "k25" in rows[1]["name"]] == [True, True]
    assert [row["file"].rpartition("/")[2] for row in rows] == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(("gpus", "asked", "count"), [(0, {"num_cpus": 1}, 4), (2, {"num_gpus": 1}, 2)])
def test_an_encoder_has_a_device_to_itself_where_there_are_some(gpus, asked, count):
    seen = {}

    class Data:
        DataContext = SimpleNamespace(get_current=SimpleNamespace)
        ActorPoolStrategy = staticmethod(lambda size: size)

        def from_items(self, items, override_num_blocks):
            return self

        def map(self, work, **options):
            seen.update(options)
            return SimpleNamespace(iter_rows=list)

    ray = SimpleNamespace(data=Data(), cluster_resources=lambda: {"CPU": 4.0, "GPU": float(gpus)})
    map_pieces(Cluster(ray, 4), Noting, (), [str(k) for k in range(9)], "encoding", silent, actors=True)
    assert {name: seen[name] for name in ("num_cpus", "num_gpus") if name in seen} == asked
    assert seen["compute"] == count
