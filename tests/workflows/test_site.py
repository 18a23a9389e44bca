"""What is served of an audit: its review, its pictures and no others."""

import base64

import pytest
from fastapi.testclient import TestClient

import mispair as mp
from mispair.reviewing.session import ReviewSession
from mispair.serving.app import make_app
from mispair.workflows.site import open_review, open_site
from tests.pictures.samples import bomb


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
    controls = sum(d.control is not None for d in session.log.standing)
    assert controls
    assert f"People decided {12 - controls} of the pairs (one reviewer" in page.read_text()
    for kind in ("csv", "parquet", "json"):
        file = tmp_path / f"d.{kind}"
        assert mispair("review", tmp_path / "audit", "--export", file)[0] == 0
    assert mispair("review", tmp_path / "other", "--import", tmp_path / "d.csv")[0] == 0
    assert mispair("review", tmp_path / "audit", "--export", tmp_path / "d.xls")[0] == 2


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
