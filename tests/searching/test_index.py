"""An index answers as a full comparison does, small or grouped, and refuses what is not its own."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from mispair.errors import InputError
from mispair.searching import inverted, nearest, write
from mispair.searching.export import export_parquet
from mispair.searching.index import MANIFEST, METADATA, Index
from mispair.searching.nearest import exact_nearest
from tests.searching.indexes import D, make, unit, vectors


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "index", vectors(97, 0), vectors(97, 1))


def test_the_nearest_texts_are_those_of_a_full_comparison(folder):
    index = Index.open(folder, "m1")
    queries = vectors(5, 2)
    answers = index.nearest(queries, "texts", 7)
    scores = queries @ vectors(97, 1).astype(np.float16).astype(np.float32).T
    np.testing.assert_array_equal(answers.rows, np.argsort(-scores, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(answers.scores, -np.sort(-scores, axis=1)[:, :7], atol=1e-6)


def test_length_of_a_query_does_not_matter(folder):
    index = Index.open(folder)
    query = vectors(1, 3)
    expected = index.nearest(query, "images", 5).rows
    for size in (100, 1e300, 1e-200):
        np.testing.assert_array_equal(index.nearest(size * query[0].astype(float), "images", 5).rows, expected)
    with pytest.raises(InputError, match="finite"):
        index.nearest([np.inf] * D, "images", 5)


def test_an_image_that_several_pairs_show_is_answered_once(tmp_path):
    image_of = np.repeat(np.arange(10), 5)
    images = vectors(10, 0)[image_of]
    index = Index.open(make(tmp_path / "i", images, vectors(50, 1), image_of))
    answers = index.nearest(vectors(3, 2), "images", 8)
    for rows in answers.rows:
        assert len(set(image_of[rows].tolist())) == 8
    beyond = index.nearest(vectors(1, 2), "images", 12)
    assert (beyond.rows[0] >= 0).sum() == 10
    assert (beyond.rows[0][10:] == -1).all()


def test_chunks_do_not_change_the_answer(monkeypatch):
    monkeypatch.setattr(nearest, "_CHUNK", 7)
    stored, queries = vectors(50, 0).astype(np.float16), vectors(4, 1)
    rows = exact_nearest(stored, queries, 9)[1]
    scores = queries @ stored.astype(np.float32).T
    np.testing.assert_array_equal(rows, np.argsort(-scores, axis=1, kind="stable")[:, :9])


def test_rows_come_in_the_order_asked(folder):
    rows = Index.open(folder).rows(np.array([40, 3, 40]))
    assert [row["caption"] for row in rows] == ["caption 40", "caption 3", "caption 40"]
    with pytest.raises(InputError, match="no pair"):
        Index.open(folder).rows(np.array([97]))


def test_grouped_vectors_find_what_a_full_comparison_finds(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, D))
    images = unit(centres[rng.integers(40, size=4000)] + 0.3 * rng.normal(size=(4000, D)))
    index = Index.open(make(tmp_path / "i", images, images[::-1], kind="inverted"))
    assert set(index.inverted) == {"images", "texts"}
    queries = unit(images[:50] + 0.05 * rng.normal(size=(50, D)))
    true = exact_nearest(index.vectors["images"], queries, 10)[1]
    answered = index.nearest(queries, "images", 10).rows
    held = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true.tolist(), answered.tolist(), strict=True)])
    assert held >= 0.95
    assert index.inverted["images"].nprobe < index.inverted["images"].nlist


@pytest.mark.parametrize("kind", ["exact", "inverted"])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_only_some_pairs_are_answered(tmp_path, kind, share):
    images = vectors(1500, 0)
    index = Index.open(make(tmp_path / "i", images, vectors(1500, 1), kind=kind))
    only = np.random.default_rng(3).random(1500) < share
    queries = vectors(4, 2)
    rows = index.nearest(queries, "images", 9, only).rows
    scores = np.where(only, queries @ images.astype(np.float16).astype(np.float32).T, -np.inf)
    true = np.argsort(-scores, axis=1)[:, :9]
    held = np.mean([len(set(a) & set(b)) / 9 for a, b in zip(true.tolist(), rows.tolist(), strict=True)])
    assert held == 1.0 if kind == "exact" else held > 0.85
    assert only[rows[rows >= 0]].all()
    nobody = index.nearest(queries, "images", 5, np.zeros(1500, bool)).rows
    assert (nobody == -1).all()


def test_groups_are_kept_where_pairs_were_only_added(tmp_path, monkeypatch):
    images, texts = vectors(2000, 0), vectors(2000, 1)
    folder = make(tmp_path / "i", images[:1600], texts[:1600], kind="inverted")
    built = []
    monkeypatch.setattr(write, "build_inverted", lambda *a, **k: built.append(a) or inverted.build_inverted(*a, **k))
    make(folder, images, texts, kind="inverted")
    assert built == []
    index = Index.open(folder)
    assert index.nearest(images[[1999]], "images", 1).rows[0, 0] == 1999
    make(folder, images[1:], texts[1:], kind="inverted")
    assert len(built) == 2


def test_exported_it_holds_every_pair_and_vector(tmp_path, folder):
    out = tmp_path / "vectors.parquet"
    assert export_parquet(Index.open(folder), out) == 97
    table = pq.read_table(out)
    assert table.column_names == ["id", "image", "image_path", "caption", "split", "image_vector", "text_vector"]
    np.testing.assert_allclose(np.stack(table["text_vector"].to_numpy()), vectors(97, 1), atol=1e-3)
    assert table["caption"][41].as_py() == "caption 41"
    with pytest.raises(InputError, match=".parquet"):
        export_parquet(Index.open(folder), tmp_path / "vectors.csv")


def test_the_layout_is_that_of_clip_retrieval(folder):
    """Equal numbers of rows in img_emb/*_0.npy, text_emb/*_0.npy and metadata/*_0.parquet, 2-d, plain arrays."""
    for name in ("img_emb/img_emb_0.npy", "text_emb/text_emb_0.npy"):
        assert np.load(folder / name, allow_pickle=False).shape == (97, D)
    assert {"image_path", "caption"} <= set(pq.read_schema(folder / "metadata" / "metadata_0.parquet").names)


def test_a_part_of_the_metadata_and_its_distinct_values(tmp_path):
    index = Index.open(make(tmp_path / "i", vectors(3000, 0), vectors(3000, 1)))
    assert index.metadata.part(1000, 2100)["caption"].to_pylist() == [f"caption {k}" for k in range(1000, 2100)]
    assert index.metadata.distinct("split") == ["train"]
    assert not index.metadata.where(split="test").any()
    assert not index.metadata.where(suspicious=False).any()  # nobody was judged


def test_made_again_it_replaces_the_old_one_and_leaves_nothing_beside(tmp_path):
    folder = make(tmp_path / "index", vectors(20, 0), vectors(20, 1))
    make(folder, vectors(30, 0), vectors(30, 1), model="m2")
    assert len(Index.open(folder, "m2")) == 30
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_what_is_no_index_is_not_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").touch()
    with pytest.raises(InputError, match="something else"):
        make(tmp_path / "photos", vectors(9, 0), vectors(9, 1))
    assert (tmp_path / "photos" / "a.png").exists()


def test_vectors_that_are_not_finite_leave_nothing(tmp_path):
    bad = vectors(9, 0)
    bad[4, 2] = np.nan
    with pytest.raises(InputError, match="NaN"):
        make(tmp_path / "index", bad, vectors(9, 1))
    assert list(tmp_path.iterdir()) == []


def test_of_another_model_it_is_refused(folder):
    with pytest.raises(InputError, match="another model"):
        Index.open(folder, "m2")


def test_damage_is_named(folder):
    (folder / "img_emb" / "img_emb_0.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match="img_emb_0"):
        Index.open(folder)


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 2}', json.dumps({"pairs": -1})])
def test_a_damaged_manifest_is_named(folder, content):
    (folder / MANIFEST).write_text(content)
    with pytest.raises(InputError, match="manifest.json is damaged"):
        Index.open(folder)


def test_no_index_there(tmp_path):
    with pytest.raises(InputError, match="mispair index"):
        Index.open(tmp_path)


def test_metadata_of_another_length(folder):
    path = folder / METADATA
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="metadata_0"):
        Index.open(folder)


def test_without_faiss_a_large_index_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(InputError, match="pip install faiss-cpu"):
        inverted.require_faiss()
    with pytest.raises(InputError, match="faiss"):
        make(tmp_path / "i", vectors(9, 0), vectors(9, 1), kind="inverted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("query", "k"), [(np.zeros(3), 5), (np.zeros(D), 0)])
def test_a_query_that_does_not_fit(folder, query, k):
    with pytest.raises(InputError):
        Index.open(folder).nearest(query, "images", k)


def test_a_pair_is_searched_without_torch_and_without_pandas(folder):
    """A cold process has its answer before these are read."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from mispair.workflows.searchable_index import SearchableIndex\n"
        "index = SearchableIndex.open(Path(sys.argv[1]))\n"
        "index.search(pair=3, k=5)\n"
        "assert not {'torch', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
