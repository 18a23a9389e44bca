"""The paper's figures were copied without a slip, as far as they check each other."""

from collections import Counter

import pytest

from mispair.config.load import load_config
from mispair.experiments.published import facts, facts_of
from tests.experiments.grids import SHIPPED

# As printed: the recalls of one row fall from R@5 to R@10, which cannot be.
FALLING = {("f30k", "0.8", "IMRAM", (3.1, 9.7, 5.2, 0.3, 0.9, 1.9))}
SIZES = {
    "tab:synthesis": 80,
    "tab:table_real": 14,
    "tab:ablation": 6,
    "tab:warmup": 4,
    "tab:full_synthesis": 112,
    "tab:table_orginal": 26,
    "tab:table_MSCOCO_5K_f": 12,
    "tab:table_bs_f": 12,
    "later": 22,
}


def test_every_table_is_whole():
    assert Counter(fact.table for fact in facts()) == SIZES
    keys = [(f.table, f.data, f.setting, f.method) for f in facts()]
    assert len(keys) == len(set(keys))


def test_printed_sums_are_the_sums_of_the_recalls():
    for fact in facts():
        if not fact.recalls:
            assert fact.table == "later"
            continue
        if fact.printed_rsum is not None:
            assert fact.printed_rsum == pytest.approx(sum(fact.recalls), abs=0.051), fact
        assert fact.rsum == pytest.approx(sum(fact.recalls), abs=0.051)


def test_recalls_grow_with_the_list():
    falling = set()
    for fact in facts():
        for start in (0, 3):
            part = fact.recalls[start : start + 3]
            assert all(0 <= value <= 100 for value in part)
            if list(part) != sorted(part):
                falling.add((fact.data, fact.setting, fact.method, fact.recalls))
    assert falling == FALLING


def test_the_short_table_repeats_the_full_one():
    full = {(f.data, f.setting, f.method): f.recalls for f in facts() if f.table == "tab:full_synthesis"}
    for fact in facts():
        if fact.table == "tab:synthesis":
            assert full[fact.data, fact.setting, fact.method] == fact.recalls


def test_the_batch_of_128_and_the_whole_method_repeat_the_main_table():
    main = {f.method: f.recalls for f in facts_of(["tab:full_synthesis"], "f30k", "0.6")}
    for fact in facts_of(["tab:table_bs_f"], "f30k", "128"):
        assert main[fact.method] == fact.recalls
    whole = [f for f in facts_of(["tab:ablation"], "f30k", "0.6") if f.method == "L2RM"]
    assert whole[0].recalls == main["L2RM-SGR"]


def test_what_came_later_has_sums_alone():
    later = {f.method: f.rsum for f in facts_of(["later"], "f30k", "0.2")}
    assert later == {"UCPM": 512.2, "CREAM": 502.3, "UGNCL": 505.6}
    assert {f.method: f.rsum for f in facts_of(["later"], "cc152k", "real")}["UCPM"] == 383.3


def test_nothing_is_published_for_other_data():
    assert facts_of(["tab:full_synthesis"], "f8k", "0.6") == []
    assert len(facts_of(["tab:full_synthesis"], "coco", "0.6")) == 14


# Appendix C.1: warm-up, total, and the epochs after the warm-up at which the rate first falls.
@pytest.mark.parametrize(
    ("data", "warmup", "total", "update"), [("f30k", 5, 40, 15), ("coco", 10, 30, 10), ("cc152k", 10, 50, 20)]
)
def test_the_papers_schedules_are_those_of_the_configurations(data, warmup, total, update):
    config = load_config(SHIPPED.parent / "configs" / data / "l2rm-paper-sgr.yaml")
    assert (config.method.warmup_epochs, config.train.epochs) == (warmup, total)
    assert config.train.decay_at[0] == warmup + update
