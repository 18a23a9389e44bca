"""Pairs from files: tables, features, words, noise, batches."""

from mispair.data.config import ColumnsConfig, DataConfig, NoiseConfig, ScenesConfig
from mispair.data.opening import list_data_splits, open_source, open_split
from mispair.data.pairs import PairData, scene_truth

__all__ = [
    "ColumnsConfig",
    "DataConfig",
    "NoiseConfig",
    "PairData",
    "ScenesConfig",
    "list_data_splits",
    "open_source",
    "open_split",
    "scene_truth",
]
