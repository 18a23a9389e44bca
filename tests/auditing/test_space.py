"""Scores and ranks of cells against all scores at once: of vectors, of one network, of several, of a finer one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mispair.auditing.space import Cells, Space, space_of
from mispair.models import build_model
from mispair.models.saf import SAFConfig
from mispair.models.vse import VSEConfig
from mispair.retrieval.scoring import encode_images, encode_texts, score_grid
from mispair.workflows.assemble import input_sizes
from tests.synthetic import tiny_data


@pytest.fixture(scope="module")
def data():
    return tiny_data(pictures=24)


def _network(data, config):
    torch.manual_seed(0)
    return build_model(config, input_sizes(data))


def _all_scores(models, data):
    """(I, M), the obvious way."""
    grids = []
    for model in models:
        images = encode_images(model, [data.image_batch(np.arange(len(data.images)))])
        texts = encode_texts(model, [data.text_batch(np.arange(len(data.image_of_text)))])
        grids.append(score_grid([model], [images], [texts]))
    return torch.stack(grids).mean(0).numpy()


def _ranks(scores):
    """Rank of each cell in its row, from 1, ties against it."""
    return (scores[:, None, :] >= scores[:, :, None] - 1e-6).sum(2)


VSE = VSEConfig(embed=16, word_dim=8, words="bag")


@pytest.mark.parametrize("several", [False, True])
def test_vectors_are_enough_for_a_cosine(data, several):
    models = [_network(data, VSE)]
    if several:
        torch.manual_seed(5)
        models.append(build_model(VSE, input_sizes(data)))
    space = space_of(models, data)
    assert space.fine is None
    expected = _all_scores(models, data)
    rows, cols = (grid.ravel() for grid in np.indices(expected.shape))
    cells = space.measure(rows, cols)
    assert np.allclose(cells.score, expected[rows, cols], atol=1e-5)
    assert np.array_equal(cells.caption_rank.reshape(expected.shape), _ranks(expected))
    assert np.array_equal(cells.image_rank.reshape(expected.shape), _ranks(expected.T).T)


def test_some_rows_of_each_side(data):
    models = [_network(data, VSE)]
    images, texts = np.array([3, 0, 7]), np.array([5, 1, 2, 30])
    space = space_of(models, data, image_rows=images, text_rows=texts)
    expected = _all_scores(models, data)[np.ix_(images, texts)]
    assert np.allclose((space.images @ space.texts.T).numpy(), expected, atol=1e-5)


def test_a_finer_network_scores_its_shortlists(data):
    model = _network(data, SAFConfig(embed=16, sim=8, word_dim=8))
    told = []
    space = space_of([model], data, lambda what, done, total: told.append((what, done, total)))
    assert space.fine is not None
    expected = _all_scores([model], data)
    rows, cols = (grid.ravel() for grid in np.indices(expected.shape))
    assert np.allclose(space.score(rows, cols), expected[rows, cols], atol=1e-5)
    for (scores, partners), grid, other in zip(
        space.shortlists, (expected, expected.T), expected.shape[::-1], strict=True
    ):
        assert partners.shape == (len(grid), min(20, other))
        assert np.allclose(scores.numpy(), np.take_along_axis(grid, partners.numpy(), 1), atol=1e-5)
    # Images are few, so that all of them are on the shortlist of a text: its ranks are those of the finer score.
    cells = space.measure(rows, cols)
    assert len(expected) <= 20
    assert np.array_equal(cells.image_rank.reshape(expected.shape), _ranks(expected.T).T)
    assert {what for what, _, _ in told} >= {
        "encoding images",
        "encoding texts",
        "shortlisting",
        "scoring the shortlists",
    }
    assert ("encoding images", len(expected), len(expected)) in told


def test_a_cell_beyond_the_shortlist_keeps_its_rank():
    images, texts = torch.eye(2), torch.tensor([[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.7, 0.0]])
    listed = torch.tensor([[0.1, 0.5], [0.0, 0.0]]), torch.tensor([[0, 1], [0, 1]])
    by_text = torch.zeros(4, 1), torch.zeros(4, 1, dtype=torch.long)
    fine = {(0, 0): 0.1, (0, 1): 0.5, (0, 3): 0.9}
    space = Space(
        images, texts, lambda r, c, why: np.array([fine[k] for k in zip(r, c, strict=True)], "f4"), (listed, by_text)
    )
    cells = space.measure(np.array([0, 0, 0]), np.array([0, 1, 3]))
    assert cells.score.tolist() == pytest.approx([0.1, 0.5, 0.9])
    assert cells.caption_rank.tolist() == [2, 1, 4]


def test_evidence_grows_with_suspicion():
    ranks, rivals = (np.array([1, 10]), np.array([2, 20])), (np.array([-0.2, 0.4]), np.array([-0.1, 0.3]))
    cells = Cells(np.array([0.5, 0.1], np.float32), *ranks, *rivals)
    assert cells.evidence(100, 1000) == pytest.approx(
        np.array(
            [
                [-0.5, np.log(1 / 1000), np.log(2 / 100), -0.2, -0.1],
                [-0.1, np.log(10 / 1000), np.log(20 / 100), 0.4, 0.3],
            ]
        )
    )
