"""What the page shows: plain, frozen data, filled by whoever reads runs and audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Numbers = Sequence[float]


@dataclass(frozen=True)
class Recalls:
    """What the model reached on one split."""

    split: str
    values: Mapping[str, float]  # i2t_r1 ... rsum, in percent
    images: int | None = None  # how many were ranked, where known
    texts: int | None = None


@dataclass(frozen=True)
class Losses:
    """A histogram of what tells the pairs apart, the two components fitted to it, and where it was cut; K bins."""

    edges: Numbers  # (K + 1,)
    counts: Numbers  # (K,)
    mismatched: Numbers  # (K,) share of each bin that was called mismatched
    grid: Numbers  # (G,) where the two curves are drawn
    curves: tuple[Numbers, Numbers]  # (G,) expected counts per bin of the matched and the mismatched component
    threshold: float | None
    what: str  # what the axis shows, such as "loss (triplet_mean)"
    said: str  # one sentence about the fit


@dataclass(frozen=True)
class Curve:
    """One quantity over epochs; epochs count from 1."""

    name: str
    epochs: Numbers
    values: Numbers
    mark: float | None = None  # an epoch to point at
    mark_name: str = ""
    digits: int = 1


@dataclass(frozen=True)
class Flip:
    """A pair that changed sides, and how sure the split was at each epoch."""

    pair_id: str
    caption: str
    posterior: Numbers  # by epoch of the history
    flips: int


@dataclass(frozen=True)
class History:
    """How the split changed."""

    epochs: Sequence[int]  # counted from 1
    mismatched: Numbers  # (E,) share called mismatched
    to_matched: Sequence[int]  # (E,) pairs that changed sides since the epoch before
    to_mismatched: Sequence[int]
    never: int  # pairs that never changed
    pairs: int
    most: tuple[Flip, ...]  # those that changed most often


@dataclass(frozen=True)
class Costs:
    """The transport cost of the given pairs at one epoch; K bins, shares of each group."""

    title: str
    edges: Numbers
    matched: Numbers
    mismatched: Numbers


@dataclass(frozen=True)
class Ranked:
    """The mean normalised refined alignment of a row, largest first."""

    title: str
    values: Numbers
    mismatched: bool  # drawn in which colour: untransported rows stay unmatched


@dataclass(frozen=True)
class Word:
    """A stretch of a caption and how much it speaks for the picture: -1 against, 1 for, None not asked."""

    text: str
    agreement: float | None = None


@dataclass(frozen=True)
class Card:
    """One rematched pair."""

    pair_id: str
    image_id: str
    picture: str | None  # a data URI; "" is a picture that could not be shown, None: there are no pictures
    given: Sequence[Word]
    proposed: Sequence[Word]
    weight: float | None  # share of the picture's mass
    gain: float | None
    p_mismatch: float
    swap_with: str | None = None  # id of the pair that is mended at once
    other_picture: str | None = None  # where the given caption fits better
    other_id: str | None = None
    true: bool | None = None  # whether the proposal is right, where somebody knows


@dataclass(frozen=True)
class Gallery:
    """The cards of some proposals, and where the proposals come from."""

    cards: tuple[Card, ...]
    of: int  # how many proposals there are in all
    how: str  # where they come from
    words: str | None  # how the words were judged; None: they were not


@dataclass(frozen=True)
class PairRow:
    """One row of the table. What is not known is None."""

    pair_id: str
    image_id: str
    caption: str
    p_mismatch: float
    flagged: bool
    look: int | None = None
    score: float | None = None
    caption_rank: int | None = None
    image_rank: int | None = None
    proposed_caption: str | None = None
    proposed_weight: float | None = None
    proposed_gain: float | None = None
    proposed_image: str | None = None
    swap_with: str | None = None
    truth: bool | None = None


@dataclass(frozen=True)
class WorstPairs:
    """The worst pairs, worst first."""

    rows: Sequence[PairRow]
    of: int
    pictures: Mapping[str, str] = field(default_factory=dict)  # image id -> data URI, of the first rows
    source: str = ""  # where all of them are


@dataclass(frozen=True)
class DamageKind:
    """One kind of damage."""

    name: str
    count: int
    evidence: str
    remedy: str


@dataclass(frozen=True)
class ReportPage:
    """One report. An absent part is None or empty, and `missing` says why."""

    title: str
    subject: str  # which data, which model, in a few words
    created: str
    answer: Sequence[str]
    caution: Sequence[str] = ()
    recalls: Sequence[Recalls] = ()
    evaluated_on_clean: bool = True  # whether the pairs behind the recalls are known to match
    truth: Mapping[str, float] = field(default_factory=dict)
    losses: Sequence[Losses] = ()
    curves: Sequence[Curve] = ()
    history: History | None = None
    costs: Sequence[Costs] = ()
    ranked: Sequence[Ranked] = ()
    gallery: Gallery | None = None
    pairs: WorstPairs | None = None
    damage: Sequence[DamageKind] | None = None  # None: nobody looked; empty: nothing was found
    damage_sought: Sequence[str] = ()  # the kinds that were looked for
    damage_not_sought: Sequence[str] = ()
    configuration: str = ""
    provenance: Sequence[tuple[str, str]] = ()
    missing: Sequence[str] = ()
    sides: tuple[str, str] = ("image", "text")
