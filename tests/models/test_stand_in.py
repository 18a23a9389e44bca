"""The stand-in learns from the logits and touches nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import kl_div

from mispair.errors import InputError
from mispair.models import fit_stand_in
from mispair.models.stand_in import SCALE, SHARP, StandIn, lesson
from tests.models.batches import SLOTS, images, tiny, words


def test_the_lesson_is_the_gradient_of_the_divergence() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 7, dtype=torch.float64)
    student = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    teacher = (logits - logits.mean()) / logits.std(correction=0) * SHARP
    loss = student.new_zeros(())
    for axis, queries in ((0, 7), (1, 5)):
        pair = student.log_softmax(axis), teacher.log_softmax(axis)
        loss = loss + kl_div(*pair, log_target=True, reduction="sum") / queries
    loss.backward()
    torch.testing.assert_close(lesson(logits, student.detach()), student.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["sgr", "saf", "imram"])
def test_scores_and_gradients_of_the_rest_are_those_without_it(name: str) -> None:
    """Initial draws come last, so both models start alike."""
    found: list[tuple[Tensor, dict[str, Tensor]]] = []
    for width in (None, 8):
        torch.manual_seed(1)
        model = tiny(name, stand_in=width).train()
        if width is None:
            state = model.state_dict()
        else:
            model.load_state_dict(state, strict=False)
        scores = model.similarity(
            model.encode_images(*images([SLOTS] * 5)), model.encode_texts(*words([3, 1, 6, 2, 4]))
        )
        scores[0, 1].backward()
        found.append((scores.detach(), {k: p.grad for k, p in model.named_parameters() if p.grad is not None}))
    (plain, gradients), (other, with_it) = found
    assert torch.equal(plain, other)
    for key, gradient in gradients.items():
        assert torch.equal(with_it[key], gradient), key
    taught = [gradient for key, gradient in with_it.items() if key.startswith("stand_in")]
    assert len(taught) == 4
    assert all(0 < gradient.norm() < 100 * SCALE for gradient in taught)


def test_it_learns_to_rank_like_the_logits() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(40, 6), torch.randn(50, 6)
    logits = (left @ right.T).requires_grad_()
    maps = StandIn(6, 16)
    optimizer = torch.optim.Adam(maps.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        (
            maps.follow(logits, maps.cosines(left, right)) * 0
        ).sum().backward()  # a satisfied loss: the lesson comes all the same
        optimizer.step()
    cheap = maps.images(left) @ maps.texts(right).T
    best = logits.argmax(1)
    assert (cheap.topk(5, 1).indices == best[:, None]).any(1).float().mean() > 0.9


@pytest.mark.parametrize("name", ["sgr", "saf", "imram"])
def test_it_is_silent_outside_training(name: str) -> None:
    model = tiny(name, stand_in=8).eval()
    scores = model.similarity(model.encode_images(*images([SLOTS] * 3)), model.encode_texts(*words([3, 1])))
    scores.sum().backward()
    assert model.stand_in.image.weight.grad is None
    pooled = model.pool_images(model.encode_images(*images([SLOTS] * 3)))
    assert pooled.shape == (3, 8)


@pytest.mark.parametrize("name", ["sgr", "saf", "imram"])
def test_fitting_makes_it_rank_like_the_model_and_changes_nothing_else(name: str) -> None:
    model = tiny(name, stand_in=16).train()
    lengths = [3, 1, 6, 2, 4, 5, 7, 3, 2, 6]
    with torch.no_grad():
        model.eval()
        pictures, texts = model.encode_images(*images([SLOTS] * 10)), model.encode_texts(*words(lengths))
        scores = model.similarity(pictures, texts)
        model.train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    fit_stand_in(model, [(pictures, texts)], rounds=150, rate=1e-2)
    assert model.training
    changed = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    assert changed
    assert all(key.startswith("stand_in.") for key in changed)
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    cheap = model.pool_images(pictures) @ model.pool_texts(texts).T
    assert (cheap.argmax(0) == scores.argmax(0)).float().mean() >= 0.8
    with pytest.raises(InputError, match="no stand-in to fit"):
        fit_stand_in(tiny(name), [(pictures, texts)])


def test_a_model_learns_on_where_fitting_failed() -> None:
    model = tiny("sgr", stand_in=8).train()
    model.words.eval()

    def batches():  # type: ignore[no-untyped-def]
        assert not model.training
        raise OSError("the data is gone")
        yield

    with pytest.raises(OSError, match="gone"):
        fit_stand_in(model, batches())
    assert model.training
    assert not model.words.training
