"""Ways to encode pictures of one colour, and what their texts become."""

from __future__ import annotations

import numpy as np

from mispair.workflows.embed import Encoding
from tests.colours import colour_encoder

HOW = Encoding("colours", workers=0)


WORDS = Encoding("colours", texts=False, workers=0)


def text_values(captions: list[str]) -> np.ndarray:
    return colour_encoder().encode_texts(captions, ("vector",))["vector"].values
