"""Strangers' text can be read in the page and can do nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mispair.report.html import Html, data_island, escape, join, raw_text, tag, visible
from tests.report.samples import HOSTILE, Reader

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)


def test_escape_by_hand():
    assert escape("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert escape(Html("<b>")) == "<b>"
    assert escape(3) == "3"


def test_visible_by_hand():
    assert visible("a\x00b\x1bc\x7f") == "a␀b␛c␡"
    assert visible("one\ntwo\tthree\r") == "one two three "
    assert visible("\u202eevil\u202c \ud800 \x9b") == "\ufffdevil\ufffd \ufffd \ufffd"
    assert visible("naïve 日本 عربي 🎉 \u200f") == "naïve 日本 عربي 🎉 \u200f"


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_stays_text(inside, attribute):
    seen = Reader(tag("p", inside, title=attribute))
    assert seen.tags == ["p"]
    assert seen.text == visible(inside)
    assert seen.attributes == [("title", visible(attribute))]
    seen.text.encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_one_element(text):
    assert Reader(tag("td", tag("bdi", text), title=text)).tags == ["td", "bdi"]


def test_attributes_by_hand():
    assert tag("input", class_="a", aria_label="b", hidden=True, title=None, checked=False) == (
        '<input class="a" aria-label="b" hidden>'
    )
    assert tag("line", x1=0) == '<line x1="0"></line>', "in SVG an element that is not closed swallows the next ones"


def test_children_are_taken_apart():
    assert join(["a<", None, (tag("b", "c"), 1)]) == "a&lt;<b>c</b>1"
    assert join(["a", "b"], ", ") == "a, b"


@given(ANY_TEXT)
def test_an_island_cannot_be_left(text):
    shown = visible(text)
    island = data_island({"text": shown, shown: 1.5}, "x")
    body = island.removeprefix('<script type="application/json" id="x">').removesuffix("</script>")
    assert not set(body) & set("<>&\u2028\u2029")
    assert json.loads(body) == {"text": shown, shown: 1.5}


def test_an_island_refuses_what_json_does_not_know():
    with pytest.raises(ValueError, match="Out of range"):
        data_island([float("nan")], "x")


def test_an_asset_cannot_close_itself():
    with pytest.raises(AssertionError):
        raw_text("let a = '</SCRIPT>'", "script")
