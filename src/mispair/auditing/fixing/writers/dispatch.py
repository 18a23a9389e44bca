"""Which writer writes what a configuration names: each reader has one."""

from __future__ import annotations

from mispair.auditing.fixing.writers.arrays import ArraysWriter
from mispair.auditing.fixing.writers.caption_files import CocoWriter, KarpathyWriter, TokenWriter
from mispair.auditing.fixing.writers.column_files import ParquetFolderWriter, SavedDatasetWriter
from mispair.auditing.fixing.writers.picture_files import ImageFolderWriter, PictureFilesWriter
from mispair.auditing.fixing.writers.precomp import PrecomputedWriter, ScenesWriter, TokenIdWriter
from mispair.auditing.fixing.writers.protocol import Writer
from mispair.auditing.fixing.writers.table import TableWriter
from mispair.auditing.fixing.writers.tar_shards import TarShardsWriter
from mispair.data.config import DataConfig
from mispair.data.readers.arrays import TwoArrays
from mispair.data.readers.coco import CocoCaptions
from mispair.data.readers.dispatch import reader_of
from mispair.data.readers.flickr_token import FlickrTokens
from mispair.data.readers.image_folder import ImageFolder
from mispair.data.readers.karpathy import KarpathySplits
from mispair.data.readers.parquet_shards import ParquetShards
from mispair.data.readers.picture_files import PictureFiles
from mispair.data.readers.precomp import PrecomputedFolder
from mispair.data.readers.protocol import Reader
from mispair.data.readers.saved_dataset import SavedDataset
from mispair.data.readers.scenes import Scenes
from mispair.data.readers.table import Table
from mispair.data.readers.tar_shards import TarShards
from mispair.data.readers.token_ids import TokenIdFolder

WRITERS: dict[type[Reader], Writer] = {
    Scenes: ScenesWriter(),
    PrecomputedFolder: PrecomputedWriter(),
    TokenIdFolder: TokenIdWriter(),
    SavedDataset: SavedDatasetWriter(),
    TarShards: TarShardsWriter(),
    Table: TableWriter(),
    TwoArrays: ArraysWriter(),
    ImageFolder: ImageFolderWriter(),
    ParquetShards: ParquetFolderWriter(),
    KarpathySplits: KarpathyWriter(),
    CocoCaptions: CocoWriter(),
    FlickrTokens: TokenWriter(),
    PictureFiles: PictureFilesWriter(),
}


def writer_of(config: DataConfig) -> Writer:
    """The writer of the format that `config` names; InputError where no reader knows it."""
    return WRITERS[type(reader_of(config))]
