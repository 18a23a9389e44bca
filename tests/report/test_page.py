"""The whole file: complete in itself, safe with any text, in the reader's order."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from mispair.report.content import Ranked, Word
from mispair.report.page import render
from mispair.report.text import clamped, words
from tests.report.samples import HOSTILE, Reader, full_page

OURS = {
    "html", "head", "meta", "link", "title", "style", "body", "a", "header", "div", "h1", "p", "button", "nav", "ol",
    "li", "main", "section", "h2", "h3", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "b", "figure",
    "figcaption", "svg", "line", "rect", "polyline", "path", "circle", "text", "span", "i", "small", "bdi", "details",
    "summary", "article", "img", "del", "ins", "mark", "meter", "form", "label", "input", "select", "option", "kbd",
    "footer", "script", "pre", "ul",
}  # fmt: skip


def element(page, name):
    return re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)


def test_sections_are_in_the_readers_order():
    page = render(full_page())
    order = re.findall(r'<section id="(\w+)"', page)
    assert order == [
        "answer", "gallery", "pairs", "damage", "losses", "recalls", "curves", "history", "costs", "alignments",
        "provenance",
    ]  # fmt: skip
    assert re.findall(r'<a href="#(\w+)">', page) == order[1:]


def test_what_is_absent_leaves_no_trace():
    bare = replace(
        full_page(), recalls=(), truth={}, losses=(), curves=(), history=None, costs=(), ranked=(), gallery=None,
        pairs=None, damage=None,
    )  # fmt: skip
    assert re.findall(r'<section id="(\w+)"', render(bare)) == ["answer", "provenance"]
    assert "None was found of what was looked for: x, y." in render(replace(bare, damage=(), damage_sought=("x", "y")))


def test_where_no_pair_changed_sides_nothing_is_said_of_the_others():
    page = full_page()
    assert "4,000 of 4,057 pairs (99%) never changed sides; the others are" in render(page)
    settled = replace(page.history, never=4057, to_matched=[0, 0, 0], to_mismatched=[0, 0, 0], most=())
    said = render(replace(page, history=settled))
    assert "drawn 3 times. None of the 4,057 pairs changed sides." in said
    assert "the others are" not in said
    assert "now called matched" not in said, "a chart of nothing"
    first = replace(settled, epochs=[4], mismatched=[0.5], to_matched=[0], to_mismatched=[0])
    assert re.search(r"drawn once\.\s*</p>", render(replace(page, history=first)))


def test_the_policy_allows_this_style_and_this_script_and_nothing_else():
    page = render(full_page(HOSTILE))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    (style,), (script,) = element(page, "style"), element(page, "script")
    for text, kind in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_nothing_is_asked_from_elsewhere():
    seen = Reader(render(full_page()))
    for name, value in seen.attributes:
        if name in ("href", "src", "action", "srcset"):
            assert value.startswith(("data:", "#")), (name, value)
    assert "url(" not in element(render(full_page()), "style")[0]
    assert "@import" not in element(render(full_page()), "style")[0]


@pytest.mark.parametrize("pictures", [True, False])
def test_hostile_text_adds_no_element_and_no_attribute(pictures):
    page = render(full_page(HOSTILE, pictures))
    seen = Reader(page)
    assert set(seen.tags) <= OURS
    assert seen.tags.count("script") == 2, "the data and our own"
    names = {name for name, _ in seen.attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert not set(page) & {chr(code) for code in (*range(9), *range(14, 32), 0x202E, 0x2066)}
    page.encode()


class Ancestors(Reader):
    """Which elements each text stands in."""

    def __init__(self, page):
        self.open, self.found = [], []
        super().__init__(page)

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, "every element is closed in its turn"

    def handle_data(self, data):
        self.found.append((data, tuple(self.open)))


def test_strangers_text_is_isolated_in_direction():
    found = [where for text, where in Ancestors(render(full_page(("עברית",)))).found if "עברית" in text]
    inside = [where for where in found if "section" in where and where[-1] not in ("script", "p")]
    assert len(inside) > 100
    assert all("bdi" in where or "pre" in where for where in inside)


def test_a_long_caption_is_folded_and_whole():
    text = "".join(f"word{k} " for k in range(900))
    folded = clamped(text)
    assert folded.startswith('<details class="long"><summary><bdi>word0')
    assert text in folded
    assert f"all {len(text):,} characters" in folded
    assert clamped("short") == "<bdi>short</bdi>"
    assert "and 5 more characters" in clamped("x" * 10_005)


def test_words_by_hand():
    drawn = words([Word("a "), Word("dog", 1.0), Word(" on "), Word("sand", -0.5), Word("!", 0.1)])
    assert drawn == '<bdi>a <mark class="for-3">dog</mark> on <mark class="against-2">sand</mark>!</bdi>'
    long = words([Word("dog", 1.0), Word(" " + "x" * 400)])
    assert long.startswith('<details class="long"><summary><bdi><mark class="for-3">dog</mark> xxx')
    assert "dog " + "x" * 400 in long


def test_without_pictures_no_tile_stands_for_one():
    page = render(full_page(pictures=False))
    assert "tile" not in page[page.index("<main") : page.index("<footer")]
    assert '"card textual"' in page
    assert "no picture" in render(full_page(pictures=True)), "a broken one is a grey tile"


def test_sides_that_are_no_images_and_texts_are_called_by_their_names():
    page = render(replace(full_page(), sides=("recipe", "sound")))
    assert "61% of the recipes have their own sound in first place" in page


def test_the_sentence_about_the_mass_is_that_of_the_chart():
    page = full_page()
    even = render(page)
    assert "untransported rows, epoch 14 put 26.0% on the first" in even
    assert "here they do not" in even, "26 % on one of four is not even"
    flat = replace(page, ranked=[Ranked("Untransported rows", [0.02] * 50, True)])
    assert "stay nearly even, as" in render(flat).replace("&#x27;", "'")
    steep = replace(page, ranked=[Ranked("Untransported rows", [0.908, 0.02], True)])
    assert "put 90.8% on the first" in render(steep)
    assert "here they do not" in render(steep)


def test_recalls_on_pairs_nobody_checked_are_a_lower_bound():
    assert "lower bound" not in render(full_page())
    assert "lower bound" in render(replace(full_page(), evaluated_on_clean=False))
