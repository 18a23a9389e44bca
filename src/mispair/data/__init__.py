"""Pairs from files: tables, features, words, noise, batches.

The names are imported when first used: a check of captions should not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mispair.data.config import ColumnsConfig, DataConfig, NoiseConfig, ScenesConfig
    from mispair.data.inspection import inspect
    from mispair.data.opening import open_split
    from mispair.data.pairs import PairData, scene_truth
    from mispair.data.sources import list_data_splits, open_source

_HOMES = {
    "ColumnsConfig": "config",
    "DataConfig": "config",
    "NoiseConfig": "config",
    "PairData": "pairs",
    "ScenesConfig": "config",
    "inspect": "inspection",
    "list_data_splits": "sources",
    "open_source": "sources",
    "open_split": "opening",
    "scene_truth": "pairs",
}

__all__ = [
    "ColumnsConfig",
    "DataConfig",
    "NoiseConfig",
    "PairData",
    "ScenesConfig",
    "inspect",
    "list_data_splits",
    "open_source",
    "open_split",
    "scene_truth",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mispair.data' has no attribute {name!r}")
    return getattr(import_module(f"mispair.data.{_HOMES[name]}"), name)
