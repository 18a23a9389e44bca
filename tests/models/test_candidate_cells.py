"""Training on a shortlist: candidates by the full model, estimates for the rest, exact wherever a model is judged."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from mispair.models.candidate_cells import candidate_cells, completed, worth_it
from mispair.models.finegrained import STEEP
from mispair.models.sgr import SGRConfig
from mispair.models.stand_in import lesson
from mispair.shortlist_scoring import allow_shortlists
from tests.models.batches import SLOTS, images, tiny, words

N = 48


def sides(model):
    torch.manual_seed(3)
    lengths = [2 + i % 5 for i in range(N)]
    return model.encode_images(*images([SLOTS] * N)), model.encode_texts(*words(lengths))


def test_candidates_are_the_best_of_rows_and_columns_and_the_pair_itself():
    torch.manual_seed(0)
    cheap = torch.rand(20, 30)
    chosen = torch.zeros(20, 30, dtype=torch.bool)
    chosen[candidate_cells(cheap, 2)] = True
    for axis in (0, 1):
        assert chosen.gather(axis, cheap.topk(2, axis).indices).all()
    assert chosen[:20, :20].diagonal().all()
    assert chosen.sum() <= 2 * (20 + 30) + 2 * 20


def test_cells_that_come_twice_count_once():
    """As on an accelerator, where nobody looks."""
    cheap, logits = torch.rand(2, 2), torch.tensor([1.0, 5.0, 5.0], requires_grad=True)
    whole, scored = completed(cheap, torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1]), logits)
    assert whole[scored].tolist() == [1, 5]
    whole.diagonal().sum().backward()
    assert logits.grad.tolist() == [1.0, 0.5, 0.5]


def test_the_rest_is_on_the_scale_of_the_logits():
    torch.manual_seed(0)
    cheap = torch.rand(12, 12)
    rows, cols = candidate_cells(cheap, 2)
    whole, _ = completed(cheap, rows, cols, 3 + 7 * cheap[rows, cols])
    torch.testing.assert_close(whole, 3 + 7 * cheap)


def test_a_gradient_that_raises_pairs_lowers_their_rows_and_columns():
    torch.manual_seed(0)
    cheap = torch.rand(40, 40)
    rows, cols = candidate_cells(cheap, 3)
    logits = torch.randn(len(rows)).requires_grad_()
    whole, _ = completed(cheap, rows, cols, logits)
    (whole.log_softmax(0) + whole.log_softmax(1)).diagonal().sum().backward()
    pairs = rows == cols
    assert (logits.grad[pairs] > 0).all()
    assert (logits.grad[~pairs] < 0).float().mean() > 0.95
    assert logits.grad.sum().abs() < 1e-3


def test_candidates_have_the_scores_and_gradients_of_the_grid():
    torch.manual_seed(0)
    model = tiny("sgr", shortlist=2, stand_in=8).train()
    grids = []
    for short in (False, True):
        model.zero_grad()
        torch.manual_seed(1)
        pictures, texts = sides(model)
        if short:
            with allow_shortlists(epoch=2):
                logits = model.similarity(pictures, texts)
        else:
            logits = model.similarity(pictures, texts)
        logits.diagonal().sum().backward()  # the pairs themselves are always scored
        grids.append((logits.detach(), model.local_map.weight.grad.clone()))
    (exact, gradient), (estimated, same) = grids
    torch.testing.assert_close(estimated.diagonal(), exact.diagonal(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(same, gradient, rtol=1e-3, atol=1e-5)
    equal = torch.isclose(estimated, exact, rtol=1e-4, atol=1e-5)
    assert N < equal.sum() < 0.3 * N * N


def test_a_model_that_is_judged_scores_everything():
    torch.manual_seed(0)
    model, plain = (tiny("sgr", shortlist=k, stand_in=8).eval() for k in (2, None))
    plain.load_state_dict(model.state_dict())
    pictures, texts = sides(model)
    with torch.no_grad():
        assert torch.equal(model.similarity(pictures, texts), plain.similarity(pictures, texts))
        with allow_shortlists(epoch=2):
            assert not torch.allclose(model.similarity(pictures, texts), plain.similarity(pictures, texts))


def test_before_the_shortlist_means_are_compared_and_the_full_model_rests():
    torch.manual_seed(0)
    model = tiny("sgr", shortlist=2, shortlist_after=3, stand_in=8).train()
    pictures, texts = sides(model)
    with allow_shortlists(epoch=2):
        logits = model.similarity(pictures, texts)
        some = torch.tensor([0, 5]), torch.tensor([7, 5])
        torch.testing.assert_close(model.paired(pictures, texts, *some), logits[some])
    mean = [torch.stack([v[m].mean(0) for v, m in zip(e.values, e.mask, strict=True)]) for e in (pictures, texts)]
    torch.testing.assert_close(logits, STEEP * torch.cosine_similarity(mean[0][:, None], mean[1], dim=-1))
    logits.diagonal().sum().backward()
    assert model.local_map.weight.grad is None
    assert model.stand_in.image.weight.grad.abs().sum() > 0
    assert sum(p.grad is not None for p in model.parameters()) > 4, "the encoders and the stand-in learn"


def test_small_grids_are_scored_whole():
    assert worth_it(128, 128, 4)
    assert not worth_it(8, 8, 2)


def test_the_lesson_among_all_cells_is_the_lesson():
    torch.manual_seed(0)
    logits, student = torch.randn(5, 7), torch.randn(5, 7)
    everywhere = torch.ones(5, 7, dtype=torch.bool)
    torch.testing.assert_close(lesson(logits, student, everywhere), lesson(logits, student))
    scored = torch.rand(5, 7) < 0.5
    scored[:, 0] = scored[0] = True
    assert (lesson(logits, student, scored)[~scored] == 0).all()


def test_a_shortlist_needs_a_stand_in():
    with pytest.raises(ValidationError, match="cannot go without model.stand_in"):
        SGRConfig(shortlist=4, stand_in=None)
