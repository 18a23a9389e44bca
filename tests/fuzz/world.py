"""Good files of every kind a verb reads, and what reads them; a world is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tests.forks import Forks
from tests.fuzz import data_sets, encoded, trained
from tests.fuzz.target import Makers, Target

Maker = Callable[[Makers, Path], list[Target]]

# Each world, and how many cases of a round it gets: more where it has more files, or where more is read into them.
WORLDS: dict[str, tuple[Maker, int]] = {
    "run": (trained.run, 7),
    "going-on": (trained.going_on, 2),
    "audited": (trained.audited, 4),
    "decided": (trained.decided, 3),
    "searched": (trained.searched, 4),
    "inverted": (trained.inverted, 1),
    "grid": (trained.grid, 3),
    "table": (data_sets.table, 3),
    "shards": (data_sets.shards, 3),
    "small": (data_sets.small, 4),
    **{
        f"data-{write.__name__.strip('_')}": (partial(data_sets.pictures_and_captions, write=write), 1)
        for write in data_sets.FORMATS
    },
    "pictures": (encoded.pictures, 5),
    "photos": (encoded.photos, 4),
    "parts": (encoded.parts, 2),
    "weights-of-both": (encoded.weights_of_both, 2),
    "weights-of-two": (encoded.weights_of_two, 2),
    "towers": (encoded.towers, 1),
}


class Worlds:
    """The targets of all worlds, in folders below `root`."""

    def __init__(self, forks: Forks, root: Path) -> None:
        self._make, self._root = Makers(forks, root), root
        self._made: dict[str, list[Target]] = {}

    def targets(self, name: str) -> list[Target]:
        """Those of one world."""
        if name not in self._made:
            folder = self._root / name
            folder.mkdir()
            self._made[name] = WORLDS[name][0](self._make, folder)
        return self._made[name]

    def all_targets(self) -> list[Target]:
        return [target for name in WORLDS for target in self.targets(name)]

    def draw(self, case: int, seed: int) -> Target:
        """The target of a case: rounds over all worlds in an order of the seed, and in each over its targets."""
        seats = [name for name, (_, share) in WORLDS.items() for _ in range(share)]
        order = np.random.default_rng(seed).permutation(len(seats))
        name = seats[order[case % len(seats)]]
        before = sum(seats[order[earlier % len(seats)]] == name for earlier in range(case))
        targets = self.targets(name)
        return targets[np.random.default_rng([seed, len(targets)]).permutation(len(targets))[before % len(targets)]]
