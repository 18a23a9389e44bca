"""The generated world: same seed same world, true captions, features from pixels, learnable."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mispair.data import DataConfig, ScenesConfig, open_split
from mispair.data.readers.precomp import open_precomp
from mispair.data.scenes import make_scenes, split_sizes, true_pairs, write_scenes
from mispair.data.scenes.boxes import REGIONS, find_boxes, ground_colour
from mispair.data.scenes.draw import _RADII, _SHAPES, _TURNS, _mask
from mispair.data.scenes.grammar import ANY, Claim, holds
from mispair.data.scenes.regions import WIDTH
from mispair.data.scenes.world import Scene
from mispair.errors import InputError

SMALL = ScenesConfig(pictures=60)


def test_same_seed_same_world() -> None:
    one = make_scenes(SMALL, "train")
    make_scenes.cache_clear()
    other = make_scenes(SMALL, "train")
    assert one is not other
    assert one.captions == other.captions
    assert np.array_equal(one.compute_features(), other.compute_features())
    assert one.png(3) == other.png(3)
    seeded = make_scenes(ScenesConfig(pictures=60, seed=1), "train")
    assert seeded.captions != one.captions


def test_a_larger_world_starts_like_the_smaller() -> None:
    small, large = make_scenes(SMALL, "test"), make_scenes(ScenesConfig(pictures=200), "test")
    assert len(large) > len(small)
    assert large.captions[: len(small.captions)] == small.captions
    assert np.array_equal(large.features[: len(small)], small.features)


def test_splits_share_no_picture() -> None:
    hashes = [{make_scenes(SMALL, split).png(k) for k in range(6)} for split in split_sizes(SMALL)]
    assert len(set.union(*hashes)) == 18
    assert sum(split_sizes(SMALL).values()) == 60


def test_pictures_are_pngs() -> None:
    picture = Image.open(io.BytesIO(make_scenes(SMALL, "dev").png(0)))
    assert picture.format == "PNG"
    assert picture.size == (96, 96)


def test_five_captions_each_and_no_caption_twice() -> None:
    world = make_scenes(ScenesConfig(pictures=800), "train")
    assert len(world.captions) == 5 * len(world)
    assert len({caption.lower() for caption in world.captions}) == len(world.captions)


def test_truth_against_a_slow_oracle() -> None:
    world = make_scenes(SMALL, "train")
    truth = world.truth()

    def fits(mention: tuple[int, ...], thing: tuple[int, ...]) -> bool:
        return all(said in (ANY, value) for said, value in zip(mention, thing, strict=True))

    def true(said: Claim, scene: Scene) -> bool:
        if said.background not in (ANY, scene.background) or said.count not in (ANY, len(scene.objects)):
            return False

        def assign(k: int, used: tuple[int, ...]) -> bool:
            if k == len(said.mentions):
                if said.relation == 0:
                    return True
                return holds(said.relation, scene.objects[used[0]], scene.objects[used[1]])
            return any(
                assign(k + 1, (*used, j))
                for j, thing in enumerate(scene.objects)
                if j not in used and fits(said.mentions[k], thing)
            )

        return assign(0, ())

    for i, scene in enumerate(world.scenes):
        assert truth[i].tolist() == [true(said, scene) for said in world.claims]


def test_truth_by_hand() -> None:
    red_circle, blue_square = (0, 0, 1, 0, 0, 0), (1, 5, 1, 0, 0, 2)
    scene = Scene((red_circle, blue_square), background=1)
    red, blue = (ANY, 0, ANY, ANY, ANY, ANY), (ANY, 5, ANY, ANY, ANY, ANY)
    claims = [
        Claim((red,), 0, ANY, ANY),
        Claim((red, red), 0, ANY, ANY),  # there is one red thing, not two
        Claim((red, blue), 1, ANY, ANY),  # red left of blue
        Claim((blue, red), 1, ANY, ANY),
        Claim((red,), 0, 2, ANY),  # another background
        Claim((red,), 0, ANY, 3),  # another count
        Claim((red, blue), 5, ANY, ANY),  # near: they are two columns apart
    ]
    assert true_pairs([scene], claims).tolist() == [[True, False, True, False, False, False, False]]


def test_many_captions_are_true_of_several_pictures() -> None:
    world = make_scenes(ScenesConfig(pictures=800), "train")
    truth = world.truth()
    assert truth[world.image_of_text, np.arange(len(world.captions))].all()
    shared = (truth.sum(0) > 1).mean()
    assert 0.2 < shared < 0.7


def test_objects_are_found_in_the_pixels() -> None:
    world = make_scenes(SMALL, "train")
    pictures = np.stack([world.picture(k) for k in range(len(world))])
    rngs = [np.random.default_rng(k) for k in range(len(world))]
    boxes = find_boxes(pictures, ground_colour(pictures), rngs)
    assert boxes.shape == (len(world), REGIONS, 4)
    middle = (boxes[..., :2] + boxes[..., 2:]) / 2 // 32
    hit = [
        any((middle[k] == (row, column)).all(1))
        for k, scene in enumerate(world.scenes)
        for *_, row, column in scene.objects
    ]
    assert np.mean(hit) > 0.95


def test_features_are_plain_numbers() -> None:
    features = make_scenes(SMALL, "train").features
    assert features.shape == (split_sizes(SMALL)["train"], REGIONS, WIDTH)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def test_noise_is_added_when_asked() -> None:
    quiet, loud = (make_scenes(ScenesConfig(pictures=20, feature_noise=n), "dev").features for n in (0.0, 1.0))
    assert 0.9 < (loud - quiet).std() < 1.1


def test_written_world_reads_back(tmp_path: Path) -> None:
    write_scenes(tmp_path, SMALL)
    source = open_precomp(tmp_path, "test")
    world = make_scenes(SMALL, "test")
    assert source.captions == world.captions
    assert source.image_ids == world.ids
    assert source.captions_per_image == 5
    assert source.images is not None
    assert np.array_equal(source.images.take(np.arange(len(world)))[0], world.features)
    assert np.array_equal(np.load(tmp_path / "test_truth.npy"), world.truth())
    for name in world.ids:
        with Image.open(tmp_path / "pictures" / name) as picture:
            assert picture.size == (96, 96)


def test_unknown_split() -> None:
    with pytest.raises(InputError, match="train, dev, test"):
        make_scenes(SMALL, "testall")


def test_words_and_pixels_tell_of_each_other() -> None:
    """A linear map from mean features to word counts retrieves far better than chance, and far from perfectly."""
    config = DataConfig(scenes=ScenesConfig(pictures=700))
    train, test = open_split(config, "train"), open_split(config, "test")
    assert train.vocabulary is not None

    def bags(data: object) -> tuple[np.ndarray, np.ndarray]:
        images = data.image_batch(np.arange(len(data.images)))[0].numpy().mean(1)  # type: ignore[attr-defined]
        ids, mask = (x.numpy() for x in data.text_batch(np.arange(len(data.image_of_text))))  # type: ignore[attr-defined]
        words = np.zeros((len(ids), len(train.vocabulary or ())))
        np.add.at(words, (np.nonzero(mask)[0], ids[mask]), 1.0)
        return np.c_[images, np.ones(len(images))], words

    (x, words), (y, held) = bags(train), bags(test)
    common = words.mean(0)
    targets = (words - common).reshape(len(x), 5, -1).sum(1)
    weights = np.linalg.solve(x.T @ x + 3.0 * np.eye(x.shape[1]), x.T @ targets)
    seen = y @ weights
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    said = (held - common) / np.linalg.norm(held - common, axis=1, keepdims=True)
    scores = seen @ said.T
    own = scores[test.image_of_text, np.arange(len(said))]
    rank = (scores > own).sum(0)
    recall = float((rank < 10).mean())
    assert 0.3 < recall < 0.98, recall  # chance is 10 of 175


def _middle_mask(shape: int, size: int = 2) -> np.ndarray:
    return _mask(shape, size, _TURNS // 2)


@pytest.mark.parametrize("shape", [k for k, drawer in enumerate(_SHAPES) if drawer.__name__ != "_crescent"])
def test_a_shape_stands_in_the_middle_of_its_place(shape: int) -> None:
    mask = _middle_mask(shape)
    assert mask.max() == 1.0
    assert mask.min() == 0.0
    middle = (len(mask) - 1) / 2
    y, x = np.indices(mask.shape)
    assert (mask * x).sum() / mask.sum() == pytest.approx(middle, abs=0.15), "as much on the left as on the right"
    far = np.hypot(y - middle, x - middle)[mask > 0.5].max()
    assert far <= _RADII[2] + 1, "no part of it further out than its radius"
    assert far >= 0.75 * _RADII[2]
    assert np.abs(mask - mask[:, ::-1]).mean() < 0.04, "left and right are alike"
    turned, back = _mask(shape, 2, 0), _mask(shape, 2, _TURNS - 1)
    assert np.abs(turned - back[:, ::-1]).mean() < 0.05, "turned as far one way as the other"


def test_areas_of_round_shapes_and_crosses_by_hand() -> None:
    r = _RADII[2]
    names = {drawer.__name__: k for k, drawer in enumerate(_SHAPES)}
    circle, cross, ring = (float(_middle_mask(names[name]).sum()) for name in ("_circle", "_cross", "_ring"))
    assert circle == pytest.approx(np.pi * (0.9 * r) ** 2, rel=0.04)
    assert cross == pytest.approx(2 * (0.64 * r * 2 * r) - (0.64 * r) ** 2, rel=0.06)
    assert ring == pytest.approx(np.pi * ((0.9 * r) ** 2 - (0.5 * r) ** 2), rel=0.06)
