"""What is said of a picture: a claim, true by construction, and one of many ways to word it.

A claim says less than the picture shows: objects and attributes are left out, so most claims are true of several
pictures. `truth.py` decides which.
"""

from __future__ import annotations

from dataclasses import dataclass

from mispair.data.scenes.world import Dice, Scene

ANY = -1
MOST_MENTIONS = 3
RELATIONS = ("", "left", "right", "above", "below", "near")

_SHAPE_WORDS = (
    ("circle", "disc", "ball"),
    ("square", "box", "block"),
    ("triangle", "wedge"),
    ("diamond", "rhombus", "kite"),
    ("star",),
    ("cross", "plus"),
    ("ring", "hoop", "loop"),
    ("crescent", "moon"),
)
_ANY_SHAPE = ("object", "thing", "shape", "figure")
_COLOUR_WORDS = (
    ("red", "crimson", "scarlet"),
    ("orange", "amber"),
    ("yellow", "golden"),
    ("green", "emerald"),
    ("turquoise", "teal", "cyan"),
    ("blue", "navy"),
    ("purple", "violet"),
    ("pink", "rose"),
)
_SIZE_WORDS = (("small", "little", "tiny"), ("medium", "mid-sized"), ("large", "big", "huge"))
_TEXTURE_WORDS = (
    ("plain", "solid"),
    ("striped", "banded"),
    ("dotted", "spotted"),
    ("checkered", "chequered"),
)
_ROW_WORDS = (("at the top", "in the upper part"), ("halfway up",), ("at the bottom", "in the lower part"))
_COLUMN_WORDS = (("on the left", "at the left side"), ("in the centre",), ("on the right", "at the right side"))
_CORNER_ROW = ("top", "middle", "bottom")
_CORNER_COLUMN = ("left", "centre", "right")
_RELATION_WORDS = (
    (),
    ("left of", "to the left of"),
    ("right of", "to the right of"),
    ("above", "over", "higher than"),
    ("below", "under", "beneath"),
    ("near", "next to", "beside"),
)
_BACKGROUND_WORDS = (("white", "bright"), ("grey", "gray"), ("black", "dark"), ("sand", "beige"))
_COUNT_WORDS = {1: ("one",), 2: ("two", "a pair of"), 3: ("three", "a trio of")}


@dataclass(frozen=True)
class Claim:
    """What a caption says. `mentions` hold one number per attribute, ANY where nothing is said."""

    mentions: tuple[tuple[int, ...], ...]
    relation: int  # of the first mention to the second, an index into RELATIONS
    background: int
    count: int  # objects in the picture


def holds(relation: int, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether object `one` stands in `relation` to object `other`."""
    down, across = one[4] - other[4], one[5] - other[5]
    return (True, across < 0, across > 0, down < 0, down > 0, max(abs(down), abs(across)) == 1)[relation]


def claim(scene: Scene, draw: Dice) -> Claim:
    """Draw a claim that is true of `scene`: some of its objects, and how they stand to each other."""
    said = min(len(scene.objects), 1 + draw.chance(0.95) + draw.chance(0.7))
    chosen = [scene.objects[k] for k in draw.some(said, len(scene.objects))]
    relation = 0
    if said > 1 and draw.chance(0.5):
        true = [r for r in range(1, len(RELATIONS)) if holds(r, chosen[0], chosen[1])]
        relation = true[draw.below(len(true))] if true else 0
    mentions = tuple(_mention(thing, draw) for thing in chosen)
    background = scene.background if draw.chance(0.3) else ANY
    return Claim(mentions, relation, background, len(scene.objects) if draw.chance(0.15) else ANY)


def _mention(thing: tuple[int, ...], draw: Dice) -> tuple[int, ...]:
    shape, colour, size, texture, row, column = thing
    shows_shape = draw.chance(0.9)
    shows_colour = draw.chance(0.85) or not shows_shape
    return (
        shape if shows_shape else ANY,
        colour if shows_colour else ANY,
        size if draw.chance(0.1 if size == 1 else 0.35) else ANY,
        texture if draw.chance(0.1 if texture == 0 else 0.4) else ANY,
        row if draw.chance(0.2) else ANY,
        column if draw.chance(0.2) else ANY,
    )


def word(said: Claim, draw: Dice) -> str:
    """A claim as a sentence; which of its wordings is drawn."""
    names = [_noun_phrase(mention, draw) for mention in said.mentions]
    if said.relation:
        relation = draw.pick(_RELATION_WORDS[said.relation])
        first, second, *rest = names
        order = draw.below(3)
        if order == 0:
            text = f"{first} {relation} {second}"
        elif order == 1:
            text = f"{first} {draw.pick(('is', 'lies', 'sits', 'stands'))} {relation} {second}"
        else:
            text = f"{relation} {second} {draw.pick(('there is', 'is', 'we see'))} {first}"
        text = " and ".join([text, *rest]) if draw.chance(0.5) else " with ".join([text, *rest])
    else:
        names = [names[k] for k in draw.some(len(names), len(names))]
        text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {draw.pick(('and', 'with'))} {names[-1]}"
    return _frame(said, text, draw)


def _frame(said: Claim, text: str, draw: Dice) -> str:
    """Count, background and the small words around."""
    if said.count != ANY:
        noun = draw.pick(_ANY_SHAPE) + ("s" if said.count > 1 else "")
        text = f"{draw.pick(_COUNT_WORDS[said.count])} {noun}, {draw.pick(('namely', 'there is', 'including'))} {text}"
    elif draw.chance(0.25):
        text = f"{draw.pick(('a picture of', 'an image of', 'a drawing with'))} {text}"
    if said.background != ANY:
        ground = draw.pick(_BACKGROUND_WORDS[said.background])
        if draw.chance(0.5):
            text = f"{text} on a {ground} {draw.pick(('background', 'ground'))}"
        else:
            text = f"on {ground}, {text}"
    text = text[0].upper() + text[1:] if draw.chance(0.5) else text
    return text + draw.pick((" .", ".", ""))


def _noun_phrase(mention: tuple[int, ...], draw: Dice) -> str:
    shape, colour, size, texture, row, column = mention
    before, after = [], []
    if size != ANY:
        before.append(draw.pick(_SIZE_WORDS[size]))
    if texture != ANY:
        before.append(draw.pick(_TEXTURE_WORDS[texture]))
    if len(before) == 2 and draw.chance(0.3):
        before.reverse()
    if colour != ANY:
        name = draw.pick(_COLOUR_WORDS[colour])
        if draw.chance(0.8):
            before.append(name)
        else:
            after.append(draw.pick((f"in {name}", f"that is {name}")))
    noun = draw.pick(_ANY_SHAPE if shape == ANY else _SHAPE_WORDS[shape])
    if row != ANY and column != ANY:
        after.append(f"in the {_CORNER_ROW[row]} {_CORNER_COLUMN[column]}")
    elif row != ANY:
        after.append(draw.pick(_ROW_WORDS[row]))
    elif column != ANY:
        after.append(draw.pick(_COLUMN_WORDS[column]))
    words = [*before, noun, *after]
    article = draw.pick(("the", "one")) if draw.chance(0.15) else "an" if words[0][0] in "aeiou" else "a"
    return " ".join([article, *words])
