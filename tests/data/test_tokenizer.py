"""Words equal to NLTK's on what captions look like, on what they could look like, and on what tries to break it."""

import random
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mispair.data.config import ScenesConfig
from mispair.data.scenes import make_scenes
from mispair.data.tokenizer import tokenize


@cache
def nltk_tokenizer():
    """Seconds to import, so not where the tests are collected: every process does that."""
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


def nltk_words(caption):
    return nltk_tokenizer().tokenize(caption.lower())


TRICKY = (
    "A man's dog isn't here .",
    "Two dogs' toys, and the boys' ball.",
    "The kid said \"hello there\" to 'the cat'.",
    '"Stop" is on the sign',
    "He'll go, they've gone, I'm here, she'd stay, we're late",
    "rock 'n' roll 'tis 'twas the season",
    "can't cannot gonna gotta wanna gimme lemme",
    "I wanna",
    "more'n d'ye",
    "at 10:30, 3,000 people; 50% off @ $5 #1 & more",
    "what?! really... yes.. no.",
    "a (small) [red] {blue} <green> box",
    "well-known - half-dressed -- dashed – en — em",
    "U.S. flag on the U.S. ship.",
    'ends with quote."',
    "ends with paren.)",
    "«bonjour» “curly” ‘single’ „low”",
    "``back`` `tick`",
    "a,b ,c, d,,e",
    "trailing comma,",
    "colon: here:there 4:5 :",
    "* star *bold*",
    "5' tall and 6'' wide",
    "  many   spaces\tand\ttabs \n newline ",
    ".",
    "..",
    ". .",
    "a. b. c.",
    "",
    " ",
    "'",
    "''",
    '"',
    "ÀÉÎ çà naïve CAFÉ",
    "é'té",
    "日本 の 犬 。",
    "emoji 🐶 dog!",
)


@pytest.mark.parametrize("caption", TRICKY)
def test_tricky_captions(caption: str) -> None:
    assert tokenize(caption) == nltk_words(caption)


def test_by_hand() -> None:
    assert tokenize("A dog's ball, isn't red.") == ["a", "dog", "'s", "ball", ",", "is", "n't", "red", "."]


def test_generated_captions() -> None:
    for caption in make_scenes(ScenesConfig(pictures=200), "train").captions:
        assert tokenize(caption) == nltk_words(caption)


def test_random_mixtures_of_everything_a_rule_looks_at() -> None:
    rng = random.Random(0)
    marks = list(" .,:;'\"`()[]{}<>?!*-@#$%&«»“”‘’„–—…\t\n\r")
    words = ["n't", "'s", "'ll", "'re", "'ve", "'d", "'m", "'t", "'tis", "cannot", "gonna", "wanna", "d'ye", "more'n"]
    words += ["dog", "a", "3", "10:30", "3,000", "u.s.", "é", "İ", "..", "...", "--", "''", "``", "  ", " ", " ", " "]
    for _ in range(6000):
        caption = "".join(rng.choice(marks + words) for _ in range(rng.randint(1, 12)))
        assert tokenize(caption) == nltk_words(caption), repr(caption)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x17F), max_size=60))
def test_any_latin_text(caption: str) -> None:
    assert tokenize(caption) == nltk_words(caption)


def test_bytes_are_refused() -> None:
    with pytest.raises(TypeError, match="decode"):
        tokenize(b"two dogs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["a." + " " * 200_000 + "x", "." * 200_000, "' " * 100_000, '"' * 100_000, "(." * 50_000]
)
def test_no_caption_takes_for_ever(text: str) -> None:
    start = time.process_time()
    tokenize(text)
    assert time.process_time() - start < 3.0
