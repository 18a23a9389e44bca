"""What reviewers decided about the pairs of a training: the pairs it need not guess."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mispair.config.schema import RunConfig
from mispair.data.config import DataConfig
from mispair.data.pair_table import PairTable
from mispair.data.readers.dispatch import given_pairs, open_pairing
from mispair.errors import InputError
from mispair.methods import METHODS
from mispair.reviewing.agreement import majority
from mispair.reviewing.decisions import read_decisions
from mispair.reviewing.identity import pairs_identity


def known_pairs(config: RunConfig, table: PairTable) -> NDArray[np.int8] | None:
    """By pair id: 1 mismatched, 0 matched, -1 nobody looked; None where the configuration names no decisions.

    Decisions may be about the training pairs, or about all splits together.

    Raises:
        InputError: the decisions are about other pairs, or the method has no use for them.
    """
    if config.data.decisions is None:
        return None
    name = config.method.name
    if not METHODS.find(name).takes_known:
        able = ", ".join(other for other, method in METHODS.everybody()[0].items() if method.takes_known)
        raise InputError(
            f"{name} does not tell matched from mismatched pairs, so decisions mean nothing to it; use one of {able},"
            " or write them into the data with mispair fix --decisions"
        )
    path = Path(config.data.decisions)
    decided = read_decisions(path)
    known = np.full(len(table), -1, np.int8)
    place = _places(decided.audit, decided.pairs, config.data, table)
    if place is None:
        raise InputError(
            f"{path} holds decisions about other pairs than those of the train split; audit and review this data, as it"
            " is trained on"
        )
    for pair, mismatched in majority(decided.standing).items():
        if place[pair] >= 0:
            known[place[pair]] = mismatched
    return known


def _places(audit: str, pairs: int, config: DataConfig, table: PairTable) -> NDArray[np.int64] | None:
    """(pairs,) which training pair each pair of the audit is, -1 for none; None where it judged other pairs."""
    if pairs == len(table) and pairs_identity(table) == audit:
        return table.pair_ids
    if config.noise is not None:  # the mismatches made on purpose were not in what was judged
        return None
    whole, train = open_pairing(config, "all"), open_pairing(config, "train")
    judged = given_pairs(whole)
    if len(judged) != pairs or pairs_identity(judged) != audit or whole.positions is None or train.positions is None:
        return None
    pair_at = np.full(int(whole.positions.max()) + 1, -1, np.int64)
    pair_at[train.positions] = np.arange(len(train.positions))
    return np.asarray(pair_at[whole.positions])
