"""open_split: a configuration and the name of a split in, pairs to train or evaluate on out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mispair.counted import counted
from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore, open_features
from mispair.data.identity import content_hash
from mispair.data.noise import apply, make_index
from mispair.data.pair_data import PairData
from mispair.data.pair_table import PairTable
from mispair.data.prepared_pictures import PreparedPictures, decoded
from mispair.data.readers.dispatch import given_pairs, open_source, train_captions
from mispair.data.source import Source
from mispair.data.vocabulary import TokenStore, Vocabulary
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.shell_word import in_shell

if TYPE_CHECKING:
    from mispair.encoders.tower_inputs import TowerInputs


def open_pairs(config: DataConfig, split: str) -> tuple[Source, PairTable, str | None]:
    """One split as it lies there, its pairs after noise (train, or dev where it is asked for), and that noise's hash.

    Nothing is refused: a table may have no features, and its words have no numbers yet.
    """
    source = _live_source(config, split)[0] if config.live else open_source(config, split)
    return source, *_pairs_of(config, source, split)


def _pairs_of(config: DataConfig, source: Source, split: str) -> tuple[PairTable, str | None]:
    """The pairs of a split after noise, and the hash of that noise."""
    pairs = given_pairs(source)
    noise = config.noise
    if noise is None or split not in (("train", "dev") if noise.dev else ("train",)):
        return pairs, None
    index = make_index(pairs, noise)
    pairs = apply(pairs, index)
    return pairs.truly_matched() if noise.oracle and split == "train" else pairs, index.hash


def open_split(
    config: DataConfig, split: str, *, vocabulary: Vocabulary | None = None, tell: Tell = silent
) -> PairData:
    """One split, ready to use: words numbered, noise applied (to train alone), features still on disk.

    The vocabulary is the given one, else the file the configuration names, else made from the train captions. `tell`
    hears of pictures that are decoded.
    """
    if config.live:
        return _open_live(config, split, tell)
    source, pairs, noise_hash = open_pairs(config, split)
    if source.images is None:
        raise InputError(_no_features(config, source))
    refuse_left_out(config, source)
    if source.captions is None and source.text_features is None:
        raise InputError(_no_captions(config))
    notes = source.notes
    texts: TokenStore | FeatureStore
    if source.text_features is not None:
        texts, vocabulary = source.text_features, None
    else:
        assert source.captions is not None
        vocabulary = vocabulary or _vocabulary(config, source)
        texts = TokenStore.encode(source.captions, vocabulary, config.max_words)
        if texts.truncated:
            cut = f"{counted(texts.truncated, 'caption')} of {split} cut to {config.max_words} words (max_words)"
            notes = (*notes, cut)
    return PairData(
        images=source.images,
        texts=texts,
        vocabulary=vocabulary,
        content_hash=content_hash(source),
        joint=_in_text_space(config, source.images, source.text_features),
        notes=(*notes, *(finding.note for finding in source.findings)),
        **_common(config, source, pairs, noise_hash),
    )


def _in_text_space(config: DataConfig, images: FeatureStore, texts: FeatureStore | None) -> FeatureStore | None:
    """The images in the space of the texts, row by row as `data.features`; None where nobody knows them there."""
    if config.joint is None:
        return None
    joint = open_features(config.joint, "the first side in the space of the second")
    if len(joint.array) != len(images.array) or texts is None or joint.width != texts.width:
        kind = "no vectors" if texts is None else f"vectors {texts.width} wide"
        raise InputError(
            f"{config.joint} has {counted(len(joint.array), 'row')} {joint.width} wide, but there are"
            f" {len(images.array):,} rows of features, and {kind} of the texts; expected the same items in the same"
            " space, so embed the data again or leave data.joint out"
        )
    return replace(joint, rows=images.rows)


def _open_live(config: DataConfig, split: str, tell: Tell) -> PairData:
    """Pictures and captions as the towers of an encoder read them, nothing encoded before."""
    source, inputs = _live_source(config, split, tell)
    assert source.pictures is not None
    assert source.captions is not None
    return PairData(
        images=PreparedPictures(source.pictures, inputs.prepare, inputs.shape),
        texts=TokenStore.of_ids(inputs.number(source.captions), inputs.pieces),
        vocabulary=None,
        content_hash=content_hash(source),
        no_picture=source.no_picture,
        notes=(*source.notes, *(finding.note for finding in source.findings)),
        **_common(config, source, *_pairs_of(config, source, split)),
    )


def _live_source(config: DataConfig, split: str, tell: Tell = silent) -> tuple[Source, TowerInputs]:
    """A split whose pictures are read batch by batch, all of them decoded once, and what prepares them."""
    from mispair.encoders.tower_inputs import TowerInputs

    assert config.encoder is not None
    source = open_source(config, split)
    if source.pictures is None:
        raise InputError(
            f"{config.path} names no pictures that were found, and towers learn from those; say where they are with"
            " --images, or train a head on features: --tune head"
        )
    if source.captions is None:
        raise InputError(_no_captions(config))
    refuse_left_out(config, source)
    inputs = TowerInputs(config.encoder)
    source = decoded(source, PreparedPictures(source.pictures, inputs.prepare, inputs.shape), config.path, tell)
    refuse_left_out(config, source)
    return source, inputs


def _common(config: DataConfig, source: Source, pairs: PairTable, noise_hash: str | None) -> dict[str, Any]:
    return {
        "name": source.name,
        "split": source.split,
        "table": pairs,
        "captions_per_image": source.captions_per_image,
        "image_of_text": source.image_of_text,
        "noise_hash": noise_hash,
        "sides": config.sides,
        "world": source.world,
    }


def refuse_left_out(config: DataConfig, source: Source) -> None:
    """Raise InputError where the reader left pairs out and the configuration does not let it."""
    if config.missing == "refuse":
        for finding in source.findings:
            if finding.left_out:
                raise InputError(finding.text)


def _no_captions(config: DataConfig) -> str:
    return f"{config.path} holds no captions; expected a table of pairs as DATA, and the pictures with --images"


def _no_features(config: DataConfig, source: Source) -> str:
    side = config.sides[0]
    if source.pictures is not None:
        return (
            f"{config.path} holds pictures and no features; expected features to train or judge on, so encode them"
            f" first: mispair embed {in_shell(config.path)} -o features, or give --encoder basic"
        )
    return (
        f"{config.path} has no features; expected an .npy for its {side} column, so give it with --features"
        " (data.features), or say where the pictures are with --images"
    )


def _vocabulary(config: DataConfig, source: Source) -> Vocabulary:
    if config.vocabulary:
        return Vocabulary.load(config.vocabulary)
    captions = source.captions if source.split in ("train", "all") else train_captions(config)
    return Vocabulary.build(captions or (), config.min_count)
