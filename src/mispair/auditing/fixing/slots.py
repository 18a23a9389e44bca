"""What becomes of every caption of a data set: which leave, which show other words, how much each counts.

A pair has a slot: its place in the original data. Letters: n slots written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.errors import InputError

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WrittenPairs:
    """What is written: the image and the text of every slot that stays."""

    slots: Rows  # (n,)
    images: Rows  # (n,) image rows
    texts: Rows  # (n,) text rows
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """What becomes of one caption. None: as it is."""

    keep: bool
    caption: str | None = None
    image: str | None = None
    weight: float | None = None

    @property
    def changes(self) -> bool:
        """Whether the pair leaves or shows something else; a weight alone changes nothing of it."""
        return not self.keep or self.caption is not None or self.image is not None


KEEP = Slot(keep=True)
Slots = Mapping[int, Slot]  # by the place of a caption among those of all splits; places not named stay as they are


def slots_of(data: JudgedData, pairs: WrittenPairs) -> list[Slot]:
    """The slot of every judged pair, (N,)."""
    place_of = {int(slot): place for place, slot in enumerate(pairs.slots)}
    return [_slot(data, pairs, slot, place_of.get(slot)) for slot in range(len(data.source.image_of_text))]


def slots_by_position(data: JudgedData, pairs: WrittenPairs) -> dict[int, Slot]:
    """The slots by place among all captions. Images stay where they are: to show another one, a caption moves.

    Raises InputError where an image would have to take more captions than it had.
    """
    assert data.source.positions is not None
    settled = _settled(data, slots_of(data, pairs))
    return dict(zip(data.source.positions.tolist(), settled, strict=True))


def weights_of(slots: Slots, listed: int) -> NDArray[np.float32] | None:
    """(n,) the weight of every caption that is left of the `listed` ones; None where the fix gives none."""
    if all(slot.weight is None for slot in slots.values()):
        return None
    left = [slots.get(place, KEEP) for place in range(listed)]
    return np.array([1.0 if slot.weight is None else slot.weight for slot in left if slot.keep], np.float32)


def _slot(data: JudgedData, pairs: WrittenPairs, slot: int, place: int | None) -> Slot:
    if place is None:
        return Slot(keep=False)
    source = data.source
    text, image = int(pairs.texts[place]), int(pairs.images[place])
    assert source.image_ids is not None
    return Slot(
        keep=True,
        caption=None if text == slot or data.table.captions is None else data.table.captions[text],
        image=None if image == source.image_of_text[slot] else source.image_ids[image],
        weight=None if pairs.weights is None else round(float(pairs.weights[place]), 6),
    )


def _settled(data: JudgedData, slots: list[Slot]) -> list[Slot]:
    if all(slot.image is None for slot in slots):
        return slots
    source = data.source
    assert source.image_ids is not None
    assert source.captions is not None
    free: dict[str, list[int]] = defaultdict(list)
    settled = [Slot(keep=False)] * len(slots)
    for place, slot in enumerate(slots):
        if slot.keep and slot.image is None:
            settled[place] = slot
        else:
            free[source.image_ids[source.image_of_text[place]]].append(place)
    for place, slot in enumerate(slots):
        if slot.keep and slot.image is not None:
            if not free[slot.image]:
                raise InputError(
                    f"{slot.image!r} would have to show more captions than it has places for, which this format cannot"
                    " say; bring the mismatches in by a table of pairs (mispair corrupt)"
                )
            target = free[slot.image].pop(0)
            caption = source.captions[place] if slot.caption is None else slot.caption
            same = caption == source.captions[target]
            settled[target] = Slot(keep=True, caption=None if same else caption, weight=slot.weight)
    return settled


def slots_of_row(slots: Slots, places: range) -> list[Slot] | None:
    """The slots of a row with several captions; None where nothing was judged of it."""
    row_slots = [slots.get(place) for place in places]
    return None if all(slot is None for slot in row_slots) else [slot or KEEP for slot in row_slots]
