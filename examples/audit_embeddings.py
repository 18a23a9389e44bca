"""Which pairs are wrong? With embeddings of any model at hand (CLIP, for instance), without training.

The embeddings here are made up: 40 topics, two noisy sides, 30 % of the captions shown with the wrong image.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import mispair as mp


def embeddings(pairs: int = 1000, width: int = 64) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    """Image and text embeddings (pairs, width), captions, and which rows are mismatched."""
    rng = np.random.default_rng(0)
    topic = rng.integers(40, size=pairs)
    meaning = rng.normal(size=(40, width))[topic] + 0.8 * rng.normal(size=(pairs, width))
    images, texts = (meaning + 0.5 * rng.normal(size=meaning.shape) for _ in range(2))
    captions = [f"picture {k} of topic {t}" for k, t in enumerate(topic)]
    wrong = rng.choice(pairs, int(0.3 * pairs), replace=False)
    shown = np.arange(pairs)
    shown[wrong] = np.roll(wrong, 1)
    return images.astype("f4"), texts[shown].astype("f4"), [captions[k] for k in shown], shown != np.arange(pairs)


def main(folder: Path) -> None:
    images, texts, captions, mismatched = embeddings()
    ids = [f"{row}.jpg" for row in range(len(images))]
    verdicts = mp.quick_audit(images, texts, captions=captions, image_ids=ids)
    print(verdicts.summary())
    print(f"estimated {verdicts.facts.rate:.1%} mismatched, in truth {mismatched.mean():.1%}")
    called = verdicts.p_mismatch > 0.5
    print(f"{(called == mismatched).mean():.1%} of the pairs are judged rightly")
    for verdict in verdicts.worst(3):
        print(f"{verdict.image_id}: {verdict.caption!r}, rather {verdict.proposed_caption!r}")
    verdicts.save(folder / "audit")  # for `mispair report` and `mispair review`
    print("page:", mp.make_report(folder / "audit", folder / "audit.html").name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
