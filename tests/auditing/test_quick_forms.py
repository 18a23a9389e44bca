"""quick_audit takes every form of embeddings: arrays, tensors, columns, maps, files; and says what is none."""

from __future__ import annotations

import importlib

import numpy as np
import pyarrow as pa
import pytest
import torch

import mispair
from mispair.auditing import embeddings
from mispair.auditing.quick import quick_audit_files
from mispair.data import DataConfig
from mispair.errors import InputError
from tests.auditing.planted import planted


class Frame(dict):
    """As much of a frame as is asked for."""

    @property
    def columns(self):
        return list(self)


class Query:
    """As much of a lazy frame as is asked for."""

    columns = ("caption",)

    def collect(self):
        raise AssertionError("nobody asked for it to run")


def forms(a, b):
    """The same embeddings in every form people have them."""
    objects = np.empty(len(a), object)
    objects[:] = list(a)
    yield "lists", a.tolist(), b.tolist(), {}
    yield "a list of arrays", list(a), list(b), {}
    yield "a list of tensors", list(torch.from_numpy(a)), list(torch.from_numpy(b)), {}
    yield "objects", objects, b, {}
    yield "half", torch.from_numpy(a).half(), torch.from_numpy(b).requires_grad_(), {}
    yield "names", "img", "txt", {"table": Frame(img=objects, txt=list(b))}
    table = pa.table({"img": pa.array(a.tolist()), "txt": pa.array(b.tolist())})
    yield "pyarrow", "img", "txt", {"table": table}
    for library in ("pandas", "polars", "datasets"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        if library == "datasets":
            made = module.Dataset(module.table.InMemoryTable(table), fingerprint="x")
        else:
            made = module.DataFrame({"img": a.tolist(), "txt": b.tolist()})
        yield library, "img", "txt", {"table": made}
        yield f"{library}: columns", made["img"], made["txt"], {}


def test_every_form_of_embeddings_is_taken():
    a, b, *_ = planted(pairs=101)
    expected = mispair.quick_audit(a, b).p_mismatch
    for name, first, second, more in forms(a, b):
        assert np.allclose(mispair.quick_audit(first, second, **more).p_mismatch, expected, atol=0.02), name


def test_a_memory_map_is_read_in_blocks(tmp_path, monkeypatch):
    a, b, *_ = planted(pairs=1009)
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    taken = []

    class Watched(np.memmap):
        def __array__(self, *args, **kwargs):
            taken.append(len(self))
            return super().__array__(*args, **kwargs)

        def __getitem__(self, key):
            part = super().__getitem__(key)
            taken.append(len(part) if isinstance(part, np.ndarray) else 1)
            return part

    monkeypatch.setattr(embeddings, "_BLOCK", 100)
    found = mispair.quick_audit(mapped.view(Watched), b)
    assert max(taken) <= 100
    assert np.allclose(found.p_mismatch, mispair.quick_audit(a, b).p_mismatch)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"captions": "caption"}, "give the table it stands in"),
        ({"captions": "captions.npy"}, "open it with numpy.load"),
        ({"captions": "caption", "table": {"text": []}}, "no column 'caption'; its columns are text"),
        ({"captions": "caption", "table": Frame(text=[])}, "no column 'caption'; its columns are text"),
        ({"captions": "caption", "table": Query()}, r"query that has not run yet; give what its collect\(\) returns"),
        ({"captions": ["a"]}, "1 captions for 101 pairs"),
    ],
)
def test_columns_that_are_not_there(more, said):
    a, b, *_ = planted(pairs=101)
    with pytest.raises(InputError, match=said):
        mispair.quick_audit(a, b, **more)


@pytest.mark.parametrize("column", [[[1.0, 2.0], [1.0]] * 20, ["a", "b"] * 20, [None, [1.0, 2.0]] * 20])
def test_columns_that_hold_no_vectors(column):
    with pytest.raises(InputError, match="one embedding in each row|one vector per pair"):
        mispair.quick_audit(column, np.ones((40, 2)))


def test_two_files_are_judged_like_their_arrays(tmp_path):
    a, b, *_ = planted(pairs=151)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    from_files = quick_audit_files(tmp_path / "a.npy", tmp_path / "b.npy")
    told = []
    from_arrays = mispair.quick_audit(a, b, tell=lambda what, done, total: told.append(what))
    assert np.allclose(from_files.p_mismatch, from_arrays.p_mismatch)
    assert from_files.table["score"].to_pylist() == pytest.approx(from_arrays.table["score"].to_pylist())
    assert told
    data = from_files.facts.data
    assert data["path"] == str(tmp_path / "a.npy")
    assert data["format"] == "arrays"
    assert data["config"]["second"] == str(tmp_path / "b.npy")
    np.save(tmp_path / "wide.npy", np.zeros((151, 3), np.float32) + np.arange(3))
    with pytest.raises(InputError, match="width"):
        quick_audit_files(tmp_path / "a.npy", tmp_path / "wide.npy")
    np.save(tmp_path / "regions.npy", np.ones((151, 2, a.shape[1]), np.float32))
    with pytest.raises(InputError, match="2 vectors per row; expected embeddings"):
        quick_audit_files(tmp_path / "regions.npy", tmp_path / "b.npy")


def test_files_beside_a_table_get_its_names_and_captions(tmp_path):
    a, b, *_ = planted(pairs=151)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    lines = ["image_id,caption", *(f"im{k}.jpg,caption number {k}" for k in range(151))]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    config = DataConfig(path=str(tmp_path / "pairs.csv"))
    found = quick_audit_files(tmp_path / "a.npy", tmp_path / "b.npy", data=config)
    assert found.table["image_id"][3].as_py() == "im3.jpg"
    assert found.table["caption"][3].as_py() == "caption number 3"
    assert found.facts.data["format"] == "csv"
    assert found.facts.data["path"] == str(tmp_path / "pairs.csv")
    assert np.allclose(found.p_mismatch, mispair.quick_audit(a, b, captions=lines[1:]).p_mismatch)


@pytest.mark.parametrize("nothing", [None, 5, np.array(5.0), np.empty((0, 8)), torch.empty(0, 8), []])
def test_no_embeddings_at_all_are_refused_in_a_sentence(nothing):
    with pytest.raises(InputError, match=r"image_embeddings .*one vector per pair"):
        mispair.quick_audit(nothing, np.empty((0, 8)))


@pytest.mark.parametrize("as_given", [torch.tensor, np.array, list, pa.array])
def test_ids_and_captions_of_any_library_are_shown_as_they_read(as_given):
    a, b, *_ = planted(pairs=101)
    ids, captions = np.arange(101), [f"caption {k}" for k in range(101)]
    found = mispair.quick_audit(a, b, image_ids=as_given(ids), captions=np.array(captions, "S"))
    assert (found[7].image_id, found[7].caption) == ("7", "caption 7")


@pytest.mark.parametrize("no_column", [5, {"a": 1}])
def test_captions_that_are_no_column_are_refused_in_a_sentence(no_column):
    a, b, *_ = planted(pairs=101)
    with pytest.raises(InputError, match="captions must be one text per pair, got"):
        mispair.quick_audit(a, b, captions=no_column)


def test_a_sparse_tensor_is_refused_in_a_sentence():
    a, b, *_ = planted(pairs=101)
    with pytest.raises(InputError, match="image_embeddings is sparse; expected a dense tensor"):
        mispair.quick_audit(torch.from_numpy(a).to_sparse(), b)
