"""What towers that learn are fed: pictures as their network's numbers, captions as ids of their pieces.

The marks at both ends of a text are not among the ids: `mispair.encoders.towers` adds them. So parts of a text can be
left out, and what is left is still a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mispair.encoders.hub import HubEncoder
from mispair.encoders.own import TwoEncoders
from mispair.encoders.registry import open_encoder
from mispair.errors import InputError
from mispair.pictures.decode import Broken, decode


class TowerInputs:
    """The inputs of both towers of an encoder.

    Raises InputError for an encoder that is not made of hub models: there is no network to train.
    """

    def __init__(self, name: str) -> None:
        encoder = open_encoder(name, device="cpu", precision="float32")
        pictures, words = (encoder.pictures, encoder.words) if isinstance(encoder, TwoEncoders) else (encoder, encoder)
        for part, side in ((pictures, "images"), (words, "texts")):
            if not isinstance(part, HubEncoder):
                raise InputError(
                    f"the encoder '{part.name}' has no towers that can be trained, only hub models have (clip-b32,"
                    " siglip2-base, a folder of weights); train a head on it: --tune head"
                )
            if not getattr(part, side):
                raise InputError(f"the encoder '{part.name}' does not read {side}; name a second one for them: A+B")
        assert isinstance(pictures, HubEncoder)
        assert isinstance(words, HubEncoder)
        self.name, self.fingerprint, self.joint = encoder.name, encoder.fingerprint, encoder.joint
        self.pictures, self.words = pictures, words

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one picture as the processor of its tower prepares it."""
        from PIL import Image

        return self.pictures.prepare(Image.new("RGB", (self.pictures.side,) * 2)).shape

    def prepare(self, data: bytes | Broken) -> NDArray[np.float32] | Broken:
        """A picture file as its tower reads it, `shape`; or why it cannot be read. From any thread."""
        picture = data if isinstance(data, Broken) else decode(data, self.pictures.side)
        return picture if isinstance(picture, Broken) else self.pictures.prepare(picture)

    @cached_property
    def pieces(self) -> int:
        """Size of the tokenizer's vocabulary: ids of pieces are 0 .. pieces - 1."""
        config: Any = self.words.text_config
        return int(config.vocab_size)

    @cached_property
    def marks(self) -> tuple[list[int], list[int]]:
        """What the tokenizer puts before and after a text."""
        whole = list(self.words.tokenizer("a")["input_ids"])
        bare = list(self.words.tokenizer("a", add_special_tokens=False)["input_ids"])
        start = next(k for k in range(len(whole)) if whole[k : k + len(bare)] == bare)
        return whole[:start], whole[start + len(bare) :]

    @cached_property
    def padding(self) -> int:
        return int(self.words.tokenizer.pad_token_id or 0)

    def number(self, captions: Sequence[str]) -> list[list[int]]:
        """The ids of the pieces of every caption, as many as the tower takes; one mark stands for an empty caption."""
        before, after = self.marks
        most = self.words.most_tokens - len(before) - len(after)
        if not len(captions):
            return []
        clean = self.words.cleaned(captions)
        pieces = self.words.tokenizer(clean, add_special_tokens=False, truncation=True, max_length=most)["input_ids"]
        nothing = [(after or before or [self.padding])[0]]
        return [list(ids) or nothing for ids in pieces]
