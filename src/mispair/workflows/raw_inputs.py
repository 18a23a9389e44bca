"""Captions and pictures as a run that was trained on an encoder's vectors reads them: through the same encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.data.config import DataConfig
from mispair.encoders.protocol import Encoder
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.pictures.decode import Broken, decode


def reads_captions(config: DataConfig) -> bool:
    """Whether the second side of the data is what an encoder makes of captions."""
    return config.encoder is not None and (config.second is not None or config.live)


def pieces_of_captions(config: DataConfig, captions: Sequence[str]) -> list[list[int]]:
    """The ids that towers that learn read of n captions."""
    from mispair.encoders.tower_inputs import TowerInputs

    assert config.encoder is not None
    return TowerInputs(config.encoder).number(captions)


def caption_vectors(config: DataConfig, captions: Sequence[str]) -> NDArray[np.float32]:
    """(n, d) the encoder's vectors of n captions."""
    return _encoder(config).encode_texts(list(captions), ("vector",))["vector"].values


def picture_features(config: DataConfig, pictures: Sequence[bytes]) -> NDArray[np.float32]:
    """(n, D) or (n, R, D) the features of some picture files, as those the run was trained on.

    Raises:
        InputError: the run was not trained on an encoder's features, or one of these is no picture.
    """
    if config.live:
        from mispair.encoders.tower_inputs import TowerInputs

        assert config.encoder is not None
        return prepared_pictures(TowerInputs(config.encoder).pictures, pictures).reshape(len(pictures), -1)
    encoder = _encoder(config)
    output = "cells" if config.cells else "vector"
    return encoder.encode_images(prepared_pictures(encoder, pictures), (output,))[output].values


def prepared_pictures(encoder: Encoder, pictures: Sequence[bytes]) -> NDArray[Any]:
    """(n, ...) some picture files as the encoder's network reads them.

    Raises:
        InputError: one of these is no picture.
    """
    prepared = []
    for data in pictures:
        picture = decode(data, encoder.side)
        if isinstance(picture, Broken):
            raise InputError(f"the picture cannot be used: {picture.reason}")
        prepared.append(encoder.prepare(picture))
    return np.stack(prepared)


def _encoder(config: DataConfig) -> Encoder:
    if config.encoder is None:
        raise InputError("this run was trained on features of unknown origin: it cannot read pictures or new captions")
    return _opened(config.encoder)


@lru_cache(maxsize=2)
def _opened(name: str) -> Encoder:
    return open_encoder(name)
