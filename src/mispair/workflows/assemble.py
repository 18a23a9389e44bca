"""From a configuration to a trainer with its data, networks and method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from mispair.config.load import essence
from mispair.config.schema import RunConfig
from mispair.data import PairData, TokenStore, open_split
from mispair.data.inspection.readiness import check_readiness
from mispair.data.readers.dispatch import has_test
from mispair.encoders.pipeline import Failure
from mispair.methods import build_method
from mispair.models import InputSizes
from mispair.progress import Tell
from mispair.protocols import Evaluator
from mispair.retrieval.evaluate import RecallEvaluator
from mispair.retrieval_module import RetrievalModule
from mispair.runtime.engine import Engine
from mispair.runtime.journal import Journal
from mispair.runtime.randomness import Streams, seed_globally
from mispair.runtime.run_folder import RunFolder
from mispair.runtime.trainer import Trainer
from mispair.workflows.head_start import started
from mispair.workflows.known_pairs import known_pairs
from mispair.workflows.networks import Network, OneNetwork, network_maker, tower_fingerprint, try_towers
from mispair.workflows.refuse_unfit import refuse_unfit
from mispair.workflows.untrained_pairs import UntrainedPairs


@dataclass(frozen=True)
class Training:
    """Everything a training needs, ready to `trainer.fit()`."""

    config: RunConfig
    folder: RunFolder
    trainer: Trainer
    data: PairData
    test: PairData | None  # what the best epoch is scored on; None where there is none, or the run is judged by others
    make: Callable[[], RetrievalModule]  # one more fresh network
    untrained: UntrainedPairs
    notes: tuple[str, ...] = ()  # what a person should know of the data, one sentence each
    failed: tuple[Failure, ...] = ()  # pictures the training does without, of all splits


def assemble(
    config: RunConfig,
    folder: RunFolder,
    engine: Engine,
    journal: Journal,
    *,
    data: PairData | None = None,
    evaluator: Evaluator | None = None,
    network: Network | None = None,
) -> Training:
    """Open the data, look whether it can be trained on, build the networks and the method; nothing is written.

    Args:
        data: train on these pairs instead of the train split.
        evaluator: judges each epoch instead of the recall on dev.
        network: makes the networks instead of the configuration's model.
    """
    if config.data.live and network is None:
        try_towers(config)
    seed_globally(config.seed)
    streams = Streams(config.seed)
    data = _training_pairs(config, journal.tell) if data is None else data
    splits, test = [data], None
    if evaluator is None:
        splits.append(open_split(config.data, "dev", vocabulary=data.vocabulary, tell=journal.tell))
        evaluator = RecallEvaluator(splits[1])
        if has_test(config.data):  # now, not at the end: what is wrong with it, or changes meanwhile, is known
            test = open_split(config.data, "test", vocabulary=data.vocabulary, tell=journal.tell)
            splits.append(test)
    notes = check_readiness(*splits)
    sizes = input_sizes(data)
    refuse_unfit(config, data, sizes, engine.device)
    maker = network_maker(config, sizes, network)
    make = started(maker, data)
    method = build_method(config.method, make, config.train.batch_size)
    if isinstance(maker, OneNetwork):
        maker.training = True
    about = {
        "configuration": _hash(json.dumps(essence(config), sort_keys=True)),
        "data": _hash(" ".join(split.content_hash for split in splits)),
        "noise": data.noise_hash or "none",
        "vocabulary": "none" if data.vocabulary is None else data.vocabulary.content_hash,
        "sizes": json.dumps(sizes.model_dump()),
    }
    if config.data.live and config.data.encoder is not None:
        about["towers"] = tower_fingerprint(config.data.encoder)
    said = {"weights": data.table.weights, "decisions": data.table.known}
    about |= {name: hashlib.sha256(v.tobytes()).hexdigest() for name, v in said.items() if v is not None}
    untrained = UntrainedPairs(data, make, engine.device, journal.tell)
    trainer = Trainer(
        config.train, engine, data, method, evaluator, journal, streams, folder, about, untrained=untrained
    )
    failed = tuple(Failure(None, name, why) for split in splits for name, why in split.no_picture.items())
    return Training(config, folder, trainer, data, test, make, untrained, notes, failed)


def _training_pairs(config: RunConfig, tell: Tell) -> PairData:
    """The train split, with what reviewers decided about its pairs."""
    data = open_split(config.data, "train", tell=tell)
    known = known_pairs(config, data.table)
    return data if known is None else replace(data, table=replace(data.table, known=known))


def input_sizes(data: PairData) -> InputSizes:
    """What a model must know of the data. Region slots are fixed only where every image fills all of them."""
    return InputSizes(
        image_width=data.images.width,
        vocabulary_size=data.texts.kinds if isinstance(data.texts, TokenStore) else None,
        text_width=None if isinstance(data.texts, TokenStore) else data.texts.width,
        regions=data.images.regions if data.images.lengths is None else None,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
