"""An encoder that costs nothing, and pictures for it."""

from __future__ import annotations

import numpy as np

from mispair.encoders.own import FunctionEncoder
from mispair.encoders.pipeline import PictureItem
from mispair.encoders.protocol import EncoderOutput
from tests.pictures.samples import colours, saved


def mean_colours(pictures: np.ndarray) -> np.ndarray:
    return pictures.reshape(len(pictures), -1, 3).mean(1)


def text_sizes(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), text.count(" "), 1.0] for text in texts], np.float32)


def tiny(version: str = "1") -> FunctionEncoder:
    return FunctionEncoder("tiny", version, images=mean_colours, texts=text_sizes, side=8)


class Tokens(FunctionEncoder):
    """Also cells of pictures and tokens of texts: a row per word, four at most."""

    def __init__(self) -> None:
        super().__init__("tokens", "1", images=mean_colours, texts=text_sizes, side=8)
        self.images = {"vector": (3,), "cells": (4, 3)}
        self.texts = {"tokens": (4, 2)}

    def encode_images(self, prepared, outputs):
        quarters = prepared.reshape(len(prepared), 2, 4, 2, 4, 3).mean((2, 4)).reshape(-1, 4, 3).astype(np.float32)
        return {"vector": EncoderOutput(quarters.mean(1)), "cells": EncoderOutput(quarters)}

    def encode_texts(self, texts, outputs):
        values, lengths = np.zeros((len(texts), 4, 2), np.float32), []
        for row, text in enumerate(texts):
            words = text.split()[:4] or [""]
            lengths.append(len(words))
            values[row, : len(words)] = [[len(word), 1.0] for word in words]
        return {"tokens": EncoderOutput(values, np.array(lengths))}


def pictures(count: int) -> list[PictureItem]:
    """Pictures that all differ."""
    items = []
    for k in range(count):
        picture = colours(12, 12)
        picture.putpixel((k % 12, 6), (k // 12, 7, 7))
        data = saved(picture, "PNG")
        items.append(PictureItem(f"p{k}.png", lambda data=data: data))
    return items


PICTURES = [colours(64, 48), colours(30, 90), colours(200, 200)]


def images(encoder, *outputs: str):
    return encoder.encode_images(np.stack([encoder.prepare(picture) for picture in PICTURES]), outputs)
