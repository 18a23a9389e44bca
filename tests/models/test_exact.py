"""SGR and SAF equal the per-caption loop: scores, loss, every gradient, and the running statistics."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from mispair.models import finegrained
from mispair.models.kernels import similarity_vectors as vectors
from mispair.models.kernels.caption_groups import padded
from tests import model_oracles as oracle
from tests.models.batches import SLOTS, images, sequences, tiny, unpadded, words

CASES = {
    "ragged captions": ([SLOTS] * 7, [3, 9, 1, 5, 5, 3, 12]),
    "one caption": ([SLOTS] * 4, [6]),
    "one word each": ([SLOTS] * 3, [1, 1, 1]),
    "equal lengths": ([SLOTS] * 5, [4, 4, 4, 4, 4]),
    "square": ([SLOTS] * 11, [2, 7, 7, 3, 1, 10, 4, 4, 7, 2, 5]),
}
LOSSES = {
    "dense": lambda scores: (scores * _weights(scores)).sum(),
    "hardest": lambda scores: oracle.hardest_triplet(
        scores[:, : len(scores)] if scores.shape[1] >= len(scores) else scores[: scores.shape[1]]
    ),
    "one cell": lambda scores: scores[-1, 0],
}


def _weights(scores: Tensor) -> Tensor:
    return torch.randn(scores.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64).to(scores.dtype)


def _ours(model: nn.Module, pictures: tuple[Tensor, Tensor], texts: tuple[Tensor, Tensor]) -> Tensor:
    return model.similarity(model.encode_images(*pictures), model.encode_texts(*texts))


def _theirs(model: nn.Module, pictures: tuple[Tensor, Tensor], texts: tuple[Tensor, Tensor]) -> Tensor:
    regions = oracle.encode_regions(model, unpadded(*pictures))
    return oracle.scores(model, regions, oracle.encode_words(model, unpadded(*texts)))


def _assert_same_gradients(ours: nn.Module, theirs: nn.Module, tolerance: float) -> None:
    scale = torch.cat([p.grad.flatten() for p in theirs.parameters()]).norm()
    assert scale > 0
    for (key, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None, key
        assert (mine.grad - other.grad).norm() <= tolerance * max(float(other.grad.norm()), 1e-3 * float(scale)), key


def _assert_same_buffers(ours: nn.Module, theirs: nn.Module, tolerance: float) -> None:
    for (key, mine), other in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        if not key.endswith("num_batches_tracked"):
            torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance, msg=key)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_scores_loss_and_gradients_equal_the_loop(name: str, training: bool, case: str, loss: str) -> None:
    ours = tiny(name).train(training)
    theirs = copy.deepcopy(ours)
    pictures, texts = images(CASES[case][0]), words(CASES[case][1])
    mine, other = _ours(ours, pictures, texts), _theirs(theirs, pictures, texts)
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    mine_loss, other_loss = LOSSES[loss](ours.link(mine)), LOSSES[loss](other.sigmoid())
    torch.testing.assert_close(mine_loss, other_loss, rtol=1e-9, atol=1e-11)
    mine_loss.backward()
    other_loss.backward()
    if loss != "hardest" or other_loss > 0:
        _assert_same_gradients(ours, theirs, 1e-8)
    _assert_same_buffers(ours, theirs, 1e-9)


@pytest.mark.parametrize("loss", ["dense", "hardest"])
@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_float32_is_within_1e_5_or_as_near_the_truth_as_the_loop(name: str, loss: str) -> None:
    """The truth is the loop in float64. A dot product near zero makes the gradient of the word norm ill-conditioned:
    there the loop itself is off by more than 1e-5 in float32, and no order of the same sums can do better."""
    for seed in range(100, 105):
        ours = tiny(name, double=False, embed=64, sim=32).train()
        loop, truth = copy.deepcopy(ours), copy.deepcopy(ours).double()
        features, mask = images([SLOTS] * 9, seed)
        texts = words([3, 9, 1, 5, 5, 3, 12, 8, 8], seed)
        scores = {
            "ours": _ours(ours, (features.float(), mask), texts),
            "loop": _theirs(loop, (features.float(), mask), texts),
            "truth": _theirs(truth, (features.float().double(), mask), texts),
        }
        assert scores["ours"].dtype == torch.float32
        torch.testing.assert_close(scores["ours"].double(), scores["truth"], rtol=1e-5, atol=1e-6)
        for value in scores.values():
            LOSSES[loss](value.sigmoid()).backward()
        found, rounded, exact = (
            torch.cat([p.grad.double().flatten() for p in model.parameters()]) for model in (ours, loop, truth)
        )
        own_error = float((rounded - exact).norm() / exact.norm())
        assert float((found - exact).norm() / exact.norm()) <= max(1e-5, 5 * own_error), seed


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_images_with_different_numbers_of_regions(name: str, training: bool) -> None:
    ours = tiny(name, slots=None).train(training)
    theirs = copy.deepcopy(ours)
    pictures, texts = images([4, 1, 9, 2, 7]), words([3, 8, 1])
    mine, other = _ours(ours, pictures, texts), _theirs(theirs, pictures, texts)
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    LOSSES["dense"](mine).backward()
    LOSSES["dense"](other).backward()
    _assert_same_gradients(ours, theirs, 1e-8)
    _assert_same_buffers(ours, theirs, 1e-9)


@pytest.mark.parametrize("text", ["gru", "linear"])
def test_features_on_the_text_side(text: str) -> None:
    ours = tiny("sgr", words=False, text=text).train()
    theirs = copy.deepcopy(ours)
    pictures, texts = images([SLOTS] * 4), sequences([3, 1, 6])
    mine, other = _ours(ours, pictures, texts), _theirs(theirs, pictures, texts)
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    LOSSES["dense"](mine).backward()
    LOSSES["dense"](other).backward()
    _assert_same_gradients(ours, theirs, 1e-8)


def test_vectors_on_both_sides_are_sets_of_one() -> None:
    ours = tiny("sgr", slots=1, words=False, text="linear").train()
    theirs = copy.deepcopy(ours)
    pictures, texts = images([1] * 5), sequences([1] * 4)
    torch.testing.assert_close(_ours(ours, pictures, texts), _theirs(theirs, pictures, texts), rtol=1e-9, atol=1e-11)


def test_saf_with_the_statistics_of_the_batch() -> None:
    ours = tiny("saf", bn="batch").train()
    theirs = copy.deepcopy(ours)
    pictures, texts = images([SLOTS] * 5), words([3, 8, 1, 3])
    regions = oracle.encode_regions(theirs, unpadded(*pictures))
    other = oracle.saf_batch_scores(theirs, regions, oracle.encode_words(theirs, unpadded(*texts)))
    mine = _ours(ours, pictures, texts)
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    LOSSES["dense"](mine).backward()
    LOSSES["dense"](other).backward()
    _assert_same_gradients(ours, theirs, 1e-8)
    _assert_same_buffers(ours, theirs, 1e-9)
    assert int(ours.filter_norm.num_batches_tracked) == 1


def test_saf_counts_one_batch_per_caption_as_published() -> None:
    model = tiny("saf").train()
    _ours(model, images([SLOTS] * 3), words([2, 5, 1, 4]))
    assert int(model.filter_norm.num_batches_tracked) == 4


@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_the_same_dropout_draws_give_the_same_scores_and_gradients(name: str) -> None:
    ours = tiny(name, dropout=0.4).train()
    theirs = copy.deepcopy(ours)
    pictures, texts = images([SLOTS] * 6), words([3, 7, 1, 5, 2, 7])
    torch.manual_seed(5)
    encoded_images, encoded_texts = ours.encode_images(*pictures), ours.encode_texts(*texts)
    torch.manual_seed(6)
    LOSSES["hardest"](ours.similarity(encoded_images, encoded_texts).sigmoid()).backward()

    torch.manual_seed(5)
    regions, parts = theirs.encode_images(*pictures), theirs.encode_texts(*texts)
    torch.manual_seed(6)
    oracle.visual_global(copy.deepcopy(theirs), oracle.unpad(regions))  # the images draw first
    m, _, width = parts.values.shape
    drops = [
        torch.dropout(torch.ones(count, width, dtype=torch.float64), 0.4, True) for count in (int(texts[1].sum()), m)
    ]
    by_text = zip(drops[0].split(texts[1].sum(1).tolist()), drops[1], strict=True)
    torch.manual_seed(6)
    other = oracle.scores(theirs, oracle.unpad(regions), oracle.unpad(parts), list(by_text))
    LOSSES["hardest"](other.sigmoid()).backward()
    _assert_same_gradients(ours, theirs, 1e-8)


@pytest.mark.parametrize("loss", ["dense", "hardest"])
@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_padded_groups_and_other_block_sizes_change_nothing(
    name: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The accelerator's plan: no lengths known, captions keep their padding; and blocks of a few rows."""
    plain, other = tiny(name).train(), tiny(name).train()
    pictures, texts = images([SLOTS] * 7), words([3, 9, 1, 5, 5, 3, 12])
    expected = _ours(plain, pictures, texts)
    LOSSES[loss](expected.sigmoid()).backward()
    monkeypatch.setattr(finegrained, "by_length", padded)
    monkeypatch.setattr(vectors, "block_rows", lambda device, width: 25)
    monkeypatch.setattr(vectors, "SPARSE", 0.0)
    found = _ours(other, pictures, texts)
    LOSSES[loss](found.sigmoid()).backward()
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    _assert_same_gradients(other, plain, 1e-8)
    _assert_same_buffers(other, plain, 1e-9)


@pytest.mark.parametrize("loss", ["dense", "hardest"])
def test_checkpointed_steps_give_the_same_gradients(loss: str) -> None:
    plain, other = tiny("sgr").train(), tiny("sgr", checkpoint=True).train()
    pictures, texts = images([SLOTS] * 7), words([3, 9, 1, 5, 5, 3, 12])
    for model in (plain, other):
        LOSSES[loss](_ours(model, pictures, texts).sigmoid()).backward()
    _assert_same_gradients(other, plain, 1e-10)


@pytest.mark.parametrize("counts", [[SLOTS] * 7, [2, 5, 1, 4, 3, SLOTS, 2]], ids=["full", "ragged"])
@pytest.mark.parametrize("loss", ["dense", "hardest"])
def test_cells_computed_again_give_the_same_scores_and_gradients(loss: str, counts: list[int]) -> None:
    plain, other = tiny("sgr").train(), tiny("sgr").train()
    pictures, texts = images(counts), words([3, 9, 1, 5, 5, 3, 12])
    expected = _ours(plain, pictures, texts)
    found = other.similarity(other.encode_images(*pictures), other.encode_texts(*texts), sparse=True)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    for scores in (expected, found):
        LOSSES[loss](scores.sigmoid()).backward()
    _assert_same_gradients(other, plain, 1e-8)


@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_a_sparse_gradient_may_be_asked_for_in_evaluation_mode(name: str) -> None:
    model = tiny(name).eval()
    sides = model.encode_images(*images([SLOTS] * 3)), model.encode_texts(*words([3, 9, 1]))
    torch.testing.assert_close(model.similarity(*sides, sparse=True), model.similarity(*sides), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_any_number_of_graph_steps(steps: int) -> None:
    ours = tiny("sgr", steps=steps).train()
    theirs = copy.deepcopy(ours)
    pictures, texts = images([SLOTS] * 4), words([3, 5, 1])
    mine, other = _ours(ours, pictures, texts), _theirs(theirs, pictures, texts)
    LOSSES["dense"](mine).backward()
    LOSSES["dense"](other).backward()
    _assert_same_gradients(ours, theirs, 1e-8)


def test_cells_without_gradient_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss on few cells packs them; the dense backward must not run."""
    model = tiny("sgr").train()
    scores = _ours(model, images([SLOTS] * 7), words([4, 9, 1, 5, 5, 3, 12]))
    seen: list[int] = []
    block = vectors._block_backward

    def spy(side, *args):  # type: ignore[no-untyped-def]
        seen.append(side.regions.shape[0] * side.words.shape[1])
        return block(side, *args)

    monkeypatch.setattr(vectors, "_block_backward", spy)
    (scores[0, 1] + scores[3, 2]).backward()
    assert sum(seen) == 2


def test_a_second_derivative_is_refused() -> None:
    model = tiny("sgr").train()
    scores = _ours(model, images([SLOTS] * 3), words([2, 3]))
    (grad,) = torch.autograd.grad(scores.sigmoid().sum(), [model.local_map.weight], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
