"""What a run or an audit folder tells, and what happens when part of it is missing, moved or damaged."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from mispair.audit.verdicts import Verdicts
from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import TokenStore
from mispair.errors import InputError
from mispair.report.page import render
from mispair.workflows.report import build_page, training
from mispair.workflows.report.sample_proposals import propose_from_sample
from mispair.workflows.report.words import _spans, judge_words
from mispair.workflows.train import train as train_run
from mispair.workflows.trained_run import load_run
from tests.report.samples import audit_of
from tests.synthetic import tiny_config


def train(folder, *sets):
    config = tiny_config("data.noise.rate=0.5", *sets)
    train_run(config, folder)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(
        tmp_path_factory.mktemp("report") / "tiny", "method.split.when_unimodal=posterior"
    )  # too short for two groups


@pytest.fixture(scope="module")
def data(trained):
    return load_run(trained).open_split("train")


def audit_beside(folder, data, run, captions=None, **facts):
    """An audit of the pairs of `data`."""
    table = data.table
    verdicts = audit_of(len(data), captions or [table.captions[k] for k in table.text_rows], run=run)
    about = {"path": "scenes", "split": "train", "config": facts.pop("config", None)}
    shown = pa.array([table.image_ids[row] for row in table.image_rows])
    named = verdicts.table.set_column(2, verdicts.table.schema.field("image_id"), shown)
    verdicts = Verdicts(named, verdicts.facts)
    replace(verdicts, facts=replace(verdicts.facts, data=about, **facts)).save(folder)
    return folder


def copied(source, target):
    """A run folder whose files can be changed."""
    for file in source.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    return target


# ------------------------------------------------------------------------------------------------------- a run


def test_a_run_tells_everything_it_knows(trained):
    page = build_page(trained)
    assert [entry.split for entry in page.recalls] == ["dev", "test"]
    assert page.curves[0].name == "dev rSum"
    assert len(page.curves[0].values) == 4
    assert page.history.epochs == [2, 3, 4]
    assert len(page.pairs.rows) == page.pairs.of == page.history.pairs
    assert all(a.p_mismatch >= b.p_mismatch for a, b in zip(page.pairs.rows, page.pairs.rows[1:], strict=False))
    assert page.truth["auroc"] > 0
    assert page.damage is None
    assert page.configuration.startswith("seed:")
    assert {"data hash", "model hash", "configuration hash", "versions"} <= {name for name, _ in page.provenance}
    assert any("mispair audit" in text for text in page.missing)
    assert len(page.answer) == 3
    render(page)


def test_losses_by_hand(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    rng = np.random.default_rng(0)
    signal = np.concatenate([rng.normal(1, 0.1, 700), rng.normal(3, 0.1, 300)])
    columns = {"signal": signal, "posterior": (signal > 2).astype(float), "mismatched": signal > 2}
    pq.write_table(pa.table(columns), folder / "split.parquet" / "epoch-0009.parquet")
    found = training.losses(training.open_run_folder(folder))
    assert sum(found.counts) == 1000
    assert 1.4 < found.threshold < 2.6
    assert "called 30.0% of the pairs mismatched; it is no estimate" in found.said
    assert "around 1.00 for matched pairs, one around 2.99" in found.said
    step = found.grid[1] - found.grid[0]
    width = found.edges[1] - found.edges[0]
    areas = [sum(curve) * step / width for curve in found.curves]
    assert areas == pytest.approx([700, 300], rel=0.03), "a component's curve holds as many pairs as it claims"
    middles = [(a + b) / 2 for a, b in zip(found.edges, found.edges[1:], strict=False)]
    called = [share for middle, share, count in zip(middles, found.mismatched, found.counts, strict=True) if count]
    assert called == [float(m > 2) for m, count in zip(middles, found.counts, strict=True) if count]


def test_history_by_hand(tmp_path, trained):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_bytes((trained / "config.yaml").read_bytes())
    (folder / "split.parquet").mkdir()
    sides = [[1, 1, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 0, 1, 0]]
    for epoch, row in enumerate(sides, 3):
        columns = {
            "posterior": [0.9 * s for s in row],
            "mismatched": [bool(s) for s in row],
            "signal": [1.0 * s for s in row],
        }
        pq.write_table(pa.table(columns), folder / "split.parquet" / f"epoch-{epoch:04d}.parquet")
    found = training.history(training.open_run_folder(folder), None)
    assert found.epochs == [4, 5, 6]
    assert found.to_matched == [0, 1, 0]
    assert found.to_mismatched == [0, 1, 1]
    assert (found.never, found.pairs) == (3, 5)
    assert found.mismatched == [0.4, 0.4, 0.6]
    assert [(flip.pair_id, flip.flips) for flip in found.most] == [("0", 2), ("3", 1)]
    assert found.most[0].posterior == [0.9, 0.0, 0.9]


def test_costs_and_alignments_are_shown_where_they_were_recorded(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    (folder / "alignment.json").unlink(missing_ok=True)
    for path in (folder / "split.parquet").iterdir():
        table = pq.read_table(path)
        pq.write_table(table.select([name for name in table.column_names if name != "cost"]), path)
    missing = build_page(folder).missing
    assert any(text.startswith("Transport costs") for text in missing)
    assert any(text.startswith("Refined alignments") for text in missing)
    for epoch, apart in ((1, 0.1), (3, 0.8)):
        path = folder / "split.parquet" / f"epoch-{epoch:04d}.parquet"
        table = pq.read_table(path)
        wrong = table["mismatched"].to_numpy(zero_copy_only=False)
        pq.write_table(table.append_column("cost", pa.array(0.1 + apart * wrong)), path)
    alignment = {"epochs": {"1": {}, "3": {"transported": [0.9, 0.1], "untransported": [0.5, 0.5]}}}
    (folder / "alignment.json").write_text(json.dumps(alignment))
    page = build_page(folder)
    early, late = page.costs
    assert (early.title, late.title) == ("early, epoch 2", "late, epoch 4")
    assert early.edges == late.edges
    for part in (early, late):
        assert sum(part.matched) == pytest.approx(1)
        assert sum(part.mismatched) == pytest.approx(1)
    centre = np.asarray(late.edges[:-1])
    assert centre @ late.mismatched - centre @ late.matched == pytest.approx(0.8, abs=0.05)
    assert [part.values for part in page.ranked] == [[0.9, 0.1], [0.5, 0.5]]
    assert not any(text.startswith(("Transport costs", "Refined alignments")) for text in page.missing)


def test_a_plain_run_judges_nobody(tmp_path):
    page = build_page(train(tmp_path / "plain", "method.name=plain", "train.epochs=1"))
    assert page.pairs is None
    assert page.gallery is None
    assert "judges none" in page.answer[0]
    assert any("plain keeps no split" in text for text in page.missing)
    render(page)


def test_an_unfinished_run_says_so(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    (folder / "metrics.json").unlink()
    page = build_page(folder)
    assert [entry.split for entry in page.recalls] == ["dev"]
    assert any("not finished" in text for text in page.caution)


@pytest.mark.parametrize(
    "lost", ["model.safetensors", "metrics.jsonl", "vocabulary.json", "split.parquet/epoch-0001.parquet"]
)
def test_what_is_lost_does_not_stop_the_rest(tmp_path, trained, lost):
    folder = copied(trained, tmp_path / "run")
    (folder / lost).unlink()
    assert "<main>" in render(build_page(folder))


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("metrics.json", "{", "metrics.json is damaged"),
        ("config.yaml", ":", "config.yaml"),
        ("split.parquet/epoch-0003.parquet", "PAR1", "epoch-0003.parquet is damaged"),
    ],
)
def test_damaged_files_cost_one_sentence(tmp_path, trained, file, content, said):
    folder = copied(trained, tmp_path / "run")
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=said):
        build_page(folder)


# --------------------------------------------------------------------------------------------------- an audit


def test_an_audit_brings_its_run_along(tmp_path, trained, data):
    page = build_page(audit_beside(tmp_path / "audit", data, str(trained)))
    assert page.title == "Audit of scenes"
    assert page.recalls
    assert page.history is not None
    assert page.gallery.words is not None
    assert len(page.gallery.cards) == 24
    assert all(card.picture.startswith("data:image/webp") for card in page.gallery.cards)
    assert [kind.name for kind in page.damage] == ["captions repeated"]
    assert "exchanges would raise the scores of two pairs at once" in page.answer[1]
    render(page)


def test_both_were_moved(tmp_path, trained, data):
    copied(trained, tmp_path / "tiny")
    page = build_page(audit_beside(tmp_path / "audit", data, "/elsewhere/tiny"))
    assert page.recalls


def test_the_run_is_gone(tmp_path, data):
    page = build_page(audit_beside(tmp_path / "audit", data, "/elsewhere/gone"))
    assert not page.recalls
    assert page.gallery.words is None
    assert any("/elsewhere/gone" in text for text in page.missing)
    render(page)


def test_the_data_is_another_now(tmp_path, trained, data):
    page = build_page(audit_beside(tmp_path / "audit", data, str(trained), captions=["something else"]))
    assert page.gallery.words is None
    assert any("not what was audited" in text for text in page.missing)


def test_embeddings_alone_read_well(tmp_path):
    verdicts = audit_of(50, captions=[""])
    edges = list(np.linspace(0, 1, 11))
    saved = {
        "edges": edges,
        "counts": [5] * 10,
        "matched": [5 - k / 2 for k in range(10)],
        "mismatched": [k / 2 for k in range(10)],
    }
    facts = replace(verdicts.facts, run=None, data={}, mixture=saved, damage=())
    replace(verdicts, facts=facts).save(tmp_path / "audit")
    page = build_page(tmp_path / "audit")
    assert page.losses[0].mismatched == pytest.approx([k / 10 for k in range(10)])
    assert any("--pictures" in text for text in page.missing)
    assert page.damage == []
    assert "None of the usual kinds of damage" in render(page)


def test_the_worst_come_first_and_the_rest_is_named(tmp_path):
    audit_of(101).save(tmp_path / "audit")
    page = build_page(tmp_path / "audit", rows=7)
    assert len(page.pairs.rows) == 7
    assert page.pairs.of == 101
    everyone = sorted((row.p_mismatch for row in build_page(tmp_path / "audit").pairs.rows), reverse=True)
    assert [row.p_mismatch for row in page.pairs.rows] == everyone[:7]


def test_one_source_of_the_rate(tmp_path, trained, data):
    """Page, summary and card: the audit's estimate, and nothing of the training that could pass for one."""
    folder = audit_beside(tmp_path / "audit", data, str(trained))
    audit = Verdicts.load(folder)
    page = build_page(folder)
    assert f"{audit.facts.rate:.1%}" in page.answer[0]
    assert f"{audit.facts.rate:.1%}" in audit.summary()
    said = " ".join([*page.answer, *page.caution, *(part.said for part in page.losses)])
    assert said.count("estimated rate") == 1
    assert not any("estimated" in curve.name for curve in page.curves)
    card = (trained / "README.md").read_text()
    assert "Estimated" not in card
    assert "interval " not in card
    run_page = build_page(trained)
    assert "an audit estimates" in run_page.answer[0]


def test_a_rate_that_cannot_be_told_is_not_told(tmp_path, data):
    folder = audit_beside(tmp_path / "audit", data, None, conclusive=False)
    answer = " ".join(build_page(folder).answer)
    assert "estimated rate" not in answer
    assert "cannot tell" in answer


def test_pictures_that_are_missing_are_counted_and_said(tmp_path):
    audit_of(60).save(tmp_path / "audit")
    heard = []
    page = build_page(tmp_path / "audit", say=heard.append)
    said = next(text for text in page.missing if text.startswith("Pictures: none of"))
    assert "--pictures" in said
    assert any(line.startswith("pictures: none of") for line in heard)


def test_a_split_of_other_types_costs_one_sentence(tmp_path, trained):
    folder = copied(trained, tmp_path / "run")
    path = folder / "split.parquet" / "epoch-0003.parquet"
    table = pq.read_table(path)
    for name, values in (("posterior", np.full(len(table), 2.0)), ("signal", ["x"] * len(table))):
        other = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
        pq.write_table(other, path)
        with pytest.raises(InputError, match=f"epoch-0003.parquet is damaged .{name}"):
            build_page(folder)


# -------------------------------------------------------------------------------------------------------- words


def test_words_against_the_slow_way(trained, data):
    run = load_run(trained)
    captions = [data.table.captions[0], data.table.captions[7]]
    row = 3
    model, vocabulary = run.models[0], run.vocabulary

    def score(words):
        store = TokenStore.encode([" ".join(words)], vocabulary, 200)
        ids, mask = store.take(np.array([0]))
        images = model.encode_images(*data.image_batch(np.array([row])))
        texts = model.encode_texts(torch.from_numpy(ids), torch.from_numpy(mask))
        return model.link(model.similarity(images, texts)).item()

    effects = []
    for caption in captions:
        words = tokenize(caption)
        effects.append([score(words) - score(words[:k] + words[k + 1 :]) for k in range(len(words))])
    known = [
        e
        for caption, row_ in zip(captions, effects, strict=True)
        for w, e in zip(tokenize(caption), row_, strict=True)
        if w.isalnum()
    ]
    strongest = max(abs(e) for e in known)
    with torch.no_grad():
        found = judge_words(run, data, row, captions)
    for caption, pieces, row_ in zip(captions, found, effects, strict=True):
        assert "".join(piece.text for piece in pieces) == caption
        judged = [(p.text.lower(), p.agreement) for p in pieces if p.agreement is not None]
        expected = [(w, e / strongest) for w, e in zip(tokenize(caption), row_, strict=True) if w.isalnum()]
        assert [w for w, _ in judged] == [w for w, _ in expected]
        assert [e for _, e in judged] == pytest.approx([e for _, e in expected], abs=1e-4)


def test_places_of_words_by_hand():
    caption = 'A dog, "the" dog.'
    assert _spans(caption, tokenize(caption)) == [(0, 1), (2, 5), (5, 6), None, (8, 11), None, (13, 16), (16, 17)]
    assert _spans("İstanbul at night", ["istanbul", "at", "night"]) == [None, None, None]
    assert _spans("", []) == []


def test_hostile_captions_come_back_whole(trained, data):
    captions = ["<b>a</b> \x00 \u202e", "", "a " * 500, "«a» ``b'' ... can't"]
    for caption, pieces in zip(captions, judge_words(load_run(trained), data, 0, captions), strict=True):
        assert "".join(piece.text for piece in pieces) == caption


# ---------------------------------------------------------------------------------------------------- proposals


def test_proposals_are_other_captions_that_score_higher(trained, data):
    run = load_run(trained)
    flagged = np.arange(0, len(data), 3)
    found = propose_from_sample(run, data, flagged)
    assert found
    table = data.table
    model = run.models[0]
    images = model.encode_images(*data.image_batch(np.arange(len(data.images))))
    texts = model.encode_texts(*data.text_batch(np.arange(len(data.texts))))
    scores = model.link(model.similarity(images, texts)).detach().numpy()
    seen = set()
    for one in found:
        image = table.image_rows[one.pair]
        gain = scores[image, table.text_rows[one.proposed]] - scores[image, table.text_rows[one.pair]]
        assert one.gain == pytest.approx(gain, abs=1e-5)
        assert one.gain > 0
        assert 0 < one.weight <= 1
        assert one.proposed in flagged
        assert table.image_rows[one.proposed] != image, "no caption the image already has"
        assert (image, one.proposed) not in seen, "two pairs of one image get two captions"
        seen.add((image, one.proposed))


# ----------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_folders_that_are_nothing(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no folder|neither a run nor an audit"):
        build_page(tmp_path / folder)
    with pytest.raises(InputError, match="--pictures"):
        build_page(tmp_path / "empty", pictures=Path("/absent"))


def test_ten_thousand_pairs_with_long_captions_and_busy_pictures_stay_under_5_mb(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "folder").mkdir()
    for k in range(2000):  # noise is what compresses worst; a few different ones are enough
        path = tmp_path / "folder" / f"image_{k:07d}.jpg"
        if k < 20:
            Image.fromarray(rng.integers(0, 255, (260, 260, 3), np.uint8)).save(path, quality=90)
        else:
            path.symlink_to(f"image_{k % 20:07d}.jpg")
    captions = [f"{k} " + '<a> & "quoted" words ' * 500 for k in range(10_000)]
    audit_of(10_000, captions, data={"path": str(tmp_path / "pairs.csv")}).save(tmp_path / "audit")
    page = render(build_page(tmp_path / "audit"))
    assert len(page.encode()) < 5e6
    assert page.count("data:image/webp") > 80
