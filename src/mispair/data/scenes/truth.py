"""Which captions are true of which pictures: every claim checked against every scene.

Letters: n pictures, m captions.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from mispair.data.scenes.grammar import ANY, MOST_MENTIONS, RELATIONS, Claim
from mispair.data.scenes.world import ATTRIBUTES, MOST_OBJECTS, Scene, object_array

Bools = NDArray[np.bool_]


def true_pairs(scenes: list[Scene], claims: list[Claim], block: int = 512) -> Bools:
    """(n, m): whether caption j says something true of picture i."""
    objects = object_array(scenes)
    result = np.empty((len(scenes), len(claims)), bool)
    ground = np.array([scene.background for scene in scenes])
    count = np.array([len(scene.objects) for scene in scenes])
    related = _related(objects)
    for start in range(0, len(claims), block):
        some = claims[start : start + block]
        fits = _fits(objects, some)
        relation = np.array([c.relation for c in some])
        said = np.array([len(c.mentions) for c in some])
        matched = _assign(fits, related, relation, said)
        backgrounds = np.array([c.background for c in some])
        counts = np.array([c.count for c in some])
        matched &= (backgrounds == ANY) | (ground[:, None] == backgrounds)
        matched &= (counts == ANY) | (count[:, None] == counts)
        result[:, start : start + block] = matched
    return result


def true_of(scenes: list[Scene], claims: list[Claim]) -> Bools:
    """(k,): whether claim k is true of scene k."""
    return np.array([bool(true_pairs([scene], [said])[0, 0]) for scene, said in zip(scenes, claims, strict=True)], bool)


def _fits(objects: NDArray[np.int8], claims: list[Claim]) -> Bools:
    """(mentions, objects, n, m): whether the mention could mean the object; what is not mentioned fits nothing."""
    said = np.full((len(claims), MOST_MENTIONS, len(ATTRIBUTES)), -3, np.int8)
    for k, one in enumerate(claims):
        said[k, : len(one.mentions)] = one.mentions
    present = objects[..., 0] != -2
    fits = np.empty((MOST_MENTIONS, MOST_OBJECTS, len(objects), len(claims)), bool)
    for mention in range(MOST_MENTIONS):
        for thing in range(MOST_OBJECTS):
            wanted = said[:, mention]
            equal = (objects[:, thing, None] == wanted) | (wanted == ANY)
            fits[mention, thing] = equal.all(-1) & present[:, thing, None]
    return fits


def _related(objects: NDArray[np.int8]) -> Bools:
    """(relations, objects, objects, n): whether one object stands in the relation to the other."""
    row, column = objects[..., 4].T.astype(int), objects[..., 5].T.astype(int)
    down, across = row[:, None] - row, column[:, None] - column
    near = np.maximum(abs(down), abs(across)) == 1
    table = np.stack([np.ones_like(near), across < 0, across > 0, down < 0, down > 0, near])
    assert len(table) == len(RELATIONS)
    return table


def _assign(fits: Bools, related: Bools, relation: NDArray[np.int64], said: NDArray[np.int64]) -> Bools:
    """(n, m): whether the mentions can mean different objects that stand in the claimed relation."""
    result = np.zeros(fits.shape[2:], bool)
    for mentions in range(1, MOST_MENTIONS + 1):
        columns = np.flatnonzero(said == mentions)
        if not len(columns):
            continue
        part = fits[:, :, :, columns]
        holds = np.zeros(part.shape[2:], bool)
        for things in permutations(range(MOST_OBJECTS), mentions):
            one = part[0, things[0]].copy()
            for mention in range(1, mentions):
                one &= part[mention, things[mention]]
            if mentions > 1:
                one &= related[relation[columns], things[0], things[1]].T
            holds |= one
        result[:, columns] = holds
    return result
