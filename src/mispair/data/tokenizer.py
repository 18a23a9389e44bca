"""Words of a caption: lower-cased Treebank-style tokens, equal to NLTK's NLTKWordTokenizer, without NLTK.

Published vocabularies were made with NLTK, so a caption must fall into the same words here. The rules below are
that convention, applied in its order. Most captions hold nothing a rule could touch; they are split directly.
"""

from __future__ import annotations

import re

# Anything here sends a caption through the rules. A comma before a space and a single period are handled on the way.
_TRICKY = re.compile(
    "[«»“”‘’„`\"':;@#$%&?!*\\[\\](){}<>\u2012-\u2015\x1c-\x1f]|--|\\.\\.|,(?! )"
    "|\\b(?:cannot|gimme|gonna|gotta|lemme|wanna)\\b"
)

_OPENING_QUOTES = (
    (re.compile("([«“‘„]|`+)"), r" \1 "),
    (re.compile(r'^"'), "``"),
    (re.compile("(``)"), r" \1 "),
    (re.compile(r"""([ (\[{<])("|'')"""), r"\1 `` "),
    # an accent may stand as a letter of its own (U+0300 and on): it continues the word
    (re.compile("(?<![\\w\u0300-\u036f])(')(?!(?:re|ve|ll|m|t|s|d|n)\\b)(?=\\w)"), r"\1 "),
)
_PUNCTUATION = (
    (
        re.compile(r"""([^.])(\.)([\])}>"'»”’ ]*)[^\S\x1c-\x1f]*$"""),
        r"\1 \2 \3 ",
    ),  # the last period, also before closing marks
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),  # not inside 10:30 or 3,000
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"\.{2,}"), r" \g<0> "),
    (re.compile("[;@#$%&]"), r" \g<0> "),
    (re.compile("[\u2012-\u2015]"), r" \g<0> "),
    (re.compile(r"""([^.])(\.)([\])}>"']*)[^\S\x1c-\x1f]*$"""), r"\1 \2\3 "),
    (re.compile("[?!]"), r" \g<0> "),
    (re.compile("([^'])' "), r"\1 ' "),
    (re.compile(r"\*"), r" \g<0> "),
    (re.compile(r"[\]\[(){}<>]"), r" \g<0> "),
    (re.compile("--"), " -- "),
)
_CLOSING_QUOTES = (
    (re.compile("([»”’])"), r" \1 "),
    (re.compile("''"), " '' "),
    (re.compile('"'), " '' "),
    (re.compile(r"[^\S\x1c-\x1f]+"), " "),
    (re.compile("([^' ])('s|'m|'d|') "), r"\1 \2 "),
    (re.compile("([^' ])('ll|'re|'ve|n't) "), r"\1 \2 "),
)
_CONTRACTIONS = tuple(
    (re.compile(pattern), r" \1 \2 ")
    for pattern in (
        r"\b(can)(not)\b",
        r"\b(d)('ye)\b",
        r"\b(gim)(me)\b",
        r"\b(gon)(na)\b",
        r"\b(got)(ta)\b",
        r"\b(lem)(me)\b",
        r"\b(more)('n)\b",
        r"\b(wan)(na)(?=\s)",
        r" ('t)(is)\b",
        r" ('t)(was)\b",
    )
)
_SPACES = re.compile("  +")


def tokenize(caption: str) -> list[str]:
    """The words of one caption, lower-cased; punctuation marks are words."""
    if not isinstance(caption, str):
        # str(b"two") would become the words b and 'two, which is how this went wrong elsewhere
        raise TypeError(f"a caption is text, got {type(caption).__name__}: decode bytes as UTF-8 first")
    text = caption.lower()
    if _TRICKY.search(text):
        return _by_the_rules(text)
    if "," in text:
        text = text.replace(",", " , ")  # a last comma has no space after it: it went through the rules
    if "." in text:
        text = text.rstrip()
        if text.endswith("."):
            return [*text[:-1].split(), "."]
    return text.split()


def _by_the_rules(text: str) -> list[str]:
    # Runs of spaces mean what one space means to every rule, and would make the search for the last period quadratic.
    text = _SPACES.sub(" ", text)
    for rule, replacement in _OPENING_QUOTES:
        text = rule.sub(replacement, text)
    for rule, replacement in _PUNCTUATION:
        text = rule.sub(replacement, text)
    text = f" {text} "
    for rule, replacement in _CLOSING_QUOTES:
        text = rule.sub(replacement, text)
    for rule, replacement in _CONTRACTIONS:
        text = rule.sub(replacement, text)
    return text.split()
