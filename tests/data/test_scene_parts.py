"""The parts of the generated world by hand: where objects stand, what is said of them, what pixels tell of colour."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mispair.data.scenes import appearance, grammar
from mispair.data.scenes.grammar import ANY, RELATIONS, Claim, holds, word
from mispair.data.scenes.world import MOST_OBJECTS, Dice, sample

NOTHING = (ANY,) * 6


def dice(seed: int) -> Dice:
    return Dice(np.random.default_rng(seed))


def test_objects_stand_on_nine_places_and_never_two_on_one() -> None:
    scenes = [sample(dice(seed)) for seed in range(900)]
    places = Counter(thing[4:] for scene in scenes for thing in scene.objects)
    assert sorted(places) == [(row, column) for row in range(3) for column in range(3)]
    assert min(places.values()) > 0.7 * max(places.values())
    for scene in scenes:
        assert len({thing[4:] for thing in scene.objects}) == len(scene.objects) <= MOST_OBJECTS
    assert {len(scene.objects) for scene in scenes} == {1, 2, 3}


@pytest.mark.parametrize(
    ("down", "across", "true"),
    [
        (0, -1, {"left", "near"}),
        (0, 2, {"right"}),
        (-1, 0, {"above", "near"}),
        (2, 0, {"below"}),
        (1, 1, {"right", "below", "near"}),
        (-2, -1, {"left", "above"}),
    ],
)
def test_relations_by_hand(down: int, across: int, true: set[str]) -> None:
    """Seen from an object in the middle; what stands straight above is neither left nor right."""
    one, other = (0, 0, 0, 0, 2 + down, 2 + across), (0, 0, 0, 0, 2, 2)
    assert {name for k, name in enumerate(RELATIONS) if k and holds(k, one, other)} == true
    assert holds(0, one, other), "where nothing is claimed nothing is wrong"


def said_of(text: str, groups: tuple[tuple[str, ...], ...]) -> set[int]:
    """Which of the groups of synonyms a text has a word of."""
    padded = f" {text.lower().replace('.', ' ').replace(',', ' ')} "
    return {k for k, words in enumerate(groups) if any(f" {one} " in padded for one in words)}


@pytest.mark.parametrize("seed", range(40))
def test_a_wording_says_what_the_claim_says_and_no_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = (grammar._SHAPE_WORDS, grammar._COLOUR_WORDS, grammar._SIZE_WORDS, grammar._TEXTURE_WORDS)
    values = [int(rng.integers(-1, len(words))) for words in kinds]
    mention = (*values, ANY, ANY)
    text = word(Claim((mention,), 0, ANY, ANY), dice(seed))
    for value, words in zip(values, kinds, strict=True):
        assert said_of(text, words) == ({value} - {ANY}), text


@pytest.mark.parametrize("seed", range(12))
def test_count_background_and_relation_are_said_where_they_are_claimed(seed: int) -> None:
    star, ring = (4, *NOTHING[1:]), (6, *NOTHING[1:])
    counts = (("one object", "one thing", "one shape", "one figure"), ("two ", "a pair of "), ("three ", "a trio of "))
    for claim, count, ground, relation in (
        (Claim((star, ring), 3, ANY, 3), {2}, set(), {3}),
        (Claim((star, ring), 0, 2, 2), {1}, {2}, set()),
        (Claim((star, ring), 5, 1, ANY), set(), {1}, {5}),
    ):
        text = word(claim, dice(seed))
        assert {k for k, words in enumerate(counts) if any(one in text.lower() for one in words)} == count, text
        assert said_of(text, grammar._BACKGROUND_WORDS) == ground, text
        assert said_of(text, grammar._RELATION_WORDS) - {0} == relation, text
        assert said_of(text, grammar._SHAPE_WORDS) == {4, 6}


@pytest.mark.parametrize(
    ("colour", "hue"),
    [
        ((200, 0, 0), 0),
        ((200, 200, 0), 2),
        ((0, 200, 0), 4),
        ((0, 200, 200), 6),
        ((0, 0, 200), 8),
        ((200, 0, 200), 10),
    ],
)
def test_every_pure_colour_has_its_hue(colour: tuple[int, int, int], hue: int) -> None:
    crops = np.broadcast_to(np.array(colour, np.float32), (2, 3, 18, 18, 3))
    found = appearance._hues(crops, np.ones((2, 3, 18, 18), np.float32))
    assert found.shape == (2, 3, 12)
    assert (found.argmax(-1) == hue).all()


def test_texture_is_the_change_of_brightness_at_one_two_three_and_five_pixels() -> None:
    ramp = np.arange(18, dtype=np.float32) * 3 + 50
    crops = np.broadcast_to(ramp[:, None, None], (1, 1, 18, 18, 3))
    found = appearance._texture(crops, np.ones((1, 1, 18, 18), np.float32))[0, 0]
    down, across = found[0::2], found[1::2]
    assert np.allclose(across, 0)
    assert np.allclose(down / down[0], [1, 2, 3, 5], rtol=0.03)
