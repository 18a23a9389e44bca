"""Scoring in chunks equals scoring at once, for one model and for several; two stages rank as they promise."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mispair.errors import InputError
from mispair.models import model_names
from mispair.retrieval.scoring import encode_images, encode_texts, ensemble, join, score_grid, score_pairs, tiles
from mispair.retrieval.shortlist import candidates, shortlist_scores
from mispair.types import Encoded
from tests.models.batches import images, tiny, words
from tests.models.batches import texts as text_side

COUNTS, LENGTHS = [4, 1, 6, 2, 5, 3, 3], [3, 7, 1, 3, 5, 2, 7, 4, 4, 6, 1]
NAMES = sorted(model_names())


def _name(model: nn.Module) -> str:
    return type(model).__name__.lower()


def _sides(model: nn.Module) -> tuple[Encoded, Encoded]:
    (features, image_mask), (ids, text_mask) = images(COUNTS), text_side(_name(model), LENGTHS)
    picture_batches = [(features[i : i + 3], image_mask[i : i + 3]) for i in range(0, 7, 3)]
    text_batches = [(ids[i : i + 4, :7], text_mask[i : i + 4, :7]) for i in range(0, 11, 4)]
    return encode_images(model, picture_batches), encode_texts(model, text_batches)


def _whole(model: nn.Module) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        grid = model.similarity(
            model.encode_images(*images(COUNTS)), model.encode_texts(*text_side(_name(model), LENGTHS))
        )
        return model.link(grid).float()


@pytest.mark.parametrize("budget", [1, 60_000, 1 << 30])
@pytest.mark.parametrize("name", NAMES)
def test_chunks_equal_the_whole(name: str, budget: int) -> None:
    model = tiny(name, slots=None).train()
    pictures, texts = _sides(model)
    found = score_grid([model], [pictures], [texts], budget_bytes=budget)
    assert model.training  # scoring evaluates, and gives the mode back
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, _whole(model), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("budget", [1, 60_000, 1 << 30])
@pytest.mark.parametrize("name", NAMES)
def test_listed_pairs_are_the_cells_of_the_grid(name: str, budget: int) -> None:
    model = tiny(name, slots=None)
    pictures, texts = _sides(model)
    rows, cols = torch.tensor([6, 0, 3, 3, 6, 1]), torch.tensor([10, 0, 4, 10, 2, 1])
    found = score_pairs([model], [pictures], [texts], rows, cols, budget_bytes=budget)
    torch.testing.assert_close(found, _whole(model)[rows, cols], rtol=1e-6, atol=1e-7)


def test_several_models_score_by_their_mean_and_report_progress() -> None:
    models = [tiny("sgr", slots=None), tiny("saf", slots=None)]
    sides = [_sides(model) for model in models]
    pictures, texts = [s[0] for s in sides], [s[1] for s in sides]
    seen: list[tuple[int, int]] = []
    found = score_grid(
        models, pictures, texts, budget_bytes=60_000, progress=lambda done, total: seen.append((done, total))
    )
    expected = ensemble(_whole(model) for model in models)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(expected, (_whole(models[0]) + _whole(models[1])) / 2)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (2 * 7 * 11, 2 * 7 * 11)
    rows, cols = torch.tensor([0, 5]), torch.tensor([3, 9])
    torch.testing.assert_close(
        score_pairs(models, pictures, texts, rows, cols), expected[rows, cols], rtol=1e-6, atol=1e-7
    )


def test_tiles_cover_the_grid_once_and_obey_the_budget() -> None:
    pictures, texts = _sides(tiny("sgr", slots=None))
    for budget in (1, 60_000, 1 << 30):
        seen = torch.zeros(7, 11, dtype=torch.long)
        for rows, cols in tiles(pictures, texts, budget):
            seen[rows, cols] += 1
            part = pictures.values[rows].nbytes
            assert part <= max(budget // 16, pictures.values[:1].nbytes)
        assert (seen == 1).all()


def test_bf16_is_near_and_still_float32_outside() -> None:
    model = tiny("saf", slots=None, double=False)
    (features, mask), texts = images(COUNTS), words(LENGTHS)
    pictures, encoded = encode_images(model, [(features.float(), mask)]), encode_texts(model, [texts])
    rough = score_grid([model], [pictures], [encoded], precision="bf16")
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, score_grid([model], [pictures], [encoded]), rtol=0.05, atol=0.02)


def test_candidates_by_hand() -> None:
    cheap = torch.tensor([[0.9, 0.1, 0.2], [0.8, 0.7, 0.3]])
    assert candidates(cheap, 1).tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_shortlist_is_exhaustive(name: str) -> None:
    model = tiny(name, slots=None)
    pictures, texts = _sides(model)
    found = shortlist_scores([model], [pictures], [texts], shortlist=11)
    torch.testing.assert_close(found.scores, _whole(model), rtol=1e-6, atol=1e-7)
    assert (found.share, found.recall_i2t, found.recall_t2i) == (1.0, 1.0, 1.0)
    exhaustive = shortlist_scores([model], [pictures], [texts], shortlist=None)
    torch.testing.assert_close(exhaustive.scores, found.scores, rtol=1e-6, atol=1e-7)


def test_what_the_shortlist_leaves_out_ranks_below_in_the_order_of_stage_one() -> None:
    model = tiny("sgr", slots=None)
    pictures, texts = _sides(model)
    with torch.no_grad():
        cheap = (model.eval().pool_images(pictures) @ model.pool_texts(texts).T).float()
    found = shortlist_scores([model], [pictures], [texts], shortlist=2, depth=3)
    chosen = candidates(cheap, 2)
    assert found.share == pytest.approx(float(chosen.float().mean()))
    torch.testing.assert_close(found.scores[chosen], _whole(model)[chosen], rtol=1e-6, atol=1e-7)
    assert found.scores[~chosen].max() < found.scores[chosen].min()
    outside = ~chosen
    assert torch.equal(found.scores[outside].argsort(), cheap[outside].argsort())
    best = _whole(model).topk(3, 1).indices
    assert found.recall_i2t == pytest.approx(float(chosen.gather(1, best).float().mean()))
    best = _whole(model).topk(3, 0).indices
    assert found.recall_t2i == pytest.approx(float(chosen.gather(0, best).float().mean()), abs=0.1)
    assert shortlist_scores([model], [pictures], [texts], shortlist=2, check=0).recall_i2t is None


def test_bad_input_is_refused_in_a_sentence() -> None:
    model = tiny("vse", slots=None)
    pictures, texts = _sides(model)
    with pytest.raises(InputError, match="each model needs its own"):
        score_grid([model, model], [pictures], [texts])
    with pytest.raises(InputError, match="the same items"):
        score_grid([model, model], [pictures, pictures.take(slice(0, 2))], [texts, texts])
    with pytest.raises(InputError, match="there is no precision 'fp8'"):
        score_grid([model], [pictures], [texts], precision="fp8")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="as many cells"):
        score_pairs([model], [pictures], [texts], torch.tensor([0]), torch.tensor([0, 1]))
    with pytest.raises(InputError, match="a grid of 7 images and 11 texts"):
        score_pairs([model], [pictures], [texts], torch.tensor([7]), torch.tensor([0]))
    with pytest.raises(InputError, match="at least 1 candidate"):
        shortlist_scores([model], [pictures], [texts], shortlist=0)
    with pytest.raises(InputError, match="nothing to encode"):
        join([])
    with pytest.raises(InputError, match="one shape"):
        ensemble([torch.zeros(2, 3), torch.zeros(3, 2)])
