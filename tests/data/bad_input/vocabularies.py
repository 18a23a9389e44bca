"""Vocabularies that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

from tests.data.bad_input.cases import CASES, case
from tests.data.samples import precomp


def vocabulary_case(name: str, content: object, *fragments: str) -> None:
    def build(folder: Path) -> list[object]:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "vocab.json").write_text(text, encoding="utf-8")
        return ["check", precomp(folder / "data"), "--vocabulary", folder / "vocab.json"]

    CASES[name] = (build, ("vocab.json", *fragments))


WORDS = {"<pad>": 0, "<start>": 1, "<end>": 2, "<unk>": 3, "dog": 4}
vocabulary_case("vocabulary_without_unk", {"word2idx": {"<pad>": 0, "<start>": 1, "<end>": 2}}, "no <unk>")
vocabulary_case("vocabulary_other_order", {"word2idx": {**WORDS, "<pad>": 3, "<unk>": 0}}, "ids 0..3")
vocabulary_case("vocabulary_two_words_one_id", {"word2idx": {**WORDS, "cat": 4}}, "'cat'", "once")
vocabulary_case("vocabulary_gap", {"word2idx": {**WORDS, "dog": 9}}, "'dog' has id 9")
vocabulary_case("vocabulary_id_is_text", {"word2idx": {**WORDS, "dog": "4"}}, "'dog'")
vocabulary_case("vocabulary_disagrees", {"word2idx": WORDS, "idx2word": {"4": "cat"}}, "disagrees")
vocabulary_case("vocabulary_a_list", list(WORDS), "word2idx")
vocabulary_case("vocabulary_empty_table", {"word2idx": {}}, "word2idx")
vocabulary_case("vocabulary_not_json", '{"word2idx": {', "line 1", "not JSON")
vocabulary_case("vocabulary_too_deep", "[" * 100_000, "JSON")


@case("vocab.json", "does not exist")
def vocabulary_missing(folder: Path) -> list[object]:
    return ["check", precomp(folder), "--vocabulary", folder / "vocab.json"]
