"""From a trained run to an index, a question, a page and a review: the verbs, end to end, on a tiny world."""

import base64
import json
import sys

import numpy as np
import pytest
from fastapi.testclient import TestClient

import mispair as mp
from mispair.cli.app import main
from mispair.data import DataConfig, ScenesConfig
from mispair.encoders import registry
from mispair.encoders.own import FunctionEncoder
from mispair.errors import InputError
from mispair.review.session import ReviewSession
from mispair.search.index import Index
from mispair.search.query import search_text
from mispair.serve.app import make_app
from mispair.workflows.index_run import build_index, model_hash
from mispair.workflows.search import encoder_of
from mispair.workflows.site import open_review, open_site
from tests.pictures.samples import bomb


def train(folder, model="vse"):
    data = DataConfig(path="scenes", scenes=ScenesConfig(pictures=60))
    return mp.train(
        data, method="plain", model=model, out=folder, epochs=2, batch_size=32, noise=0.3, quiet=True,
        options={"method.loss": "infonce"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def index(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "index"
    build_index(run, folder)
    return Index.open(folder)


@pytest.fixture
def mispair(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["mispair", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        return code, capsys.readouterr()

    return call


def test_every_pair_of_every_split_is_in_it(run, index):
    splits = {split: run.open_split(split) for split in ("train", "dev", "test")}
    assert len(index) == sum(len(part) for part in splits.values())
    first = index.rows([0, len(splits["train"])])
    assert [row["split"] for row in first] == ["train", "dev"]
    assert first[1]["caption"] == splits["dev"].table.captions[0]


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
    import mispair.search.query  # noqa: F401  a module of that name must not hide the function

    assert callable(mp.search)


def test_unknown_words_are_named(index):
    result = search_text(index, encoder_of(index), "a red kitten")
    assert result.notes == ("'kitten' was never seen in training; it is ignored",)
    with pytest.raises(InputError, match="none of the words"):
        search_text(index, encoder_of(index), "kitten !")


def test_an_index_of_another_model_is_refused(index, run, tmp_path):
    import shutil

    moved = tmp_path / "index"
    shutil.copytree(index.folder, moved)
    manifest = json.loads((moved / "manifest.json").read_text())
    (moved / "manifest.json").write_text(json.dumps({**manifest, "model": "0" * 64}))
    with pytest.raises(InputError, match="another model"):
        encoder_of(Index.open(moved))
    with pytest.raises(InputError, match="another model"):
        Index.open(moved, model_hash(run))


def test_a_model_that_scores_finer_than_its_vectors_ranks_in_two_stages(tmp_path):
    run = train(tmp_path / "run", "saf")
    build_index(run, tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert index.manifest.rerank
    text = index.rows([0])[0]["caption"]
    hits = search_text(index, encoder_of(index), text, k=3).hits
    whole = run.open_split(hits[0].split)
    names = list(whole.table.image_ids)
    features, _ = whole.images.take(np.array([names.index(hits[0].image_path)]))
    assert hits[0].score == pytest.approx(float(run.score(features, [text])[0, 0]), abs=1e-4)


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
    assert "--port" in said.err


def test_an_audit_is_served_with_its_review_and_its_pictures(run, tmp_path, mispair):
    mp.audit(run, folds=0).save(tmp_path / "audit")
    site = open_site(tmp_path / "audit")
    assert site.review is not None
    assert site.index is not None
    assert {row["p_mismatch"] is None for row in site.index.rows(range(len(site.index)))} == {True, False}
    assert site.pictures.read(site.index.rows([0])[0]["image_path"]).startswith(b"\x89PNG")
    told = site.explain(0, "a red kitten")
    assert [word for word, carried in told.words if carried is not None] == ["a", "red"]
    assert told.regions == ()
    assert "where these lie" in told.how
    alone = open_review(tmp_path / "audit")
    shown = alone.review.shown("ann")
    assert alone.pictures.read(shown.image_id) is not None
    assert mispair("review", tmp_path / "audit", "--status")[0] == 0


def test_decisions_go_out_and_come_back(run, tmp_path, mispair):
    verdicts = mp.audit(run, folds=0)
    verdicts.save(tmp_path / "audit")
    verdicts.save(tmp_path / "other")
    assert mispair("review", tmp_path / "audit", "--status")[0] == 2
    session = ReviewSession(tmp_path / "audit", verdicts)
    for _ in range(12):
        session.answer("ann", session.shown("ann").place, "wrong")
    code, said = mispair("review", tmp_path / "audit", "--status")
    assert code == 0
    assert "ann: 12 answers" in said.out
    with open(tmp_path / "audit" / "decisions.jsonl", "a") as file:
        file.write('{"pair": 3, "ans')
    code, said = mispair("review", tmp_path / "audit", "--status")
    assert (code, "cut off" in said.out, "ann: 12 answers" in said.out) == (0, True, True)
    page = tmp_path / "report.html"
    assert mispair("report", tmp_path / "audit", "-o", page)[0] == 0
    assert "People looked at 12 pairs (one reviewer" in page.read_text()
    for kind in ("csv", "parquet", "json"):
        file = tmp_path / f"d.{kind}"
        assert mispair("review", tmp_path / "audit", "--export", file)[0] == 0
    assert mispair("review", tmp_path / "other", "--import", tmp_path / "d.csv")[0] == 0
    assert mispair("review", tmp_path / "audit", "--export", tmp_path / "d.xls")[0] == 2


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


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """24 pictures, half red and half blue, and an encoder of mean colours with one space for both sides."""
    from PIL import Image

    monkeypatch.setenv("MISPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "_REGISTERED", {})
    (tmp_path / "photos").mkdir()
    lines = ["filepath,title"]
    for k in range(24):
        picture = Image.new("RGB", (50, 40), (120, 120, 120))
        colour = (200 + k, 10, 10) if k % 2 else (10, 10, 200 + k)
        picture.paste(colour, (0, 0, 20, 16) if k < 6 else (30, 24, 50, 40))
        picture.save(tmp_path / f"photos/{k}.png")
        lines.append(f"{k}.png,{'red' if k % 2 else 'blue'} thing {k}")
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")

    def see(pixels):
        return pixels.astype(np.float32).mean((1, 2)) / 255

    def read(texts):
        words = ("red", "green", "blue")
        return np.array([[float(word in text) + 0.01 * len(text) for word in words] for text in texts], np.float32)

    registry.register_encoder(
        "colours", lambda device, cells: FunctionEncoder("colours", "1", images=see, texts=read, joint=True)
    )
    return tmp_path


def test_an_encoder_alone_is_indexed_searched_and_explained(photos, mispair):
    out = photos / "index"
    code, said = mispair(
        "index", photos / "pairs.csv", "--images", photos / "photos", "--encoder", "colours", "-o", out
    )
    assert code == 0, said.err
    code, said = mispair("search", out, "red", "-k", 6, "--json")
    answers = json.loads(said.out)["answers"]
    assert all(answer["caption"].startswith("red") for answer in answers)
    code, said = mispair("search", out, "--image", photos / "photos/3.png", "-k", 1, "--json")
    assert json.loads(said.out)["answers"][0]["image_path"] == "3.png"
    site = open_site(out)
    told = site.explain(1, "red thing")  # red in the upper left
    carried = dict(told.words)
    assert carried["red"] > abs(carried["thing"])
    regions = np.array(told.regions)
    assert regions.shape == (5, 5)
    assert regions[:2, :2].min() > regions[3:, 3:].max()
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "model": "other"}))
    code, said = mispair("search", out, "red")
    assert code == 2
    assert "another model" in said.err


def test_an_audit_by_an_encoder_is_searched_too(photos):
    mp.audit_pictures(photos / "pairs.csv", images=photos / "photos", encoder="colours").save(photos / "audit")
    site = open_site(photos / "audit")
    assert site.index is not None
    assert site.review is not None
    assert search_text(site.index, site.encoder, "blue", k=3).hits[0].caption.startswith("blue")
    assert site.audit_pairs.tolist() == list(range(24))


def test_an_index_goes_to_a_vector_database(run, tmp_path, mispair):
    build_index(run, tmp_path / "index")
    code, said = mispair("index", tmp_path / "index", "--parquet", tmp_path / "vectors.parquet")
    assert code == 0
    assert (tmp_path / "vectors.parquet").is_file()
    assert "image_vector" in said.out
    assert mispair("index", tmp_path / "nothing", "--parquet", tmp_path / "v.parquet")[0] == 2


@pytest.fixture
def shown(photos, mispair):
    """The index of the photos, and how the page asks for a picture."""
    out = photos / "index"
    arguments = ("index", photos / "pairs.csv", "--images", photos / "photos", "--encoder", "colours", "-o", out)
    assert mispair(*arguments)[0] == 0
    return out


def test_pictures_come_from_the_datas_own_folder_and_from_nowhere_else(shown, photos):
    (photos / "secret.png").write_bytes((photos / "photos/1.png").read_bytes())
    client = TestClient(make_app(open_site(shown)), base_url="http://127.0.0.1:8000")
    assert client.get("/api/pictures", params={"id": "3.png"}).headers["content-type"] == "image/webp"
    for name in ("../secret.png", "photos/../../secret.png", str(photos / "secret.png"), "..%2fsecret.png", "3.png\0"):
        assert client.get("/api/pictures", params={"id": name}).status_code == 404
    (photos / "photos/5.png").unlink()
    (photos / "photos/5.png").symlink_to(photos / "secret.png")  # a link out, put there later
    assert client.get("/api/pictures", params={"id": "5.png"}).status_code == 404


def test_a_bomb_is_refused_with_a_sentence(shown):
    client = TestClient(make_app(open_site(shown)), base_url="http://127.0.0.1:8000")
    refused = client.post("/api/search", json={"picture": base64.b64encode(bomb()).decode()})
    assert refused.status_code == 400
    assert "too large" in refused.json()["detail"]


def test_pictures_that_are_gone_are_said_before_anything_is_served(shown, photos, mispair):
    (photos / "photos").rename(photos / "moved")
    code, said = mispair("serve", shown)
    assert code == 2
    assert "the pictures are gone" in said.err
    assert said.err.count("\n") == 1
    assert open_site(shown, pictures=photos / "moved").pictures.read("3.png") is not None
