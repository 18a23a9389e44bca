"""Proposals for a run that nobody audited."""

from types import SimpleNamespace

import numpy as np
import pytest

from mispair.models import InputSizes, build_model, model_preset
from mispair.workflows.report import sample_proposals
from mispair.workflows.report.sample_proposals import propose_from_sample
from mispair.workflows.trained_run import load_run


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


@pytest.mark.parametrize(("name", "cells"), [("vse", 1_200_000), ("dual", 1_200_000), ("imram", 100_000)])
def test_as_many_scores_are_asked_for_as_the_model_makes_cheaply(data, monkeypatch, name, cells):
    config = model_preset(name, "small").model_copy(update={"embed": 8})
    run = SimpleNamespace(models=[build_model(config, InputSizes(image_width=8, text_width=8))])
    asked = []
    monkeypatch.setattr(sample_proposals, "_sample", lambda _, flagged, most: asked.append(most) or flagged[:1])
    assert sample_proposals.propose_from_sample(run, data, np.arange(3)) == []
    assert asked == [cells]
