"""The index of a run: what is in it, what is kept when it is made again, and where it can go."""

import json

import numpy as np

import mispair as mp
from mispair.data import DataConfig, ScenesConfig
from mispair.searching.index import Index
from mispair.workflows.index_run import build_index
from mispair.workflows.site import open_site


def test_every_pair_of_every_split_is_in_it(run, index):
    splits = {split: run.open_split(split) for split in ("train", "dev", "test")}
    assert len(index) == sum(len(part) for part in splits.values())
    first = index.rows([0, len(splits["train"])])
    assert [row["split"] for row in first] == ["train", "dev"]
    assert first[1]["caption"] == splits["dev"].table.captions[0]


def test_made_again_only_what_is_new_is_encoded(run, tmp_path):
    """A world of more pictures holds those of the smaller one."""
    first = build_index(run, tmp_path / "index")
    assert (first.encoded > 0, first.kept) == (True, 0)
    same = build_index(run, tmp_path / "index")
    assert (same.encoded, same.kept) == (0, first.encoded)
    grown = DataConfig(path="scenes", scenes=ScenesConfig(pictures=72))
    more = build_index(run, tmp_path / "index", grown)
    assert 0 < more.encoded < more.kept
    build_index(run, tmp_path / "fresh", grown)
    kept, fresh = Index.open(tmp_path / "index"), Index.open(tmp_path / "fresh")
    for side in ("images", "texts"):
        np.testing.assert_allclose(kept.vectors[side], fresh.vectors[side], atol=2e-3)
    assert kept.rows([len(kept) - 1]) == fresh.rows([len(fresh) - 1])


def test_vectors_of_another_model_are_not_kept(run, tmp_path):
    build_index(run, tmp_path / "index")
    manifest = json.loads((tmp_path / "index/manifest.json").read_text())
    (tmp_path / "index/manifest.json").write_text(json.dumps({**manifest, "model": "0" * 64}))
    assert build_index(run, tmp_path / "index").kept == 0


def test_an_index_of_other_data_is_asked_about_that_data(run, tmp_path):
    """Its pictures and its finer scores are those of what was indexed, not of what the run learned from."""
    other = DataConfig(path="scenes", scenes=ScenesConfig(pictures=40, seed=9))
    build_index(run, tmp_path / "index", other)
    site = open_site(tmp_path / "index")
    assert site.encoder.data == other
    (row,) = site.index.rows([0])
    part = run.open_split(row["split"], other)
    scores = run.score(part.images.subset(np.array([row["image"]])), [row["caption"]])
    np.testing.assert_allclose(site.encoder.score_texts(0, [row["caption"]]), scores[0], atol=1e-5)


def test_the_audit_of_one_split_knows_its_pairs_in_the_index_of_all(run, tmp_path):
    verdicts = mp.audit(run, split="test", folds=0)
    verdicts.save(tmp_path / "audit")
    site = open_site(tmp_path / "audit")
    (first,) = np.flatnonzero(site.audit_pairs == 0)
    assert site.index.rows([first])[0]["caption"] == verdicts.table["caption"][0].as_py()
    assert site.index.rows([first])[0]["split"] == "test"
    build_index(run, tmp_path / "index")
    beside = open_site(tmp_path / "index", audit=tmp_path / "audit")  # an index that knows of no audit
    np.testing.assert_array_equal(beside.audit_pairs, site.audit_pairs)


def test_an_index_goes_to_a_vector_database(run, tmp_path, mispair):
    build_index(run, tmp_path / "index")
    code, said = mispair("index", tmp_path / "index", "--parquet", tmp_path / "vectors.parquet")
    assert code == 0
    assert (tmp_path / "vectors.parquet").is_file()
    assert "image_vector" in said.out
    assert mispair("index", tmp_path / "nothing", "--parquet", tmp_path / "v.parquet")[0] == 2
