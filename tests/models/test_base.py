"""What every backbone refuses before it computes: inputs of another size, states of another model."""

from __future__ import annotations

import pytest
import torch

from mispair.errors import InputError
from tests.models.batches import SLOTS, VOCABULARY, WIDTH, images, tiny, words


@pytest.fixture
def model():
    return tiny("vse")


def test_as_many_regions_as_it_was_built_for_and_no_more(model):
    assert len(model.encode_images(*images([SLOTS, 2])).values) == 2
    with pytest.raises(InputError, match=f"at most {SLOTS} regions per image, got {SLOTS + 1}"):
        model.encode_images(*images([SLOTS + 1]))
    assert len(tiny("vse", slots=None).encode_images(*images([SLOTS + 9])).values) == 1


def test_features_of_another_width_are_refused(model):
    features, mask = images([3, 3])
    with pytest.raises(
        InputError, match=rf"images must have shape \(items, parts, {WIDTH}\), got \(2, 3, {WIDTH - 1}\)"
    ):
        model.encode_images(features[..., 1:], mask)
    with pytest.raises(InputError, match="the mask of images must be bool"):
        model.encode_images(features, mask.float())
    mask[1] = False
    with pytest.raises(InputError, match="item 1 of the batch has none"):
        model.encode_images(features, mask)


def test_words_outside_the_vocabulary_are_refused(model):
    ids, mask = words([3, 2])
    for wrong in (-1, VOCABULARY):
        with pytest.raises(InputError, match=rf"word ids must lie in 0..{VOCABULARY - 1}, got {wrong}"):
            model.encode_texts(ids.index_fill(1, torch.tensor([0]), wrong), mask)
    with pytest.raises(InputError, match="real parts first"):
        model.encode_texts(ids, mask.flip(1))


def test_a_state_of_another_model_is_refused_with_what_differs(model):
    state = model.state_dict()
    first = sorted(state)[0]
    model.load_state_dict(state)
    with pytest.raises(InputError, match=rf"{first} is missing from it \(1 such entries\)"):
        model.load_state_dict({key: value for key, value in state.items() if key != first})
    with pytest.raises(InputError, match=r"a_more is unknown in it \(1 such entries\)"):
        model.load_state_dict({**state, "a_more": torch.zeros(1)})
    with pytest.raises(InputError, match=f"does not fit vse with .*: {first} is "):
        model.load_state_dict({**state, first: torch.zeros(1, 2, 3, 4)})
    model.load_state_dict({}, strict=False)
