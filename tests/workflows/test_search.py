"""From a trained run to an index, a question, a page and a review: the verbs, end to end, on a tiny world."""

import json
import shutil

import numpy as np
import pytest

import mispair as mp
from mispair.errors import InputError
from mispair.searching.index import Index
from mispair.searching.query import search_pair, search_text
from mispair.workflows.index_run import build_index, model_hash
from mispair.workflows.search import data_of, encoder_of
from tests.workflows.search_samples import train


def test_words_rank_as_the_model_scores(run, index):
    text = index.rows([5])[0]["caption"]
    hits = search_text(index, encoder_of(index), text, k=8).hits
    dev, test, trained = (run.open_split(split) for split in ("dev", "test", "train"))
    best = max(
        float(run.score(part.images.take(np.arange(len(part.images)))[0], [text]).max())
        for part in (dev, test, trained)
    )
    assert hits[0].score == pytest.approx(best, abs=5e-3)
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)


def test_from_python(run, tmp_path):
    made = mp.index(run, tmp_path / "index")
    assert mp.search(made, "a red circle", k=3).hits == mp.search(tmp_path / "index", "a red circle", k=3).hits


def test_unknown_words_are_named(index):
    result = search_text(index, encoder_of(index), "a red kitten")
    assert result.notes == ("'kitten' was never seen in training; it is ignored",)
    with pytest.raises(InputError, match="none of the words"):
        search_text(index, encoder_of(index), "kitten !")


def test_an_index_of_another_model_is_refused(index, run, tmp_path):
    moved = tmp_path / "index"
    shutil.copytree(index.folder, moved)
    manifest = json.loads((moved / "manifest.json").read_text())
    (moved / "manifest.json").write_text(json.dumps({**manifest, "model": "0" * 64}))
    with pytest.raises(InputError, match="another model"):
        encoder_of(Index.open(moved))
    with pytest.raises(InputError, match="another model"):
        Index.open(moved, model_hash(run))


@pytest.mark.parametrize("config", [{"x": 1}, {"path": 3}])
def test_data_named_as_no_index_names_it_is_refused(index, tmp_path, config):
    shutil.copytree(index.folder, tmp_path / "index")
    manifest = json.loads((tmp_path / "index/manifest.json").read_text())
    (tmp_path / "index/manifest.json").write_text(json.dumps({**manifest, "config": config}))
    with pytest.raises(InputError, match=r"manifest.json names its data in a way.*make the index again"):
        data_of(Index.open(tmp_path / "index"))


@pytest.fixture(scope="module")
def finer(tmp_path_factory):
    """A run whose model scores pairs finer than their vectors do, and its index."""
    folder = tmp_path_factory.mktemp("finer")
    run = train(folder / "run", "saf")
    build_index(run, folder / "index")
    index = Index.open(folder / "index")
    assert index.manifest.rerank
    return run, index


def test_a_model_that_scores_finer_than_its_vectors_ranks_in_two_stages(finer):
    run, index = finer
    text = index.rows([0])[0]["caption"]
    hits = search_text(index, encoder_of(index), text, k=3).hits
    whole = run.open_split(hits[0].split)
    names = list(whole.table.image_ids)
    features, _ = whole.images.take(np.array([names.index(hits[0].image_path)]))
    assert hits[0].score == pytest.approx(float(run.score(features, [text])[0, 0]), abs=1e-4)


def test_at_the_second_stage_unknown_words_do_not_count_either(finer):
    _, index = finer
    plain = search_text(index, encoder_of(index), "a red circle", k=5).hits
    asked = search_text(index, encoder_of(index), "a kitten red zzz circle", k=5)
    assert asked.hits == plain
    assert len(asked.notes) == 2


def test_captions_of_a_picture_and_pictures_of_a_caption_are_ranked_in_two_stages_too(finer):
    _, index = finer
    encoder = encoder_of(index)
    found = search_pair(index, 7, 4, "images", "texts", encoder=encoder).hits
    assert 7 not in [hit.pair for hit in found]
    scored = encoder.score_texts(7, [hit.caption for hit in found])
    assert [hit.score for hit in found] == pytest.approx(scored.tolist(), abs=1e-4)
    assert scored.tolist() == sorted(scored.tolist(), reverse=True)
    pictures = search_pair(index, 7, 4, "texts", "images", encoder=encoder).hits
    finer_scores = encoder.rerank(index.rows([7])[0]["caption"], np.array([hit.pair for hit in pictures]))
    assert [hit.score for hit in pictures] == pytest.approx(finer_scores.tolist(), abs=1e-4)
    assert mp.search(index, pair=7, k=4, side="texts").hits == found
    assert search_pair(index, 7, 4, "images", "texts").hits != found  # the vectors alone


def test_the_verbs(run, tmp_path, mispair):
    out = tmp_path / "index"
    assert mispair("index", run.folder, "-o", out)[0] == 0
    code, said = mispair("search", out, "a red circle", "-k", 3, "--json")
    assert code == 0
    assert len(json.loads(said.out)["answers"]) == 3
    assert mispair("search", out, "--pair", 2, "--captions")[0] == 0
    page = tmp_path / "found.html"
    assert mispair("search", out, "a red circle", "--html", page)[0] == 0
    assert "data:image/webp;base64," in page.read_text()
    code, said = mispair("search", out, "a red circle", "-k", 3, "--thumbnails", "blocks")
    assert said.out.splitlines()[0].count("\u2580") == 66
    assert "\u2580" not in mispair("search", out, "a red circle")[1].out  # a pipe gets none
    for wrong in (
        ("x", "--thumbnails", "fax"),
        ("x", "--pair", 1),
        (),
        ("--pair", 10**9),
        ("--image", tmp_path / "no.png"),
    ):
        code, said = mispair("search", out, *wrong)
        assert code == 2
        assert said.err.count("\n") == 1
    assert mispair("search", tmp_path, "x")[0] == 2
    assert mispair("serve", tmp_path)[0] == 2
    assert mispair("serve", out, "--host", "0.0.0.0")[0] == 2


def test_a_port_in_use_is_named(run, tmp_path, mispair):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        build_index(run, tmp_path / "index")
        code, said = mispair("serve", tmp_path / "index", "--port", taken.getsockname()[1])
    assert code == 2
    assert said.err.endswith("cannot be used (Address already in use); choose another with --port\n")


def test_an_audit_is_indexed_by_the_run_that_judged_it(run, tmp_path, mispair):
    audit = tmp_path / "audit"
    mp.audit(run, folds=0).save(audit)
    code, said = mispair("index", audit, "-o", tmp_path / "index")
    assert code == 0, said.err
    assert Index.open(tmp_path / "index").manifest.audit is not None
    facts = json.loads((audit / "audit.json").read_text())
    (audit / "audit.json").write_text(json.dumps({**facts, "run": str(tmp_path / "gone")}))
    code, said = mispair("index", audit, "-o", tmp_path / "second")
    assert code == 2
    assert f"its run {tmp_path / 'gone'} is gone" in said.err
    shutil.copytree(run.folder, audit / "run")  # both were moved
    assert mispair("index", audit, "-o", tmp_path / "second")[0] == 0


@pytest.mark.parametrize("verb", [("evaluate",), ("audit", "-o", "{}/again"), ("export", "--to", "onnx")])
def test_an_audit_where_a_run_should_be_is_told_of_its_run(run, tmp_path, mispair, verb):
    audit = tmp_path / "audit"
    mp.audit(run, folds=0).save(audit)
    shutil.copytree(run.folder, audit / "run")
    name, *options = (part.format(tmp_path) for part in verb)
    code, said = mispair(name, audit, *options)
    assert code == 2
    assert f"but {audit / 'run'} is one" in said.err


@pytest.mark.parametrize("kind", [(), ("--json",)])
def test_a_page_that_was_written_is_named(index, tmp_path, mispair, kind):
    page = tmp_path / "found.html"
    code, said = mispair("search", index.folder, "--pair", 3, "--html", page, *kind)
    assert code == 0
    assert f"Page: {page}" in (said.err if kind else said.out)
    assert not kind or json.loads(said.out)["answers"]
