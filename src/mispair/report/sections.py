"""The page's sections in the reader's order: one function each, nothing where there is nothing to show."""

from __future__ import annotations

from collections.abc import Callable

from mispair.recall_keys import RECALLS
from mispair.report import figures
from mispair.report.content import Card, DamageKind, ReportPage
from mispair.report.html import Html, join, tag
from mispair.report.text import isolated, words
from mispair.report.worst_pairs import pair_table

_EVEN = 0.1  # of its weight on the first candidate, below which a row is nearly even
_TRUTH = {
    "auroc": ("AUROC", "how often a mismatched pair is ranked above a matched one; 0.5 is guessing, 1 is perfect"),
    "average_precision": ("average precision", "of the ranking by probability, worst first"),
    "precision": ("precision", "of the pairs judged mismatched, the share that is"),
    "recall": ("recall", "of the mismatched pairs, the share that was judged so"),
    "f1": ("F1", "harmonic mean of precision and recall"),
    "certain": (
        "precision of p ≥ 0.99",
        "of the pairs with a probability of at least 0.99, the share that is mismatched",
    ),
    "ece": ("calibration error", "mean distance between the probability said and the share that came true"),
    "rematch_accuracy": (
        "rematch accuracy",
        "of the proposals for pairs that have a true partner, the share that is true",
    ),
    "rate": ("true rate", "the share of mismatched pairs, known from the noise that was added"),
}


def sections(page: ReportPage) -> list[tuple[str, str, Html]]:
    """(anchor, heading, content) of every section that has something to say."""
    parts: list[tuple[str, str, Callable[[ReportPage], Html | None]]] = [
        ("gallery", "Rematched pairs", _gallery),
        ("pairs", "The worst pairs", _pairs),
        ("damage", "What kind of wrong", _damage),
        ("losses", "What tells them apart", _losses),
        ("recalls", "How well the model retrieves", _recalls),
        ("curves", "The training", _curves),
        ("history", "Pairs that changed sides", _history),
        ("costs", "What moving a pair would cost", _costs),
        ("alignments", "Where the mass went", _ranked),
        ("provenance", "Configuration, hashes and versions", _provenance),
    ]
    return [(anchor, title, content) for anchor, title, make in parts if (content := make(page))]


def _recalls(page: ReportPage) -> Html | None:
    if not page.recalls and not page.truth:
        return None
    first, second = _names(page)
    parts: list[Html] = []
    if page.recalls:
        best = page.recalls[-1]
        value = best.values
        gallery = f" among {best.texts:,} {second}s and {best.images:,} {first}s" if best.images and best.texts else ""
        parts.append(
            _prose(
                f"On the {best.split} split{gallery}, {value['i2t_r1']:.0f}% of the {first}s have their own {second} "
                f"in first place and {value['i2t_r10']:.0f}% have one among the first ten; the other way round, "
                f"{value['t2i_r1']:.0f}% of the {second}s find their {first} at once and {value['t2i_r10']:.0f}% within"
                " ten. A model that retrieves badly judges badly."
            )
        )
        if not page.evaluated_on_clean:
            parts.append(
                _prose(
                    "These pairs came as the training pairs did, and nobody has checked them: expect your test split to"
                    " have mismatches too. There a right answer counts as wrong, so the recalls are a lower bound."
                )
            )
        head = tag(
            "tr",
            tag("th", "split", scope="col"),
            *[tag("th", name, scope="col", class_="number") for name in _headings(first, second)],
        )
        rows = [
            tag(
                "tr",
                tag("th", entry.split, scope="row"),
                *[tag("td", f"{entry.values[key]:.1f}", class_="number") for key in RECALLS],
            )
            for entry in page.recalls
        ]
        parts.append(tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="plain"), class_="scroll"))
        parts.append(
            _quiet("R@K: share of queries with a right answer among the first K, in percent. rSum: their sum, of 600.")
        )
    if page.truth:
        parts.append(tag("h3", "Against the truth"))
        known = [(name, hint, page.truth[key]) for key, (name, hint) in _TRUTH.items() if key in page.truth]
        listed = [tag("div", tag("dt", name), tag("dd", tag("b", f"{v:.3f}"), " ", hint)) for name, hint, v in known]
        parts.append(tag("dl", *listed, class_="facts"))
    return join(parts)


def _losses(page: ReportPage) -> Html | None:
    if not page.losses:
        return None
    return join([[_prose(part.said), tag("figure", figures.losses(part))] for part in page.losses])


def _curves(page: ReportPage) -> Html | None:
    if not page.curves:
        return None
    text = "What retrieval reached on held-out pairs after each epoch, and what the method said of itself on the way."
    return join([_prose(text), tag("div", *[figures.curve(part) for part in page.curves], class_="figures")])


def _history(page: ReportPage) -> Html | None:
    part = page.history
    if part is None:
        return None
    text = f"The split was drawn {'once' if len(part.epochs) == 1 else f'{len(part.epochs)} times'}. "
    undecided = part.pairs - part.never
    if undecided:
        text += (
            f"{part.never:,} of {part.pairs:,} pairs ({part.never / part.pairs:.0%}) never changed sides; the others"
            " are where the model is undecided, and where a person's look is worth most."
        )
    elif len(part.epochs) > 1:
        text += f"None of the {part.pairs:,} pairs changed sides."
    parts = [_prose(text)]
    if len(part.epochs) > 1:
        drawn = (figures.share(part), figures.flips(part)) if undecided else (figures.share(part),)
        parts.append(tag("div", *drawn, class_="figures"))
    if part.most:
        parts += [tag("h3", "Changed most often"), figures.undecided(part)]
    return join(parts)


def _costs(page: ReportPage) -> Html | None:
    if not page.costs:
        return None
    text = (
        "Rematching moves mass where the cost is low. A cost that works gives matched pairs a low one and mismatched "
        "pairs a high one, and does so more clearly as training goes on."
    )
    return join([_prose(text), figures.costs(list(page.costs))])


def _ranked(page: ReportPage) -> Html | None:
    if not page.ranked:
        return None
    first = [f"{part.title.lower()} put {part.values[0]:.1%} on the first" for part in page.ranked]
    text = (
        "Each mismatched row spreads its weight over the candidates of its batch; here averaged, largest first: "
        f"{', '.join(first)}."
    )
    stay = next((part for part in page.ranked if part.mismatched), None)
    if stay is not None and stay.values[0] < _EVEN * sum(stay.values):
        text += " Untransported rows stay nearly even, as L2RM's authors saw it, which teaches nothing but caution."
    elif stay is not None:
        text += " L2RM's authors saw untransported rows stay nearly even; here they do not."
    return join([_prose(text), figures.ranked(list(page.ranked))])


def _gallery(page: ReportPage) -> Html | None:
    part = page.gallery
    if part is None or not part.cards:
        return None
    first, _ = _names(page)
    if len(part.cards) == part.of:
        count = f"All {part.of:,} proposals, from the surest to the least sure."
    else:
        count = f"{len(part.cards)} of {part.of:,} proposals, evenly spaced from the surest to the least sure."
    parts = [_prose(f"{count} {part.how} The weight is the share of the {first}'s mass that moved there.")]
    if part.words:
        marks = figures.legend(("for", "the word speaks for the picture"), ("against", "it speaks against it"))
        parts += [_quiet(part.words), marks]
    parts.append(tag("div", *[_card(card) for card in part.cards], class_="gallery"))
    return join(parts)


def _card(card: Card) -> Html:
    weight = None
    if card.weight is not None:
        scale = tag("meter", value=f"{card.weight:.3f}", min=0, max=1, aria_label="weight")
        weight = tag("p", "weight ", tag("b", f"{card.weight:.2f}"), scale, class_="weight")
    facts: list[object] = ["pair ", isolated(card.pair_id), f", p {card.p_mismatch:.2f}"]
    if card.gain is not None:
        facts.append(f", gain {card.gain:+.2f}")
    if card.swap_with is not None:
        facts += [", exchange with pair ", isolated(card.swap_with), " would raise both"]
    elsewhere = None
    if card.other_id is not None and card.other_picture is not None:
        picture = _picture(card.other_picture, card.other_id, 64)
        elsewhere = tag("p", picture, tag("span", "its given caption scores better here"), class_="elsewhere")
    verdict = None
    if card.true is not None:
        verdict = tag("span", "true" if card.true else "not true", class_=f"badge {'yes' if card.true else 'no'}")
    body = tag(
        "div",
        tag("p", tag("del", words(card.given), aria_label="given caption"), class_="given"),
        tag("p", tag("ins", words(card.proposed), aria_label="proposed caption"), verdict, class_="proposed"),
        weight,
        tag("p", tag("small", *facts)),
        elsewhere,
    )
    shown = None if card.picture is None else _picture(card.picture, card.image_id, 160)
    return tag("article", shown, body, class_="card" if card.picture is not None else "card textual")


def _picture(uri: str, name: str, side: int) -> Html:
    if not uri:
        return tag(
            "span", tag("span", "no picture"), class_="tile", role="img", aria_label=f"{name}: no picture", title=name
        )
    return tag("img", src=uri, alt=name, title=name, width=side, height=side, class_="tile")


def _pairs(page: ReportPage) -> Html | None:
    if page.pairs is None or not page.pairs.rows:
        return None
    keys = [("/", "find"), ("↑ ↓", "move"), ("Enter", "everything about a pair"), ("Esc", "close it")]
    hints = join([[tag("kbd", key), f" {what}"] for key, what in keys], "  ")
    text = "By the probability that the pair does not match. A heading sorts, a row opens."
    how = tag("p", hints, class_="quiet keys", hidden=True, id="keys")
    return join([_prose(text), how, pair_table(page.pairs)])


def _damage(page: ReportPage) -> Html | None:
    if page.damage is None:
        return None
    found = [tag("div", *[_kind(kind) for kind in page.damage], class_="kinds")]
    if not page.damage:
        found = [_prose(f"None was found of what was looked for: {', '.join(page.damage_sought)}.")]
    if page.damage_not_sought:
        found.append(_prose(f"Not looked for: {', '.join(page.damage_not_sought)}."))
    return join(found)


def _kind(kind: DamageKind) -> Html:
    heading = tag("h3", kind.name, " ", tag("span", f"{kind.count:,}", class_="count"))
    return tag("article", heading, tag("p", isolated(kind.evidence)), tag("p", isolated(kind.remedy), class_="remedy"))


def _provenance(page: ReportPage) -> Html:
    listed = [tag("div", tag("dt", name), tag("dd", isolated(value))) for name, value in page.provenance]
    parts = [tag("dl", *listed, class_="facts")]
    if page.configuration:
        inside = tag("summary", "The whole configuration (mispair train -c repeats the run)")
        parts.append(tag("details", inside, tag("pre", page.configuration)))
    if page.missing:
        parts += [tag("h3", "Not on this page"), tag("ul", *[tag("li", isolated(text)) for text in page.missing])]
    return join(parts)


def _headings(first: str, second: str) -> tuple[str, ...]:
    return (f"{first} → {second} R@1", "R@5", "R@10", f"{second} → {first} R@1", "R@5", "R@10", "rSum")


def _names(page: ReportPage) -> tuple[str, str]:
    """What the two sides are called in a sentence."""
    return page.sides[0], "caption" if page.sides[1] == "text" else page.sides[1]


def _prose(text: str) -> Html:
    return tag("p", text, class_="prose")


def _quiet(text: str) -> Html:
    return tag("p", text, class_="quiet")
