"""The answer in three sentences: how many pairs are wrong, what they should have been, how far to trust it."""

from __future__ import annotations

from mispair.audit.verdicts import Verdicts
from mispair.config.reporting.pairs import Judged
from mispair.config.reporting.run import RunFolder, recalls


def answer(run: RunFolder | None, audit: Verdicts | None, judged: Judged | None) -> tuple[list[str], list[str]]:
    """Sentences, and cautions that go with them."""
    sentences = [_how_many(run, audit, judged), _what_instead(audit, judged), _how_sure(run, audit)]
    return [sentence for sentence in sentences if sentence], _cautions(run, audit)


def _how_many(run: RunFolder | None, audit: Verdicts | None, judged: Judged | None) -> str:
    if audit is not None:
        facts = audit.facts
        rate, low, high, wrong, pairs = facts.rate, facts.rate_low, facts.rate_high, facts.issues, facts.pairs
    elif judged is not None and run is not None and "mismatch_rate" in run.summary:
        rate, (low, high) = run.summary["mismatch_rate"], run.summary["mismatch_rate_ci"]
        wrong, pairs = sum(pair.flagged for pair in judged.pairs), len(judged.pairs)
    elif judged is not None:
        wrong, pairs = sum(pair.flagged for pair in judged.pairs), len(judged.pairs)
        return f"{wrong:,} of {pairs:,} pairs look mismatched."
    else:
        assert run is not None, "a page is about a run or an audit"
        return f"This is a {run.config.method.name} run: it learns from every pair as it is and judges none."
    if not wrong:
        return f"None of the {pairs:,} pairs is more likely mismatched than matched; the estimated rate is {rate:.1%}."
    interval = f" ({low:.1%} to {high:.1%})" if high - low >= 0.0005 else ""
    return f"{wrong:,} of {pairs:,} pairs look mismatched: an estimated {rate:.1%} of the data{interval}."


def _what_instead(audit: Verdicts | None, judged: Judged | None) -> str:
    if judged is None:
        return ""
    wrong = sum(pair.flagged for pair in judged.pairs)
    if not wrong:
        return ""
    if audit is None:
        return "Below are the worst of them, with captions of the set that fit their pictures better."
    better = sum(pair.flagged and pair.proposed_caption is not None for pair in judged.pairs)
    swaps = sum(pair.swap_with is not None for pair in judged.pairs) // 2
    said = f"For {better:,} of them another caption of the set fits better"
    said += f", and {swaps:,} exchanges mend two pairs at once" if swaps else ""
    kinds = [f"{damage.kind} ({damage.count:,})" for damage in audit.facts.damage]
    return said + (f"; the damage has a shape: {', '.join(kinds)}." if kinds else ".")


def _how_sure(run: RunFolder | None, audit: Verdicts | None) -> str:
    if audit is not None and audit.facts.truth and "auroc" in audit.facts.truth:
        truth = audit.facts.truth
        error = f", and its probabilities are off by {truth['ece']:.3f} on average" if "ece" in truth else ""
        return f"Measured against the known truth, the judgement has an AUROC of {truth['auroc']:.3f}{error}."
    if run is None:
        return ""
    found = recalls(run)
    if not found:
        return ""
    best = found[-1]
    return (
        f"The model that judged them puts a right caption first for {best.values['i2t_r1']:.0f} of 100 {best.split} "
        f"images, and a right image first for {best.values['t2i_r1']:.0f} of 100 captions."
    )


def _cautions(run: RunFolder | None, audit: Verdicts | None) -> list[str]:
    said = []
    bimodal = audit.facts.bimodal if audit is not None else run is None or run.summary.get("bimodal", True)
    if not bimodal:
        said.append("Matched and mismatched pairs do not show as two groups: take the rate as a guess.")
    if run is not None and not run.summary:
        said.append("The run is not finished: these are the figures of its best epoch so far.")
    return said
