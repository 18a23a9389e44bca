"""Numbers before nouns: 1 picture, 2,000 pictures. What a person reads is made here, whatever the number."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """`count` and the word for so many: counted(1, "pair was", "pairs were"); by default `many` has an s."""
    return f"{count:,} {either(count, one, f'{one}s' if many is None else many)}"


def either(count: int, one: str, many: str) -> str:
    """The word for so many, without the number."""
    return one if count == 1 else many
