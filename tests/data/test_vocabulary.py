"""Vocabularies and word ids."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import END, PAD, SPECIAL, START, UNK, TokenStore, Vocabulary


def test_build_by_hand() -> None:
    vocabulary = Vocabulary.build(["a dog a cat", "a dog", "bird"], min_count=2)
    assert vocabulary.words == (*SPECIAL, "a", "dog")
    assert vocabulary.encode(["a", "bird"]) == [START, 4, UNK, END]
    assert (PAD, START, END, UNK) == (0, 1, 2, 3)


def test_equal_counts_go_by_spelling() -> None:
    assert Vocabulary.build(["b a", "a b"], 1).words[4:] == ("a", "b")


def test_min_count_is_inclusive() -> None:
    captions = ["dog"] * 4 + ["cat"] * 3
    assert Vocabulary.build(captions, 4).words[4:] == ("dog",)


def test_published_layout_round_trip(tmp_path: Path) -> None:
    vocabulary = Vocabulary.build(["two dogs", 'é "x"'], 1)
    vocabulary.save(tmp_path / "v.json")
    content = json.loads((tmp_path / "v.json").read_text())
    assert set(content) == {"word2idx", "idx2word", "idx"}
    assert content["idx"] == len(vocabulary)
    assert content["word2idx"]["<unk>"] == 3
    assert content["idx2word"]["0"] == "<pad>"
    assert Vocabulary.load(tmp_path / "v.json") == vocabulary


def test_a_published_file_keeps_its_ids(tmp_path: Path) -> None:
    # as SCAN wrote them: arbitrary word order, string keys
    words = {"<start>": 1, "zebra": 4, "<unk>": 3, "apple": 5, "<pad>": 0, "<end>": 2}
    content = {"idx2word": {str(k): w for w, k in words.items()}, "idx": 6, "word2idx": words}
    (tmp_path / "v.json").write_text(json.dumps(content))
    assert Vocabulary.load(tmp_path / "v.json").ids == words


def test_a_special_word_in_a_caption_is_no_new_word() -> None:
    assert Vocabulary.build(["<unk> unk"] * 5, 1).words.count("<unk>") == 1


def test_take_pads_and_masks() -> None:
    vocabulary = Vocabulary.build(["a b c d"], 1)
    store = TokenStore.encode(["a b c d", "", "a x"], vocabulary, 100)
    ids, mask = store.take(np.array([2, 1, 0]))
    assert ids.tolist() == [[1, 4, 3, 2, 0, 0], [1, 2, 0, 0, 0, 0], [1, 4, 5, 6, 7, 2]]
    assert mask.sum(1).tolist() == [4, 2, 6]
    assert ids.dtype == np.int64
    assert not ids[~mask].any()


def test_long_captions_are_cut_and_counted() -> None:
    store = TokenStore.encode(["a " * 50, "a"], Vocabulary.build(["a"], 1), 10)
    assert store.lengths.tolist() == [12, 3]
    assert store.truncated == 1


def test_rows_outside_are_refused() -> None:
    store = TokenStore.encode(["a"], Vocabulary.build(["a"], 1), 10)
    for rows in ([-1], [1]):
        with pytest.raises(IndexError):
            store.take(np.array(rows))


@given(st.lists(st.text("ab .,", max_size=12), min_size=1, max_size=7))
def test_every_row_is_its_caption(captions: list[str]) -> None:
    vocabulary = Vocabulary.build(captions, 1)
    ids, mask = TokenStore.encode(captions, vocabulary, 100).take(np.arange(len(captions)))
    for k, caption in enumerate(captions):
        assert [vocabulary.words[j] for j in ids[k][mask[k]]] == ["<start>", *tokenize(caption), "<end>"]
