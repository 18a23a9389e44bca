"""Pairs from files: readers, features, words, noise, batches.

    from mispair.data import DataConfig, open_split
    train = open_split(DataConfig(path="f30k_precomp"), "train")   # a PairData: len(train), train.batch([0, 1])

The names are imported when first used: a check of captions should not wait for torch.
"""

from typing import TYPE_CHECKING

from mispair.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from mispair.data.config import ColumnsConfig, DataConfig, NoiseConfig, ScenesConfig
    from mispair.data.features import FeatureStore, open_features
    from mispair.data.inspection.check import Inspection, check_data
    from mispair.data.noise import make_index, read_index, write_index
    from mispair.data.pair_data import PairData, scene_truth
    from mispair.data.pair_table import PairTable
    from mispair.data.readers.dispatch import list_data_splits, open_pairing, open_source
    from mispair.data.readers.protocol import Reader
    from mispair.data.source import Finding, Source
    from mispair.data.splits import open_split
    from mispair.data.tokenizer import tokenize
    from mispair.data.vocabulary import TokenStore, Vocabulary

_HOMES = {
    "ColumnsConfig": "config",
    "DataConfig": "config",
    "FeatureStore": "features",
    "Finding": "source",
    "Inspection": "inspection.check",
    "NoiseConfig": "config",
    "PairData": "pair_data",
    "PairTable": "pair_table",
    "Reader": "readers.protocol",
    "ScenesConfig": "config",
    "Source": "source",
    "TokenStore": "vocabulary",
    "Vocabulary": "vocabulary",
    "check_data": "inspection.check",
    "list_data_splits": "readers.dispatch",
    "make_index": "noise",
    "open_features": "features",
    "open_pairing": "readers.dispatch",
    "open_source": "readers.dispatch",
    "open_split": "splits",
    "read_index": "noise",
    "scene_truth": "pair_data",
    "tokenize": "tokenizer",
    "write_index": "noise",
}

__all__ = [
    "ColumnsConfig",
    "DataConfig",
    "FeatureStore",
    "Finding",
    "Inspection",
    "NoiseConfig",
    "PairData",
    "PairTable",
    "Reader",
    "ScenesConfig",
    "Source",
    "TokenStore",
    "Vocabulary",
    "check_data",
    "list_data_splits",
    "make_index",
    "open_features",
    "open_pairing",
    "open_source",
    "open_split",
    "read_index",
    "scene_truth",
    "tokenize",
    "write_index",
]


__getattr__ = lazy_exports(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
