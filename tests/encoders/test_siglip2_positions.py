"""Positions resized for a batch at once are those the library resizes one by one."""

from __future__ import annotations

import pytest
import torch

from mispair.encoders.siglip2_positions import resize_positions, resized_together


@pytest.fixture(scope="module")
def library():
    """Seconds to import, so not where the tests are collected: every process does that."""
    from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings

    return Siglip2VisionEmbeddings.resize_positional_embeddings


@pytest.mark.parametrize("size", [1, 4, 7, 16])
def test_it_is_the_librarys_resizing(size, library):
    table = torch.randn(size, size, 5, generator=torch.Generator().manual_seed(0))
    shapes = torch.tensor([[1, 1], [size, size], [3, 11], [11, 3], [1, 37], [5, 7], [6, 6], [20, 2]])
    patches = max(size * size, 41)
    expected = library(table, shapes, patches)
    torch.testing.assert_close(resize_positions(table, shapes, patches), expected, rtol=0, atol=2e-6)


def test_a_picture_one_patch_wide_is_one_patch_high_lying_down(library):
    """The library's is not so: interpolating to (5, 1) and the transposed to (1, 5) differ on a processor."""
    table = torch.randn(16, 16, 5, generator=torch.Generator().manual_seed(0))
    lying = library(table.transpose(0, 1), torch.tensor([[1, 5]]), 5)
    torch.testing.assert_close(resize_positions(table, torch.tensor([[5, 1]]), 5), lying, rtol=0, atol=2e-6)


def test_a_network_has_its_own_way_again_afterwards():
    class Part(torch.nn.Module):
        @staticmethod
        def resize_positional_embeddings(*_):
            return "the library's"

    network = torch.nn.Sequential(torch.nn.Linear(2, 2), Part())
    with resized_together(network):
        assert network[1].resize_positional_embeddings is resize_positions
    assert network[1].resize_positional_embeddings() == "the library's"
