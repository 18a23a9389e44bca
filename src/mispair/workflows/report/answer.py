"""The answer in a few sentences: how many pairs are wrong, what they should have been, what to do, how sure it is."""

from __future__ import annotations

from mispair.auditing.fixing.expectation import advise
from mispair.auditing.rate_words import training_rate_words
from mispair.auditing.verdicts import Verdicts, issues_sentence, left_out_sentence, rate_sentence
from mispair.counted import counted
from mispair.shell_word import in_shell
from mispair.workflows.report.pairs import JudgedPairs
from mispair.workflows.report.training import RunRecord, evaluated_on_clean, recalls


def answer(run: RunRecord | None, audit: Verdicts | None, judged: JudgedPairs | None) -> tuple[list[str], list[str]]:
    """Sentences, and cautions that go with them."""
    sentences = [
        _how_many(run, audit, judged),
        _what_instead(audit, judged),
        _what_to_do(audit),
        _how_sure(run, audit, judged),
    ]
    return [sentence for sentence in sentences if sentence], _cautions(run, audit)


def _how_many(run: RunRecord | None, audit: Verdicts | None, judged: JudgedPairs | None) -> str:
    """The rate by the audit, else as the training states it: what a method split by is no estimate."""
    if audit is not None:
        left_out = left_out_sentence(audit.facts)
        return f"{rate_sentence(audit.facts)} {issues_sentence(audit.facts)}{' ' if left_out else ''}{left_out}"
    assert run is not None, "a page is about a run or an audit"
    words = training_rate_words(run.summary)
    if judged is None:
        said = f"Training with {run.config.method.name} has judged no single pair{'' if run.summary else ' so far'};"
        return f"{said} mispair audit {in_shell(run.path)} judges each.{'' if words is None else f' {words}'}"
    called = sum(pair.flagged for pair in judged.pairs)
    if words is None:
        words = f"Training treated {called:,} of {len(judged.pairs):,} pairs as mismatched."
    elif "conclusive" in run.summary:  # the estimate is said, and that an audit is believed above it
        return f"{words} mispair audit {in_shell(run.path)} judges every pair."
    return f"{words} How many are, an audit estimates (mispair audit {in_shell(run.path)})."


def _what_instead(audit: Verdicts | None, judged: JudgedPairs | None) -> str:
    if judged is None:
        return ""
    wrong = sum(pair.flagged for pair in judged.pairs)
    if not wrong:
        return ""
    if audit is None:
        return "Below are the worst of them, with captions of the set that fit their pictures better."
    better = sum(pair.flagged and pair.proposed_caption is not None for pair in judged.pairs)
    swaps = sum(pair.swap_with is not None for pair in judged.pairs) // 2
    said = f"For {f'{better:,}' if better else 'none'} of them another caption of the set scores better"
    said += f", and {counted(swaps, 'exchange')} would raise the scores of two pairs at once" if swaps else ""
    kinds = [f"{damage.kind} ({damage.count:,})" for damage in audit.facts.damage]
    return said + (f"; the damage has a shape: {', '.join(kinds)}." if kinds else ".")


def _what_to_do(audit: Verdicts | None) -> str:
    return "" if audit is None else advise(audit)


def _how_sure(run: RunRecord | None, audit: Verdicts | None, judged: JudgedPairs | None) -> str:
    if audit is not None and audit.facts.truth and "auroc" in audit.facts.truth:
        truth = audit.facts.truth
        error = f", and its probabilities are off by {truth['ece']:.3f} on average" if "ece" in truth else ""
        return f"Measured against the known truth, the judgement has an AUROC of {truth['auroc']:.3f}{error}."
    if run is None:
        return ""
    reached = recalls(run)
    if not reached:
        return ""
    best = reached[-1]
    clean = "" if evaluated_on_clean(run) else ", a lower bound where these pairs are mismatched too"
    model = "The model" if judged is None else "The model that judged them"
    return (
        f"{model} puts a caption of its own first for {best.values['i2t_r1']:.0f}% of the"
        f" {best.split} images, and its own image first for {best.values['t2i_r1']:.0f}% of the captions{clean}."
    )


def _cautions(run: RunRecord | None, audit: Verdicts | None) -> list[str]:
    said = []
    if run is not None and not run.summary:
        said.append("The run is not finished: these are the figures of its best epoch so far.")
    return said
