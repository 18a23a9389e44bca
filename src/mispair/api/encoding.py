"""The front door for pictures: encode them once, or let an encoder judge them without training."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mispair.api.data_section import data_section
from mispair.errors import InputError

if TYPE_CHECKING:
    from mispair.data import DataConfig
    from mispair.encoders.protocol import Encoder
    from mispair.workflows.report.verdicts import VerdictsWithReport

    PathLike = str | os.PathLike[str]
    Tell = Callable[[str, int, int], None]

__all__ = ["audit_pictures", "embed"]


def embed(
    data: PathLike | DataConfig,
    out: PathLike | None = None,
    *,
    images: PathLike | None = None,
    encoder: str | Encoder = "basic",
    cells: bool = False,
    texts: bool | None = None,
    batch: int = 32,
    workers: int | None = None,
    device: str = "auto",
    missing: str | None = None,
    columns: Mapping[str, str] | None = None,
    shard: str | None = None,
    tell: Tell | None = None,
) -> DataConfig:
    """Encode the pictures of a data set, once; what was encoded before is read from the cache.

    Args:
        data: a table with pictures beside it or at `images`, a folder of pictures, tar shards, a Parquet with pictures,
            COCO's or Karpathy's JSON, or a `mispair.data.DataConfig`.
        out: a new folder for the features; by default they stay in the cache.
        images: where the pictures are: a folder, a tar, a folder of tars.
        encoder: a name that `mispair encoders` shows, a folder of weights, or an encoder of your own.
        cells: a grid of vectors per picture instead of one, for sgr, saf and imram.
        texts: captions as the encoder's vectors instead of words; by default where there is one vector per picture and
            the encoder knows texts.
        batch, workers, device: pictures encoded at a time, threads that decode, and where.
        missing: "refuse" or "skip" pairs whose picture cannot be had or decoded.
        columns: names of the columns image, caption, split and id.
        shard: the i-th of n shares of the data alone, "3/7", into `out`; `mispair.merge_embedded` makes one of all.
        tell: called with what is being done, how much of it is done, and how much there is.

    Returns:
        The data with its features, for `mispair.train`, `mispair.audit` and `mispair.data.open_split`.

    Raises:
        InputError: pictures or the encoder cannot be used; the message says what would be right.

    Example:
        >>> run = mp.train(mp.embed("pairs.csv", images="photos"))
    """
    from mispair.progress import silent
    from mispair.workflows.embed import Encoding, encode_data
    from mispair.workflows.embed_folder import embed as embed_folder
    from mispair.workflows.shards import parse_shard

    config = data_section(data, {"images": images, "missing": missing, "columns": columns})
    how = Encoding(encoder, cells, texts, batch, workers, device)
    if out is not None:
        cut = None if shard is None else parse_shard(shard)
        return embed_folder(config, how, Path(out), tell or silent, cut).config
    if shard is not None:
        raise InputError("a shard is written into a folder of its own: name it with out=")
    return encode_data(config, how, tell or silent).config


def audit_pictures(
    data: PathLike | DataConfig,
    *,
    images: PathLike | None = None,
    encoder: str | Encoder = "basic",
    batch: int = 32,
    workers: int | None = None,
    device: str = "auto",
    missing: str | None = None,
    columns: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> VerdictsWithReport:
    """Judge every pair of a picture and a caption by an encoder that has one space for both: nothing is trained.

    Args:
        data, images, batch, workers, device, missing, columns, tell: as in `mispair.embed`.
        encoder: one with a common space, such as basic, clip-b32 or siglip2-base.

    Returns:
        `Verdicts`: one row per pair and the facts about all of them.

    Example:
        >>> mp.audit_pictures("pairs.csv", images="photos").worst(10)
    """
    from mispair.progress import silent
    from mispair.workflows.audit_pictures import audit_pictures as judge
    from mispair.workflows.embed import Encoding
    from mispair.workflows.report.verdicts import with_report

    how = Encoding(encoder, batch=batch, workers=workers, device=device)
    config = data_section(data, {"images": images, "missing": missing, "columns": columns})
    return with_report(judge(config, how, tell=tell or silent))
