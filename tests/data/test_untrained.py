"""Vectors that no pair had a part in: means of features, latent semantics of words."""

from dataclasses import replace

import numpy as np

from mispair.data import DataConfig, open_split
from mispair.data.features import FeatureStore
from mispair.data.untrained import WIDEST, untrained_vectors
from tests.synthetic import tiny_data


def test_images_are_by_image_and_texts_by_pair():
    data = tiny_data()
    turned = replace(data, table=replace(data.table, text_rows=data.table.text_rows[::-1].copy()))
    one, other = untrained_vectors(data), untrained_vectors(turned)
    assert len(one.images) == len(data.images)
    assert np.array_equal(one.images, other.images)
    assert np.array_equal(one.texts[::-1], other.texts)


def test_an_image_is_the_mean_of_its_real_regions():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    data = replace(tiny_data(pictures=30), images=FeatureStore(values, np.array([2, 1]), None, None))
    assert np.allclose(untrained_vectors(data).images, [values[0, :2].mean(0), values[1, 0]])


def test_wide_vectors_are_narrowed_alike(tmp_path):
    rng = np.random.default_rng(0)
    for name, width in (("a.npy", 2048), ("b.npy", 700)):
        np.save(tmp_path / name, rng.normal(size=(40, width)).astype(np.float32))
    data = open_split(DataConfig(path=str(tmp_path / "a.npy"), second=str(tmp_path / "b.npy")), "all")
    vectors = untrained_vectors(data)
    assert vectors.images.shape[1] == vectors.texts.shape[1] == WIDEST
    assert np.array_equal(vectors.images, untrained_vectors(data).images)
    full = np.load(tmp_path / "a.npy") @ np.load(tmp_path / "a.npy").T
    near = vectors.images @ vectors.images.T
    assert np.corrcoef(full.ravel(), near.ravel())[0, 1] > 0.9  # a projection keeps who is alike


def test_pictures_decoded_by_batch_have_none():
    assert untrained_vectors(replace(tiny_data(pictures=30), images=object())) is None
