"""Do the splits of a data set fit together? One model must read all of them."""

from __future__ import annotations

from collections.abc import Mapping

from mispair.data.features import FeatureStore
from mispair.data.source import Finding
from mispair.errors import InputError


def check_agreement(stores: Mapping[str, FeatureStore], side: str) -> list[Finding]:
    """The features of one side, by split: refuse what no model can read, report what is odd.

    Raises:
        InputError: widths that differ, or more regions in a later split than every image of the first one has.
    """
    findings: list[Finding] = []
    splits = iter(stores.items())
    first_split, first = next(splits, (None, None))
    if first_split is None or first is None:
        return []
    for split, store in splits:
        if store.width != first.width:
            raise InputError(
                f"{_file(store, split)} has {side} features of width {store.width} and {_file(first, first_split)} of"
                f" width {first.width}; expected one width in all splits, so extract them with one and the same encoder"
            )
        if store.regions > first.regions and first.lengths is None:
            raise InputError(
                f"{_file(store, split)} has {store.regions} regions per {side} and {_file(first, first_split)}"
                f" {first.regions}; expected one number in all splits, or NAME_lens.npy that say how many are real"
            )
        if store.regions != first.regions and first.lengths is None:
            text = (
                f"{_file(store, split)} has {store.regions} regions per {side}, {_file(first, first_split)}"
                f" {first.regions}; check that both come from one extraction"
            )
            findings.append(Finding("regions differ between splits", split, store.regions, text))
        if store.array.dtype != first.array.dtype:
            text = (
                f"{_file(store, split)} holds {store.array.dtype}, {_file(first, first_split)} {first.array.dtype};"
                " both are read as float32, but check that they come from one extraction"
            )
            findings.append(Finding("types differ between splits", split, 1, text))
    return findings


def _file(store: FeatureStore, split: str | None) -> str:
    return store.path.name if store.path is not None else f"split {split}"
