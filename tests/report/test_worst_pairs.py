"""The table holds every pair once, within its budget."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from mispair.report import worst_pairs
from mispair.report.content import PairRow, WorstPairs
from mispair.report.worst_pairs import pair_table


def island(page):
    body = re.search(r'<script type="application/json" id="pairs-data">(.*)</script>', page, re.DOTALL)
    return json.loads(body.group(1))


def row(k, **known):
    return PairRow(f"id{k}", f"image{k // 2}", f"caption {k}", p_mismatch=1 - k / 100, flagged=k < 3, **known)


def test_rows_by_hand():
    rows = [row(0, proposed_caption="caption 1", proposed_weight=0.25, score=-0.5), row(1), row(2, caption_rank=7)]
    data = island(pair_table(WorstPairs(rows, 3)))
    texts, columns = data["texts"], data["columns"]
    assert [texts[k] for k in columns["c"]] == ["caption 0", "caption 1", "caption 2"]
    assert [texts[k] for k in columns["i"]] == ["image0", "image0", "image1"]
    assert texts[columns["q"][0]] == "caption 1"
    assert columns["q"][0] == columns["c"][1], "a text stands in the page once"
    assert columns["p"] == [1.0, 0.99, 0.98]
    assert columns["w"] == [0.25, None, None]
    assert columns["s"] == [-0.5, None, None]
    assert columns["r"] == [None, None, 7]


def test_columns_nobody_knows_are_not_shown():
    page = pair_table(WorstPairs([row(0), row(1)], 2))
    assert not {"q", "w", "s", "r", "x", "y"} & set(island(page)["columns"])
    assert "proposed caption" not in page
    assert "an exchange mends two" not in page
    whole = pair_table(WorstPairs([row(0, proposed_caption="a", swap_with="id1", truth=True)], 1))
    assert "with a proposed caption" in whole
    assert "an exchange mends two" in whole
    assert "misjudged" in whole


def test_it_says_how_much_of_the_data_it_is():
    assert "All 2 pairs." in pair_table(WorstPairs([row(0), row(1)], 2, source="audit.parquet"))
    some = pair_table(WorstPairs([row(0), row(1)], 9_000, source="audit.parquet"))
    assert "The 2 worst of 9,000. audit.parquet holds everything." in some


def test_the_first_rows_can_be_read_without_scripts():
    page = pair_table(WorstPairs([row(k) for k in range(40)], 40))
    static = page[: page.index("<script")]
    assert "caption 24" in static
    assert "caption 25" not in static


@settings(max_examples=15)
@given(st.sampled_from('x<"é漢🎉'), st.integers(1, 4_000), st.integers(1, 300))
def test_texts_stay_in_the_budget(letter, length, count):
    budget, worst_pairs.TEXT_BUDGET = worst_pairs.TEXT_BUDGET, 60_000
    try:
        rows = [PairRow(str(k), "i", f"{k} " + letter * length, 0.5, False) for k in range(count)]
        page = pair_table(WorstPairs(rows, count))
        cut = [text for text in island(page)["texts"] if len(text) > 3]
        body = page[page.index('id="pairs-data"') :]
        assert len(body.encode()) < 60_000 + 80 * count + 400
        if length * count < 5_000:
            assert all(text.count(letter) == length for text in cut)
        elif any(text.count(letter) < length for text in cut):
            assert "characters are cut here" in page
    finally:
        worst_pairs.TEXT_BUDGET = budget


def test_only_pictures_of_listed_images_are_kept():
    data = island(pair_table(WorstPairs([row(0)], 1, {"image0": "data:,a", "elsewhere": "data:,b"})))
    assert list(data["pictures"].values()) == ["data:,a"]
    assert data["texts"][int(next(iter(data["pictures"])))] == "image0"
