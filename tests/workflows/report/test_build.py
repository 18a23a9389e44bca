"""What a run or an audit folder tells, and what happens when part of it is missing, moved or damaged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.auditing.facts import RematchTrial
from mispair.auditing.verdicts import Verdicts
from mispair.errors import InputError
from mispair.report.page import render
from mispair.workflows.report import build_page
from tests.report.samples import audit_of
from tests.workflows.report.samples import audit_beside, copied

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


@pytest.mark.parametrize(("true", "said"), [(0.08, "About 8% of them are expected to fit"), (None, "not known")])
def test_the_gallery_says_how_many_of_its_proposals_fit(tmp_path, true, said):
    """Weights alone read as if the heaviest were right."""
    verdicts = audit_of(400)
    trial = None if true is None else RematchTrial(50, 0.9, true, 0.1, 1.0, (0.2, 0.9), (true, true))
    replace(verdicts, facts=replace(verdicts.facts, rematch=trial, conclusive=True)).save(tmp_path / "audit")
    page = build_page(tmp_path / "audit")
    assert said in page.gallery.how
    assert said in render(page)


def test_a_page_of_an_audit_without_training_mentions_no_training(tmp_path):
    verdicts = audit_of(60)
    replace(verdicts, facts=replace(verdicts.facts, run=None)).save(tmp_path / "audit")
    page = build_page(tmp_path / "audit")
    assert "training" not in dict(page.provenance)["judging took"]
    assert "full model" not in page.gallery.how


def test_embeddings_alone_read_well(tmp_path):
    verdicts = audit_of(50, captions=[""])
    edges = list(np.linspace(0, 1, 11))
    saved = {
        "edges": edges,
        "counts": [5] * 10,
        "matched": [5 - k / 2 for k in range(10)],
        "mismatched": [k / 2 for k in range(10)],
    }
    facts = replace(verdicts.facts, run=None, data={}, mixture=saved, damage=(), not_sought=("near-duplicate images",))
    replace(verdicts, facts=facts).save(tmp_path / "audit")
    page = build_page(tmp_path / "audit")
    assert page.losses[0].mismatched == pytest.approx([0.05, 0.25, 0.45, 0.65, 0.85])  # two bins each: 50 pairs are few
    assert any("--pictures" in text for text in page.missing)
    assert page.damage == []
    shown = render(page)
    assert (
        "None was found of what was looked for: shifted captions, one caption on many images, one image under many"
        " captions, empty or generic captions." in shown
    )
    assert "Not looked for: near-duplicate images." in shown


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
    assert "believe the audit. mispair audit" in run_page.answer[0], "the way to it follows, not the question again"
    assert "an audit estimates" not in run_page.answer[0]


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


# ----------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_folders_that_are_nothing(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="does not exist|neither a run nor an audit"):
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
