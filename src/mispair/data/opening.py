"""open_split: a configuration and the name of a split in, pairs to train or evaluate on out."""

from __future__ import annotations

from mispair.data.config import DataConfig
from mispair.data.features import FeatureStore
from mispair.data.noise import apply, make_index
from mispair.data.pairs import PairData, content_hash
from mispair.data.source import Source
from mispair.data.sources import Progress, given_pairs, open_source, train_captions
from mispair.data.tables import WITHOUT_FEATURES
from mispair.data.text import TokenStore, Vocabulary
from mispair.errors import InputError


def open_split(
    config: DataConfig, split: str, *, vocabulary: Vocabulary | None = None, progress: Progress | None = None
) -> PairData:
    """One split, ready to use: words numbered, noise applied (to train alone), features still on disk.

    The vocabulary is the given one, else the file the configuration names, else made from the train captions.
    """
    source = open_source(config, split, progress)
    if source.images is None:
        raise InputError(
            f"{config.path} has no features; expected an .npy for its {config.sides[0]} column, so set data.features"
        )
    if config.missing == "refuse":
        for finding in source.findings:
            if finding.kind == WITHOUT_FEATURES:
                raise InputError(finding.text)
    pairs = given_pairs(source)
    noise_hash = None
    if config.noise is not None and split == "train":
        index = make_index(pairs, config.noise)
        pairs, noise_hash = apply(pairs, index), index.hash
        if config.noise.oracle:
            pairs = pairs.truly_matched()
    notes = source.notes
    texts: TokenStore | FeatureStore
    if source.text_features is not None:
        texts, vocabulary = source.text_features, None
    else:
        assert source.captions is not None, "a source has words or features on its second side"
        vocabulary = vocabulary or _vocabulary(config, source)
        texts = TokenStore.encode(source.captions, vocabulary, config.max_words)
        if texts.truncated:
            cut = f"{texts.truncated:,} captions of {split} were cut to {config.max_words} words (max_words)"
            notes = (*notes, cut)
    return PairData(
        name=source.name,
        split=split,
        table=pairs,
        images=source.images,
        texts=texts,
        vocabulary=vocabulary,
        captions_per_image=source.captions_per_image,
        image_of_text=source.image_of_text,
        content_hash=content_hash(source),
        noise_hash=noise_hash,
        sides=config.sides,
        notes=(*notes, *(finding.text for finding in source.findings)),
        world=source.world,
    )


def _vocabulary(config: DataConfig, source: Source) -> Vocabulary:
    if config.vocabulary:
        return Vocabulary.load(config.vocabulary)
    captions = source.captions if source.split in ("train", "all") else train_captions(config)
    return Vocabulary.build(captions or (), config.min_count)
