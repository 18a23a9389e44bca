"""Every route, as a client sees it: answers, limits, refusals in one sentence, headers; no 5xx."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient

from mispair.errors import InputError
from mispair.serving.app import make_app
from tests.serving.sites import PAIRS, make_site, png


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def client(site):
    return TestClient(make_app(site), base_url="http://127.0.0.1:8000")


def test_words_find_pictures(client):
    answer = client.post("/api/search", json={"text": "number 17", "k": 5}).json()
    assert answer["answers"][0]["pair"] == 17
    assert answer["answers"][0]["score"] == pytest.approx(1.0, abs=1e-3)
    assert answer["notes"] == ["'number' was never seen in training; it is ignored"]


def test_only_unknown_words_are_refused_not_answered_with_nonsense(client):
    refused = client.post("/api/search", json={"text": "kitten"})
    assert refused.status_code == 400
    assert "never" in refused.json()["detail"] or "none of the words" in refused.json()["detail"]


def test_a_picture_finds_pictures_and_captions(client):
    data = base64.b64encode(png()).decode()
    assert client.post("/api/search", json={"picture": data}).json()["answers"][0]["pair"] == 5
    assert len(client.post("/api/search", json={"picture": data, "side": "texts", "k": 7}).json()["answers"]) == 7


def test_a_pair_finds_others_not_itself(client):
    for by in ("images", "texts"):
        for side in ("images", "texts"):
            answer = client.post("/api/search", json={"pair": 3, "by": by, "side": side, "k": 9}).json()["answers"]
            assert len(answer) == 9
            assert 3 not in [a["pair"] for a in answer]


def test_filters(client):
    def ask(**filters):
        return client.post("/api/search", json={"text": "17", "k": 40, **filters}).json()["answers"]

    assert {a["split"] for a in ask(split="test")} == {"test"}
    assert all(a["p_mismatch"] > 0.5 for a in ask(suspicious=True))
    assert all(a["p_mismatch"] <= 0.5 for a in ask(suspicious=False))


@pytest.mark.parametrize(
    "body",
    [
        {}, {"text": "1", "pair": 1}, {"text": "  "}, {"text": "x" * 2001}, {"text": "1", "k": 0},
        {"text": "1", "k": 201}, {"pair": -1}, {"pair": PAIRS}, {"pair": 2**70}, {"picture": "%%%"},
        {"picture": "aGVsbG8="}, {"text": "1", "side": "x"}, {"text": "1", "unknown": 1},
        {"text": 5}, {"pair": "x"}, {"text": "1", "split": "x" * 101},
    ],
)  # fmt: skip
def test_malformed_requests_get_4xx_with_a_sentence(client, body):
    response = client.post("/api/search", json=body)
    assert response.status_code in (400, 422)
    detail = response.json()["detail"]
    assert isinstance(detail, str)
    assert "\n" not in detail
    assert len(detail) < 200


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/api/search", '{"text": "1", "k": 900}', "k: input should be less than or equal to 200"),
        ("/api/search", '{"text": "1", "colour": 1}', "there is no colour in such a request"),
        ("/api/search", "{", "the body is not JSON"),
        ("/api/search", "", "body: it is missing"),
        ("/api/decisions", '{"place": 0, "answer": "right"}', "reviewer: it is missing"),
    ],
)
def test_what_is_malformed_is_named_with_what_would_be_right(client, path, body, sentence):
    refused = client.post(path, content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 422
    assert refused.json() == {"detail": sentence}


def test_one_pair_with_its_neighbours(client):
    pair = client.get("/api/pairs/4").json()
    assert pair["caption"] == "caption 4"
    assert set(pair["neighbours"]) == {"images_images", "images_texts", "texts_images", "texts_texts"}
    assert client.get(f"/api/pairs/{PAIRS}").status_code == 404
    assert client.get("/api/pairs/-1").status_code == 422
    assert client.get("/api/pairs/x").status_code == 422


def test_why(client):
    told = client.get("/api/why", params={"pair": 4, "text": "a red dog"}).json()
    assert [w["word"] for w in told["words"]] == ["a", "red", "dog"]
    assert len(told["regions"]) == len(told["regions"][0]) == 5
    assert client.get("/api/why", params={"pair": PAIRS, "text": "a"}).status_code == 404


CLIP_CLIENT = {  # all that clip-retrieval's ClipClient sends, with its defaults
    "text": None, "image": None, "image_url": None, "embedding_input": None, "deduplicate": True,
    "use_safety_model": True, "use_violence_detector": True, "indice_name": "any", "use_mclip": False,
    "aesthetic_score": 9, "aesthetic_weight": 0.5, "modality": "image", "num_images": 40, "num_result_ids": 40,
}  # fmt: skip


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded"])
def test_as_clients_of_clip_retrieval_ask(client, site, kind):
    """JSON whatever its content type says, and every field at once."""

    def ask(**values):
        headers = {} if kind is None else {"content-type": kind}
        return client.post("/knn-service", content=json.dumps({**CLIP_CLIENT, **values}), headers=headers)

    found = ask(text="17").json()
    assert len(found) == 40
    assert found[0]["id"] == 17
    assert found[0]["caption"] == "caption 17"
    assert [a["similarity"] for a in found] == sorted((a["similarity"] for a in found), reverse=True)
    shown = client.get(found[0]["url"])
    assert shown.headers["content-type"] == "image/webp"
    assert ask(image=base64.b64encode(png()).decode(), num_images=3).json()[0]["id"] == 5
    assert ask(embedding_input=site.encoder.vectors[9].tolist()).json()[0]["id"] == 9
    assert len(ask(text="17", num_images=500, num_result_ids=3000).json()) == 200
    assert len(ask(text="17", modality="text", num_images=7).json()) == 7


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"embedding_input": [1.0]}, "has 1 numbers"),
        ({"image_url": "http://x/y.png"}, "not fetched"),
        ({}, "one of text, image and embedding_input"),
        ({"text": ""}, "one of text, image and embedding_input"),
    ],
)
def test_what_such_a_client_cannot_have_is_said(client, values, sentence):
    refused = client.post("/knn-service", json=values)
    assert refused.status_code == 400
    assert sentence in refused.json()["detail"]


def test_a_picture_that_has_an_address_keeps_it(tmp_path):
    names = [f"https://example.org/{k}.png" for k in range(PAIRS)]
    client = TestClient(make_app(make_site(tmp_path, names=names)), base_url="http://127.0.0.1:8000")
    assert client.post("/knn-service", json={"text": "17"}).json()[0]["url"] == "https://example.org/17.png"


def test_pictures_are_encoded_again(client):
    response = client.get("/api/pictures", params={"id": "3.png", "side": 200})
    assert response.headers["content-type"] == "image/webp"
    assert response.content[:4] == b"RIFF"
    for gone in ("gone.png", "../../etc/passwd", "/etc/passwd", "x\x00y"):
        assert client.get("/api/pictures", params={"id": gone}).status_code == 404
    assert client.get("/api/pictures", params={"id": "3.png", "side": 5000}).status_code == 422


def test_pages_and_assets_load_nothing_from_elsewhere(client):
    for path in ("/", "/review", "/assets/search.js", "/assets/review.js", "/assets/common.js", "/assets/site.css"):
        response = client.get(path)
        assert response.status_code == 200
        assert "http://" not in response.text
        assert "https://" not in response.text
        assert "innerHTML" not in response.text
    for path in ("/assets/search.html", "/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/nothing.js"):
        assert client.get(path).status_code == 404


def test_every_answer_has_its_headers(client):
    for path in ("/", "/api/health", "/nothing", "/api/pairs/x"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_health_and_metrics(client):
    assert client.get("/api/health").json()["pairs"] == PAIRS
    client.post("/api/search", json={"text": "17"})
    text = client.get("/metrics").text
    assert 'mispair_requests_total{route="/api/search",status="200"}' in text
    assert 'mispair_request_seconds_bucket{route="/api/search",le="+Inf"}' in text


def test_the_interface_describes_itself(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/api/search", "/api/pairs/{pair}", "/api/decisions", "/api/health", "/metrics", "/knn-service"} <= set(
        paths
    )


class TestReview:
    def test_answers_and_undo(self, tmp_path):
        client = TestClient(make_app(make_site(tmp_path)), base_url="http://localhost")
        first = client.get("/api/review/next", params={"reviewer": "ann", "ahead": 10}).json()
        assert len(first["items"]) == 11
        body = {"reviewer": "ann", "place": 0, "answer": "wrong", "seconds": 2.5}
        assert client.post("/api/decisions", json=body).json()["progress"]["answered"] == 1
        assert (tmp_path / "decisions.jsonl").read_text().count("\n") == 2
        assert client.post("/api/decisions", json=body).status_code == 400
        (kept,) = client.get("/api/decisions", params={"reviewer": "ann"}).json()
        assert kept["answer"] == "wrong"
        assert "p_mismatch" not in kept
        assert client.get("/api/decisions", params={"reviewer": "bob"}).json() == []
        assert (
            client.post("/api/decisions/undo", json={"reviewer": "ann"}).json()["undone"] == first["items"][0]["pair"]
        )
        assert client.post("/api/decisions/undo", json={"reviewer": "ann"}).json()["undone"] is None
        again = client.get("/api/review/next", params={"reviewer": "ann"}).json()
        assert again["items"][0] == first["items"][0]

    def test_looks_wrong_goes_to_review(self, tmp_path):
        client = TestClient(make_app(make_site(tmp_path)), base_url="http://localhost")
        assert client.post("/api/review/flag", json={"pair": 77}).json() == {"flagged": True}
        assert client.get("/api/review/next", params={"reviewer": "a"}).json()["items"][0]["pair"] == 77
        assert client.post("/api/review/flag", json={"pair": PAIRS}).status_code == 400

    def test_looks_wrong_names_the_pair_of_the_audit_not_of_the_index(self, tmp_path):
        numbers = np.full(PAIRS, -1)
        numbers[40:60] = np.arange(20)
        site = replace(make_site(tmp_path), audit_pairs=numbers)
        client = TestClient(make_app(site), base_url="http://localhost")
        assert client.post("/api/review/flag", json={"pair": 47}).json() == {"flagged": True}
        assert client.get("/api/review/next", params={"reviewer": "a"}).json()["items"][0]["pair"] == 7
        refused = client.post("/api/review/flag", json={"pair": 3})
        assert refused.status_code == 400
        assert "has not judged" in refused.json()["detail"]

    def test_without_an_audit_there_is_no_review(self, tmp_path):
        client = TestClient(make_app(make_site(tmp_path, review=False)), base_url="http://localhost")
        assert client.get("/review").status_code == 404
        assert client.get("/api/health").json()["review"] is False


class TestGuard:
    def test_open_hosts_need_a_token(self, site):
        for host in ("0.0.0.0", "192.168.1.5", "example.org", "::"):
            with pytest.raises(InputError, match="--token"):
                make_app(site, host)
        with pytest.raises(InputError, match="16"):
            make_app(site, "0.0.0.0", "short")

    def test_the_token_is_asked_for_and_the_page_hands_it_on(self, site):
        token = "0123456789abcdef"
        client = TestClient(make_app(site, "0.0.0.0", token), base_url="http://example.org")
        assert client.get("/api/pairs/1").status_code == 401
        assert client.get("/api/pairs/1", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/pairs/1", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/api/health").status_code == 200
        assert client.get("/", params={"token": token}).status_code == 200
        assert client.get("/api/pairs/1").status_code == 200  # by the cookie the page set

    def test_a_strangers_page_cannot_reach_loopback(self, site):
        rebound = TestClient(make_app(site), base_url="http://evil.example")
        assert rebound.get("/api/pairs/1").status_code == 421
        client = TestClient(make_app(site), base_url="http://127.0.0.1:8000")
        foreign = client.post("/api/search", json={"text": "17"}, headers={"origin": "http://evil.example"})
        assert foreign.status_code == 403
        own = client.post("/api/search", json={"text": "17"}, headers={"origin": "http://127.0.0.1:8000"})
        assert own.status_code == 200

    def test_bodies_have_a_limit_announced_or_not(self, client):
        assert client.post("/api/search", content=b"x" * (13 << 20)).status_code == 413

        def endless():
            for _ in range(14):
                yield b"x" * (1 << 20)

        assert client.post("/api/search", content=endless()).status_code == 413
