"""Every backbone keeps the same promises, whatever it computes inside."""

from __future__ import annotations

import pickle

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from mispair.errors import InputError
from mispair.half_precision import bfloat16, safe_products
from mispair.models import MODELS, InputSizes, build_model, finegrained, model_names, model_preset
from mispair.types import Encoded
from tests.models.batches import TEXT_WIDTH, VOCABULARY, WIDTH, images, reads_words, sequences, texts, tiny, words

NAMES = sorted(model_names())
COUNTS, LENGTHS = [4, 1, 6, 2, 5], [3, 7, 1, 3, 5, 2, 7]


def _encoded(model: nn.Module) -> tuple[Encoded, Encoded]:
    return model.encode_images(*images(COUNTS)), model.encode_texts(*texts(model.config.name, LENGTHS))


def _model(name: str, training: bool = False) -> nn.Module:
    return tiny(name, slots=None).train(training)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_masks_and_unit_pools(name: str) -> None:
    model = _model(name)
    pictures, captions = _encoded(model)
    assert pictures.values.shape[::2] == (5, 20)
    assert captions.values.shape[::2] == (7, 20)
    assert pictures.mask.shape == pictures.values.shape[:2]
    assert (pictures.values[~pictures.mask] == 0).all()
    assert (captions.values[~captions.mask] == 0).all()
    assert model.similarity(pictures, captions).shape == (5, 7)
    for pooled, count in ((model.pool_images(pictures), 5), (model.pool_texts(captions), 7)):
        torch.testing.assert_close(pooled.norm(dim=-1), torch.ones(count, dtype=torch.float64), rtol=1e-6, atol=0)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_permuting_either_side_permutes_the_grid(name: str, training: bool) -> None:
    model = _model(name, training)
    pictures, captions = _encoded(model)
    rows, cols = torch.tensor([3, 0, 4, 2, 1]), torch.tensor([6, 2, 0, 1, 5, 4, 3])
    expected = model.similarity(pictures, captions)[rows][:, cols]
    found = model.similarity(pictures.take(rows), captions.take(cols))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_nothing(name: str, training: bool) -> None:
    model = _model(name, training)
    (features, image_mask), (given, text_mask) = images(COUNTS), texts(name, LENGTHS)
    wide = torch.cat([features, torch.full((5, 3, WIDTH), float("nan"), dtype=torch.float64)], 1)
    padding = VOCABULARY - 1 if reads_words(name) else float("nan")
    long = torch.cat([given, torch.full((7, 4, *given.shape[2:]), padding, dtype=given.dtype)], 1)
    more = (torch.cat([m, m.new_zeros(len(m), extra)], 1) for m, extra in ((image_mask, 3), (text_mask, 4)))
    wide_mask, long_mask = more
    expected = model.similarity(*_encoded(model))
    found = model.similarity(model.encode_images(wide, wide_mask), model.encode_texts(long, long_mask))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_is_deterministic_and_leaves_no_trace(name: str) -> None:
    model = _model(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert torch.equal(model.similarity(*_encoded(model)), model.similarity(*_encoded(model)))
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_paired_is_the_listed_cells_of_the_grid(name: str, training: bool, grad: bool) -> None:
    model = _model(name, training)
    pictures, captions = _encoded(model)
    rows, cols = torch.tensor([0, 4, 4, 2, 0, 4]), torch.tensor([6, 0, 1, 3, 2, 0])
    with torch.set_grad_enabled(grad):
        expected = model.similarity(pictures, captions)[rows, cols]
        found = model.paired(pictures, captions, rows, cols)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    assert len(model.paired(pictures, captions, rows[:0], cols[:0])) == 0


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_a_list_equal_those_of_the_grid(name: str) -> None:
    rows, cols = torch.tensor([0, 4, 4, 2, 0]), torch.tensor([6, 0, 1, 3, 2])
    gradients = []
    for listed in (True, False):
        model = _model(name)
        pictures, captions = _encoded(model)
        cells = (
            model.paired(pictures, captions, rows, cols) if listed else model.similarity(pictures, captions)[rows, cols]
        )
        (cells * torch.arange(1.0, 6.0, dtype=torch.float64)).sum().backward()
        gradients.append([torch.zeros(1) if p.grad is None else p.grad for p in model.parameters()])
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_many_cells_of_few_images_are_scored_image_by_image(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finegrained, "MANY", 4)
    model = _model(name)
    with torch.no_grad():
        pictures, captions = _encoded(model)
        rows, cols = torch.arange(35) % 5, torch.arange(35) // 5
        keep = rows != 3
        rows, cols = torch.cat([rows[keep]] * 2), torch.cat([cols[keep]] * 2)
        expected = model.similarity(pictures, captions)[rows, cols]
        torch.testing.assert_close(model.paired(pictures, captions, rows, cols), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_link_is_monotone_and_keeps_shape(name: str) -> None:
    scores = _model(name).link(torch.linspace(-3, 3, 8, dtype=torch.float64).view(2, 4))
    assert scores.shape == (2, 4)
    assert (scores.flatten().diff() > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_features_on_both_sides(name: str) -> None:
    model = tiny(name, slots=None, words=False)
    pictures, captions = model.encode_images(*images([1, 1, 1])), model.encode_texts(*sequences([2, 1]))
    assert model.similarity(pictures, captions).shape == (3, 2)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_builds_the_same_model(name: str) -> None:
    first, second = _model(name).state_dict(), _model(name).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", NAMES)
def test_presets_and_config_round_trip(name: str) -> None:
    paper, small = model_preset(name, "paper"), model_preset(name, "small")
    assert paper.embed == 1024
    assert small.embed < paper.embed
    assert MODELS.parse(small.model_dump()) == small
    with pytest.raises(ValidationError):
        MODELS.parse({"name": name, "embed": 8, "surprise": 1})


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_autocast_scores_and_learns(name: str) -> None:
    model = tiny(name, slots=None, double=False).train()
    features, mask = images(COUNTS)
    given, text_mask = texts(name, LENGTHS)
    given = given.float() if given.is_floating_point() else given
    exact = model.similarity(model.encode_images(features.float(), mask), model.encode_texts(given, text_mask))
    with bfloat16("cpu"):
        rough = model.similarity(model.encode_images(features.float(), mask), model.encode_texts(given, text_mask))
    with safe_products("cpu"):
        rough.float().square().sum().backward()
    torch.testing.assert_close(model.link(rough.float()), model.link(exact), rtol=0.05, atol=0.06)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_widths_and_masks_are_refused_in_a_sentence(name: str) -> None:
    model = _model(name)
    real = torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(InputError, match=rf"images must have shape \(items, parts, {WIDTH}\), got \(2, 3, 4\)"):
        model.encode_images(torch.zeros(2, 3, 4), real)
    with pytest.raises(InputError, match="mask of images must be bool"):
        model.encode_images(torch.zeros(2, 3, WIDTH, dtype=torch.float64), real[:, :2])
    with pytest.raises(InputError, match="item 1 of the batch has none"):
        model.encode_images(torch.zeros(2, 3, WIDTH), torch.tensor([[True] * 3, [False] * 3]))
    legal = torch.zeros(2, 3, dtype=torch.long) if reads_words(name) else torch.zeros(2, 3, TEXT_WIDTH)
    with pytest.raises(InputError, match="real parts first"):
        model.encode_texts(legal, torch.tensor([[True, False, True]] * 2))
    if reads_words(name):
        with pytest.raises(InputError, match=rf"word ids must lie in 0..{VOCABULARY - 1}, got {VOCABULARY}"):
            model.encode_texts(torch.full((2, 3), VOCABULARY), real)
        with pytest.raises(InputError, match="must be word ids"):
            model.encode_texts(torch.zeros(2, 3), real)
    else:
        with pytest.raises(InputError, match=rf"texts must have shape \(items, parts, {TEXT_WIDTH}\), got \(2, 3, 4\)"):
            model.encode_texts(torch.zeros(2, 3, 4), real)
    pictures, captions = _encoded(model)
    with pytest.raises(InputError, match="encoded texts must have width 20"):
        model.similarity(pictures, Encoded(captions.values[..., :7], captions.mask))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_another_preset_is_refused_in_a_sentence(name: str) -> None:
    sizes = InputSizes(image_width=8, text_width=TEXT_WIDTH)
    small = build_model(model_preset(name, "small"), sizes)
    other = build_model(model_preset(name, "small").model_copy(update={"embed": 24}), sizes)
    with pytest.raises(InputError, match=rf"does not fit {name} with embed 24.*expected"):
        other.load_state_dict(small.state_dict())
    partial = dict(list(small.state_dict().items())[1:])
    with pytest.raises(InputError, match="is missing from it"):
        small.load_state_dict(partial)
    small.load_state_dict(pickle.loads(pickle.dumps(small.state_dict())))


def test_unknown_names_are_refused_in_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"there is no model 'sgrx'; did you mean sgr\? Known are sgr, saf, imram, vse, dual"
    ):
        model_preset("sgrx")
    with pytest.raises(InputError, match="there is no size 'huge' of sgr; known are paper, small"):
        model_preset("sgr", "huge")
    with pytest.raises(ValidationError, match="either vocabulary_size"):
        InputSizes(image_width=4)
    with pytest.raises(ValidationError, match="either vocabulary_size"):
        InputSizes(image_width=4, vocabulary_size=3, text_width=3)


def test_more_regions_than_slots_and_lone_training_images_are_refused() -> None:
    model = tiny("sgr", slots=4)
    with pytest.raises(InputError, match="at most 4 regions per image, got 6"):
        model.encode_images(*images([6, 2]))
    lone = model.train().encode_images(*images([4]))
    with pytest.raises(InputError, match="at least 2 images"):
        model.similarity(lone, model.encode_texts(*words([3])))


def test_parameter_counts_of_the_published_sizes() -> None:
    """18,109,175 and 17,517,306 published, less the biases a softmax cannot see: of the keys and of two poolings."""
    sizes = InputSizes(image_width=2048, vocabulary_size=8481, regions=36)
    config = {name: model_preset(name).model_copy(update={"stand_in": None}) for name in ("sgr", "saf")}
    count = {name: sum(p.numel() for p in build_model(config[name], sizes).parameters()) for name in config}
    assert count == {"sgr": 18_109_175 - 3 * 256 - 2, "saf": 17_517_306 - 2}
