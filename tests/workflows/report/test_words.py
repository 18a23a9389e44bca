"""Which words of a caption carried its score, against leaving out each one by hand."""

import numpy as np
import pytest
import torch

from mispair.data.tokenizer import tokenize
from mispair.data.vocabulary import TokenStore
from mispair.workflows.report.words import _spans, judge_words
from mispair.workflows.trained_run import load_run


def test_words_against_the_slow_way(trained, data):
    run = load_run(trained)
    captions = [data.table.captions[0], data.table.captions[7]]
    row = 3
    model, vocabulary = run.models[0], run.vocabulary

    def score(words):
        store = TokenStore.encode([" ".join(words)], vocabulary, 200)
        ids, mask = store.take(np.array([0]))
        images = model.encode_images(*data.image_batch(np.array([row])))
        texts = model.encode_texts(torch.from_numpy(ids), torch.from_numpy(mask))
        return model.link(model.similarity(images, texts)).item()

    effects = []
    for caption in captions:
        words = tokenize(caption)
        effects.append([score(words) - score(words[:k] + words[k + 1 :]) for k in range(len(words))])
    known = [
        e
        for caption, row_ in zip(captions, effects, strict=True)
        for w, e in zip(tokenize(caption), row_, strict=True)
        if w.isalnum()
    ]
    strongest = max(abs(e) for e in known)
    with torch.no_grad():
        found = judge_words(run, data, row, captions)
    for caption, pieces, row_ in zip(captions, found, effects, strict=True):
        assert "".join(piece.text for piece in pieces) == caption
        judged = [(p.text.lower(), p.agreement) for p in pieces if p.agreement is not None]
        expected = [(w, e / strongest) for w, e in zip(tokenize(caption), row_, strict=True) if w.isalnum()]
        assert [w for w, _ in judged] == [w for w, _ in expected]
        assert [e for _, e in judged] == pytest.approx([e for _, e in expected], abs=1e-4)


def test_places_of_words_by_hand():
    caption = 'A dog, "the" dog.'
    assert _spans(caption, tokenize(caption)) == [(0, 1), (2, 5), (5, 6), None, (8, 11), None, (13, 16), (16, 17)]
    assert _spans("İstanbul at night", ["istanbul", "at", "night"]) == [None, None, None]
    assert _spans("", []) == []


def test_hostile_captions_come_back_whole(trained, data):
    captions = ["<b>a</b> \x00 \u202e", "", "a " * 500, "«a» ``b'' ... can't"]
    for caption, pieces in zip(captions, judge_words(load_run(trained), data, 0, captions), strict=True):
        assert "".join(piece.text for piece in pieces) == caption
