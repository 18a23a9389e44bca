"""Small parts of the kernels by hand: groups of captions, which cells are worth packing, statistics of the filter."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mispair.models.finegrained import words_per_group
from mispair.models.kernels.caption_groups import by_length, in_order, padded
from mispair.models.kernels.similarity_vectors import GridInputs, live_cells
from mispair.models.saf import FilterNorm

LENGTHS = torch.tensor([3, 1, 3, 2, 3])
MASK = torch.arange(3) < LENGTHS[:, None]


def test_captions_of_one_length_are_one_group():
    groups = by_length(MASK, 6)
    assert [(group.columns.tolist(), group.length) for group in groups] == [([1], 1), ([3], 2), ([0, 2], 3), ([4], 3)]
    assert all(group.mask is None for group in groups)
    logits = [group.columns.double() for group in groups]
    assert in_order(logits, groups, 0).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_without_a_look_at_the_lengths_captions_stay_in_their_order_and_on_their_device(device):
    groups = padded(MASK.to(device), 6)
    assert [len(group.columns) for group in groups] == [2, 2, 1]
    for group in groups:
        assert group.length == 3
        assert group.columns.device.type == group.mask.device.type == device
    if device == "cpu":
        assert torch.equal(torch.cat([group.mask for group in groups]), MASK)


def test_an_accelerator_scores_more_words_together():
    assert words_per_group(torch.device("cpu")) < words_per_group(torch.device("cuda"))


def test_few_cells_are_packed_and_many_are_not():
    weight = torch.zeros(40, 50)
    weight[3, 7] = weight[31, 0] = -1.0
    rows, cols = live_cells(weight)
    assert (rows.tolist(), cols.tolist()) == ([3, 31], [7, 0])
    assert live_cells(torch.ones(40, 50)) is None
    assert live_cells(weight.to("meta")) is None, "counting would wait for the device"


def test_the_filter_keeps_running_statistics_like_the_layer_of_torch():
    torch.manual_seed(0)
    ours, theirs = FilterNorm(), nn.BatchNorm1d(1)
    captions = [torch.randn(count, 1) * 2 + 1 for count in (9, 4, 17)]
    for caption in captions:
        theirs(caption)
    ours.track(
        torch.stack([c.mean() for c in captions]),
        torch.stack([c.var(correction=0) for c in captions]),
        torch.tensor([float(len(c)) for c in captions]),
    )
    for name, buffer in theirs.named_buffers():
        assert torch.allclose(getattr(ours, name), buffer), name
    x = torch.randn(5, 1)
    assert torch.allclose(ours(x, ours.running_mean, ours.running_var), theirs.eval()(x), atol=1e-6)


def test_a_part_of_the_images_keeps_texts_that_all_share():
    n, r, d, k, length = 3, 2, 4, 5, 6
    regions, gram, images = torch.rand(n, r, d), torch.rand(n, r, r), torch.rand(n, d)
    for b in (1, n):
        words, texts = torch.rand(b, k, length, d), torch.rand(b, k, d)
        part = GridInputs(regions, gram, words, images, texts, None).images(slice(1, 3))
        assert torch.equal(part.regions, regions[1:])
        assert torch.equal(part.words, words if b == 1 else words[1:])
        assert torch.equal(part.text_global, texts if b == 1 else texts[1:])
