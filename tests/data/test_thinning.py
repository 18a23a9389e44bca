"""Leaving parts out: what is kept, in which order, and that it depends on nothing but the item and the salt."""

from dataclasses import replace

import torch

from mispair.data.thinning import crop_batch, halve_texts, keep_in_order, kept_parts, thin_batch, uniforms
from mispair.types import PairBatch


def batch(n=7, regions=5, words=11):
    lengths = torch.arange(n) % words + 1
    mask = torch.arange(words) < lengths[:, None]
    texts = torch.arange(n * words).reshape(n, words)
    return PairBatch(torch.randn(n, regions, 3), torch.ones(n, regions).bool(), texts, mask, torch.arange(n) + 100)


def test_draws_are_uniform_and_differ():
    drawn = uniforms(torch.arange(997), 13, 5)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.01
    assert abs(drawn.var() - 1 / 12) < 0.003
    assert len(drawn.unique()) == drawn.numel()
    assert (
        abs(torch.corrcoef(torch.stack([drawn.flatten(), uniforms(torch.arange(997), 13, 6).flatten()]))[0, 1]) < 0.05
    )
    assert abs(torch.corrcoef(torch.stack([drawn[:-1].flatten(), drawn[1:].flatten()]))[0, 1]) < 0.05


def test_draws_depend_on_the_item_not_on_its_company():
    whole = uniforms(torch.arange(10), 17, 3)
    assert torch.equal(uniforms(torch.tensor([4, 2]), 5, 3), whole[[4, 2], :5])


def test_kept_parts_by_hand():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    drawn = torch.tensor([[0.1, 0.6, 0.9], [0.2, 0.9, 0.9]])
    assert kept_parts(mask, drawn, 0.5).tolist() == [[False, True, False], [True, False, False]]


def test_kept_words_come_first_in_their_order():
    values, mask = keep_in_order(torch.tensor([[1, 2, 3, 4]]), torch.tensor([[False, True, False, True]]))
    assert values[0, :2].tolist() == [2, 4]
    assert mask.tolist() == [[True, True, False, False]]
    features, _ = keep_in_order(torch.arange(8.0).reshape(1, 4, 2), torch.tensor([[False, True, False, True]]))
    assert features[0, :2].tolist() == [[2, 3], [6, 7]]


def test_a_thinned_batch_loses_about_its_share_and_never_an_item():
    given = batch(n=499)
    thin = thin_batch(given, given.pair_ids, 0.5, 0.2, 1)
    assert thin.image_mask.any(1).all()
    assert thin.text_mask.any(1).all()
    assert abs(thin.image_mask.float().mean() - 0.5) < 0.04
    assert abs(thin.text_mask.sum() / given.text_mask.sum() - 0.8) < 0.04
    for row, (mask, texts) in enumerate(zip(thin.text_mask, thin.texts, strict=True)):
        kept = texts[mask].tolist()
        assert kept == sorted(kept)
        assert set(kept) <= set(given.texts[row][given.text_mask[row]].tolist())


def test_one_vector_per_item_stays():
    given = batch(regions=1, words=1)
    thin = thin_batch(given, given.pair_ids, 0.9, 0.9, 0)
    assert torch.equal(thin.image_mask, given.image_mask)
    assert torch.equal(thin.texts, given.texts)


def test_halves_are_the_whole_and_disjoint():
    given = batch(n=101)
    first, second = halve_texts(given, given.pair_ids, 9)
    for row in range(101):
        words = [set(half.texts[row][half.text_mask[row]].tolist()) for half in (first, second)]
        own = set(given.texts[row][given.text_mask[row]].tolist())
        assert words[0] | words[1] == own
        assert not words[0] & words[1] or own in words  # a half that was empty is the whole text


def test_only_pixels_are_cropped():
    """Patches and pictures that are not there stay as they are."""
    drawn = torch.arange(7)
    whole, nothing = batch(regions=1), batch(regions=0)
    assert crop_batch(whole, drawn, (3,), 0.5, 1) is whole
    assert crop_batch(nothing, drawn, (3, 1, 1), 0.5, 1) is nothing
    grey = torch.rand(7, 1, 1).expand(7, 1, 48).contiguous()
    pixels = replace(whole, images=torch.where(torch.arange(48) % 4 < 2, grey, grey + 1))
    cropped = crop_batch(pixels, drawn, (3, 4, 4), 0.5, 1)
    assert cropped.images.shape == (7, 1, 48)
    assert not torch.allclose(cropped.images, pixels.images)
    assert torch.allclose(crop_batch(pixels, drawn, (3, 4, 4), 1.0, 1).images, pixels.images, atol=1e-5)
