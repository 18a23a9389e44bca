"""What a backbone must know about its inputs before it can be built."""

from __future__ import annotations

from pydantic import PositiveInt, model_validator

from mispair.section import Section


class InputSizes(Section):
    """Widths of both sides. The text side has words (`vocabulary_size`) or features (`text_width`), never both."""

    image_width: PositiveInt  # F of the images
    vocabulary_size: PositiveInt | None = None  # word ids are 0 .. vocabulary_size - 1
    text_width: PositiveInt | None = None  # F' of the texts when they are features
    regions: PositiveInt | None = None  # the number of region slots when it is fixed (36), None when it varies

    @model_validator(mode="after")
    def _one_text_side(self) -> InputSizes:
        if (self.vocabulary_size is None) == (self.text_width is None):
            raise ValueError("give either vocabulary_size (texts are words) or text_width (texts are features)")
        return self
