"""Tables of pairs, with their features, or with the pictures of a Hugging Face image folder beside them."""

from __future__ import annotations

from pathlib import Path

from mispair.auditing.fixing.judged_data import JudgedData
from mispair.auditing.fixing.slots import WrittenPairs, slots_by_position, slots_of
from mispair.auditing.fixing.writers.feature_files import (
    feature_names,
    feature_options,
    write_features,
    write_second_side,
)
from mispair.auditing.fixing.writers.protocol import link_or_copy, reading_options, where_found
from mispair.auditing.fixing.writers.text_rows import SlotsByLine, rewrite_table
from mispair.data.config import DataConfig
from mispair.data.files.picture_folder import FolderStore
from mispair.data.readers.dispatch import open_pairing
from mispair.data.readers.pair_list import features_path
from mispair.data.readers.table import located, read_table, table_columns


class TableWriter:
    """A .csv, .tsv, .jsonl or .parquet, or a folder with one of them."""

    weights = "weight"

    def home(self, config: DataConfig) -> Path | None:
        return Path(located(config).path).parent

    def files(self, config: DataConfig) -> list[str]:
        path = Path(located(config).path)
        pictures = sorted(set(pictures_beside(config).values()))
        return [path.name, *feature_names(config, path), *pictures]

    def write(self, data: JudgedData, pairs: WrittenPairs, out: Path) -> None:
        path = Path(located(data.config).path)
        columns = table_columns(path, data.config)
        by_position = slots_by_position(data, pairs) if columns.picture or columns.file else None
        slots = list(by_position.values()) if by_position is not None else slots_of(data, pairs)
        assert data.source.lines is not None
        plan: SlotsByLine = {}
        for line, slot in zip(data.source.lines.tolist(), slots, strict=True):
            plan.setdefault(line, []).append(slot)
        rewrite_table(path, data.config, plan, out / path.name)
        assert data.source.positions is not None
        write_features(data, path, pairs, out)
        write_second_side(data, dict(zip(data.source.positions.tolist(), slots, strict=True)), pairs, out)
        link_pictures(data.config, out)

    def arguments(self, config: DataConfig, out: Path) -> list[str]:
        path = Path(located(config).path)
        here = out / path.name
        words = [str(here), *feature_options(config, path, here)]
        if config.second is not None and config.encoder is None:
            words.insert(1, str(out / Path(config.second).name))
        images = config.images
        if images is None and not pictures_beside(config) and table_columns(path, config).picture is None:
            pictures = open_pairing(config, "all").pictures
            images = where_found(pictures, path.parent)
            if pictures is None and features_path(config, path) is None and config.second is None:
                images = "PICTURES"  # judged by vectors that somebody brought along: training needs what they were of
        return words + reading_options(config.model_copy(update={"features": None}), images=images)


def pictures_beside(config: DataConfig) -> dict[str, str]:
    """Where the picture of each image of an image folder lies, below the folder of its metadata file.

    Nothing where the table is an ordinary one: pictures that it names may lie anywhere and belong to others too.
    """
    config = located(config)
    path = Path(config.path)
    if path.stem != "metadata" or config.images is not None or (features_path(config, path) and not config.encoder):
        return {}
    index = read_table(config).pictures
    if index is None or not isinstance(index.store, FolderStore) or index.store.root.resolve() != path.parent.resolve():
        return {}
    inside = FolderStore(index.store.root)
    return {image: place for image, place in index.places.items() if inside.resolve(place) is not None}


def link_pictures(config: DataConfig, out: Path) -> None:
    """The pictures of an image folder that its new metadata file in `out` still names, under the names they had."""
    path = Path(located(config).path)
    pictures = pictures_beside(config)
    if not pictures:
        return
    left = dict.fromkeys(read_table(DataConfig(path=str(out / path.name), columns=config.columns)).images)
    for place in dict.fromkeys(pictures[image] for image in left if image in pictures):
        link_or_copy(path.parent / place, out / place)
