"""Numbers before nouns, and that nobody writes the s by hand."""

import re
from pathlib import Path

import pytest

from mispair.counted import counted, either

SOURCE = Path(__file__).parents[1] / "src" / "mispair"


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 pictures"), (1, "1 picture"), (2, "2 pictures"), (12345, "12,345 pictures")]
)
def test_the_word_follows_the_number(count, said):
    assert counted(count, "picture") == said


def test_a_verb_comes_along():
    assert counted(1, "pair was", "pairs were") == "1 pair was"
    assert counted(0, "pair was", "pairs were") == "0 pairs were"
    assert either(1, "it", "them") == "it"
    assert either(3, "it", "them") == "them"


def test_nobody_writes_the_s_by_hand():
    by_hand = re.compile(r"""\{\s*['"][^'"]*['"]\s+if .+? else ['"] ?s\b|\{['"]s['"] if """)
    found = [path.name for path in SOURCE.rglob("*.py") if by_hand.search(path.read_text(encoding="utf-8"))]
    assert not found
