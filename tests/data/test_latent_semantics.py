"""Texts as vectors without training: against the dense decomposition, and what is left out."""

import numpy as np
import torch

from mispair.data.latent_semantics import latent_semantics


def flat(texts):
    return np.concatenate([np.array(text, np.int64) for text in texts]), np.cumsum([0, *map(len, texts)])


def dense(texts, kinds):
    """The matrix of texts by words the slow, obvious way."""
    matrix = np.zeros((len(texts), kinds))
    for row, text in enumerate(texts):
        for word in set(text):
            count = sum(word in other for other in texts)
            if 2 <= count <= max(0.3 * len(texts), 2):
                matrix[row, word] = np.log(len(texts) / count)
    return matrix


def drawn(texts=97, kinds=60, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(kinds, rng.integers(0, 9), p=rng.dirichlet(np.ones(kinds))).tolist() for _ in range(texts)]


def test_inner_products_are_those_of_the_dense_decomposition():
    texts = drawn()
    vectors = latent_semantics(*flat(texts), width=11).numpy()
    left, values, _ = np.linalg.svd(dense(texts, 60), full_matrices=False)
    expected = left[:, :11] * values[:11]
    assert vectors.shape == (97, 11)
    error = np.linalg.norm(vectors @ vectors.T - expected @ expected.T) / np.linalg.norm(expected @ expected.T)
    assert error < 0.05  # a random subspace comes near, it is not the same


def test_a_width_that_is_not_there_is_not_given():
    texts = [[0, 1], [0, 1], [2, 3], [2, 3], [4], [4], [5], [5]]
    vectors = latent_semantics(*flat(texts), width=50).numpy()
    matrix = dense(texts, 6)
    assert vectors.shape == (8, 6)
    assert np.allclose(vectors @ vectors.T, matrix @ matrix.T, atol=1e-4)


def test_words_of_one_text_and_of_nearly_all_say_nothing():
    texts = [[0, k] for k in range(1, 20)] + [[]]
    assert not latent_semantics(*flat(texts), width=4).any()


def test_a_word_counts_once_and_the_order_does_not():
    texts = drawn()
    again = [[*reversed(text), *text] for text in texts]
    one, other = latent_semantics(*flat(texts), width=7), latent_semantics(*flat(again), width=7)
    assert torch.equal(one, other)
