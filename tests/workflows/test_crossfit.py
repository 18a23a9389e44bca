"""Cross-fitting: what it hands over, and that an audit takes what the other pairs say beside it."""

import numpy as np
import pytest
import torch

from mispair.data.untrained import untrained_vectors
from mispair.functional.leave_one_out import OtherPairs
from mispair.progress import silent
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.workflows import audit as workflow
from mispair.workflows.crossfit import cross_fit
from mispair.workflows.train import train
from tests.synthetic import tiny_config, tiny_data

SETS = ("data.limit=60", "data.noise.rate=0.4", "train.epochs=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(tiny_config(*SETS), folder)
    return folder


def test_repaired_cells_are_named_by_rows_of_the_whole_data():
    data = tiny_data(rate=0.4)
    held = cross_fit(tiny_config("train.epochs=2"), data, RecallEvaluator(data), 2, silent)
    assert len(held.image_rows) == len(held.text_rows) == len(held.repaired)
    # Each half holds its own images and the texts shown with them: no cell is half of one and half of the other.
    image_of_text = np.empty(int(data.table.text_rows.max()) + 1, np.int64)
    image_of_text[data.table.text_rows] = data.table.image_rows
    together = {image: set() for image in range(len(data.images))}
    for image, other in zip(held.image_rows.tolist(), image_of_text[held.text_rows].tolist(), strict=True):
        together[image].add(other)
    reached, todo = set(), [int(held.image_rows[0])]
    while todo:
        image = todo.pop()
        if image not in reached:
            reached.add(image)
            todo += together[image]
    assert 0 < len(reached) <= len(data.images) / 2 + 1
    given = set(zip(data.table.image_rows.tolist(), data.table.text_rows.tolist(), strict=True))
    assert not given & set(zip(held.image_rows.tolist(), held.text_rows.tolist(), strict=True))


def test_what_the_other_pairs_say_is_asked_unless_the_networks_learned_the_pairs(folder, monkeypatch):
    asked = []
    judge = workflow.judge
    monkeypatch.setattr(workflow, "judge", lambda *a, **k: asked.append(k["more_evidence"]) or judge(*a, **k))
    workflow.audit(folder, folds=0)
    workflow.audit(folder, folds=2)
    assert asked[0] is None
    data = workflow.load_run(folder).open_split("train")
    vectors = untrained_vectors(data)
    images, texts = torch.from_numpy(vectors.images), torch.from_numpy(vectors.texts)
    others = OtherPairs(images, texts, data.table.image_rows, np.ones(len(data)))
    said = asked[1](data.table.image_rows, data.table.text_rows, np.ones(len(data)))
    assert np.allclose(said[:, 0], others.disagreement(data.table.image_rows, np.arange(len(data))))
