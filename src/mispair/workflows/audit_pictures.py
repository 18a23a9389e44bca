"""Judge pairs of pictures and captions by an encoder that puts both into one space: no training at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from mispair.auditing.calibration import refuse_few
from mispair.auditing.verdicts import Verdicts
from mispair.data.config import DataConfig
from mispair.data.embedded_folder import EmbeddedFolder
from mispair.data.inspection.readiness import refuse_captions_alike
from mispair.data.readers.dispatch import open_pairing
from mispair.errors import InputError
from mispair.progress import Tell, silent
from mispair.workflows.embed import Encoding, encode_jointly
from mispair.workflows.embedded_before import embedded_before
from mispair.workflows.quick_audit import quick_audit_files


def audit_pictures(config: DataConfig, encoding: Encoding | None = None, *, tell: Tell = silent) -> Verdicts:
    """`quick_audit` of the encoder's vectors of all pairs of a data set, or of a folder that `mispair embed` wrote.

    What is encoded is kept in the cache.

    Raises:
        InputError: the encoder has no common space for pictures and texts; captions that are all alike; pictures that
            cannot be had or decoded, unless `missing: skip`.
    """
    if config.path == "scenes":
        raise InputError(
            "scenes brings its features: train on it and judge it with the run (mispair audit scenes --train)"
        )
    listed = open_pairing(config, "all")
    refuse_few(len(listed.image_of_text))
    captions = listed.captions
    if captions is not None:
        refuse_captions_alike(captions, f"{config.path}: all {len(captions):,} captions")
    known = embedded_before(config, texts=True)
    if known.joint is not None and known.second is not None:
        files = EmbeddedFolder(Path(config.path))
        named = config.model_copy(update={"features": known.joint, "ids": str(files.ids_file)})
        return quick_audit_files(known.joint, known.second, data=named, seen=files.features_file, tell=tell)
    encoded = encode_jointly(config, encoding or Encoding(config.encoder or "basic"), tell)
    features, texts = encoded.config.features, encoded.config.second
    assert features is not None
    assert texts is not None
    # Named with its features: pairs whose picture was left out are left out again when the data is reopened.
    named = encoded.config.model_copy(update={"second": None})
    vectors = EmbeddedFolder(Path(features).parent).features_file  # as the network saw them, beside those among texts
    verdicts = quick_audit_files(features, texts, data=named, seen=vectors, tell=tell)
    if not encoded.failures:
        return verdicts
    missed = encoded.source.listed - len(encoded.kept.image_of_text)
    reasons = dict(Counter(failure.reason for failure in encoded.failures))
    about = verdicts.facts.data | {"left_out": {"pairs": missed, "reasons": reasons}}
    return replace(verdicts, facts=replace(verdicts.facts, data=about))
