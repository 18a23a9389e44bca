"""Pictures indexed by an encoder alone, without a run."""

import json

import numpy as np

import mispair as mp
from mispair.searching.query import search_text
from mispair.workflows.site import open_site


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


def test_pictures_are_indexed_by_the_embedded_encoder_where_none_is_named(photos, mispair, monkeypatch):
    from mispair.encoders import registry

    monkeypatch.setattr(registry.basic, "BasicEncoder", registry._REGISTERED["colours"])
    code, said = mispair("index", photos / "pairs.csv", "--images", photos / "photos", "-o", photos / "index")
    assert code == 0, said.err
    index = mp.index(out=photos / "again", data=photos / "pairs.csv", images=photos / "photos")
    assert index.search("red").hits[0].caption.startswith("red")
    code, said = mispair("index", photos / "photos/1.png", "-o", photos / "no")
    assert code == 2


def test_an_audit_by_an_encoder_is_searched_too(photos):
    mp.audit_pictures(photos / "pairs.csv", images=photos / "photos", encoder="colours").save(photos / "audit")
    site = open_site(photos / "audit")
    assert site.index is not None
    assert site.review is not None
    assert search_text(site.index, site.encoder, "blue", k=3).hits[0].caption.startswith("blue")
    assert site.audit_pairs.tolist() == list(range(24))


def test_an_index_made_by_relative_names_is_asked_from_anywhere(photos, mispair, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(photos)
    code, said = mispair("index", "pairs.csv", "--images", "photos", "--encoder", "colours", "-o", "index")
    assert code == 0, said.err
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert open_site(photos / "index").pictures.read("3.png") is not None
    data = mp.embed(photos / "pairs.csv", images=photos / "photos", encoder="colours", workers=0)
    run = mp.train(
        data, method="plain", epochs=1, out=photos / "run", quiet=True, options={"data.holdout": [0.05, 0.05]}
    )
    monkeypatch.chdir(photos)
    assert mispair("index", run.folder, "--data", "pairs.csv", "--images", "photos", "-o", "second")[0] == 0
    monkeypatch.chdir(photos.parent)
    assert open_site(photos / "second").pictures.read("3.png") is not None
