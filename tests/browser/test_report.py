"""The report in a real browser: quiet, sortable, usable by keyboard, light and dark, narrow and wide, on paper."""

from dataclasses import replace

import pytest

from mispair.report.page import render
from tests.report.samples import HOSTILE, full_page

pytestmark = pytest.mark.browser
ROWS = 60


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    texts = ["a dog runs on the beach", "two people at a table", "ein Zug im Schnee", "a cat"]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(full_page(texts, rows=ROWS)), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_it_fits_every_screen_and_asks_for_nothing(visit, page, scheme, width):
    shown = visit(page, width=width, scheme=scheme)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    shown.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    ground = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (brightness > 200) == (scheme == "light")


def test_hostile_text_does_nothing(visit, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(render(full_page(HOSTILE)), encoding="utf-8")
    shown = visit(path, width=500)
    for row in range(12):
        shown.rows().nth(row).click()
    assert shown.page.evaluate("window.broken") is None
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 500
    assert HOSTILE[0] in shown.page.locator("#pairs-view").inner_text()


def test_the_policy_stops_a_foreign_script(chromium, tmp_path):
    path = tmp_path / "forged.html"
    forged = render(full_page()).replace(
        "</main>", "<script>window.broken=1</script><img src='http://127.0.0.1:9/x'></main>"
    )
    path.write_text(forged, encoding="utf-8")
    context = chromium.new_context()
    tab = context.new_page()
    refused = []
    tab.on("console", lambda message: refused.append(message.text))
    tab.goto(path.as_uri())
    assert tab.evaluate("window.broken") is None
    assert sum("Content Security Policy" in text for text in refused) == 2
    context.close()


def test_headings_sort_both_ways(visit, page):
    shown = visit(page)
    first = [float(text.removeprefix("●")) for text in shown.column("p")]
    assert first == sorted(first, reverse=True)
    heading = shown.page.get_by_role("button", name="score")
    heading.click()
    scores = [float(text) for text in shown.column("s")]
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(-0.3, abs=0.01)
    assert shown.page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert shown.page.locator("th[aria-sort]").inner_text().startswith("score")
    heading.click()
    scores = [float(text) for text in shown.column("s")]
    assert scores == sorted(scores, reverse=True)
    shown.page.get_by_role("button", name="given caption").click()
    captions = shown.column("c")
    assert captions[0] == "a cat"
    assert captions == sorted(captions)


def test_what_is_not_known_comes_last_whichever_way(visit, page):
    shown = visit(page)
    for _ in range(2):
        shown.page.get_by_role("button", name="weight").click()
        assert shown.column("w")[0] == "0.50"
    shown.page.locator("#page-on").click()
    shown.page.locator("#page-on").click()
    assert shown.column("w")[-1] == ""


def test_finding_and_filtering(visit, page):
    shown = visit(page)
    assert shown.page.locator("#found").inner_text() == f"{ROWS} of {ROWS}"
    shown.page.select_option("#show", "flagged")
    assert shown.page.locator("#found").inner_text() == f"{ROWS // 2} of {ROWS}"
    shown.page.fill("#find", "ZUG im")
    left = shown.column("c"), shown.column("q"), shown.column("i")
    assert left[0]
    assert all(any("Zug im" in text for text in row) for row in zip(*left, strict=True))
    shown.page.fill("#find", "nothing like this")
    assert shown.page.locator("#found").inner_text() == f"0 of {ROWS}"
    assert shown.rows().count() == 0
    shown.page.focus("#find")
    shown.page.keyboard.press("Escape")
    shown.page.select_option("#show", "swap")
    assert shown.page.locator("#found").inner_text() == f"{ROWS // 5} of {ROWS}"
    shown.page.select_option("#show", "wrong")
    expected = sum((k % 4 > 0) != (k < ROWS // 2) for k in range(ROWS))
    assert shown.page.locator("#found").inner_text() == f"{expected} of {ROWS}"


def test_turning_pages(visit, page):
    shown = visit(page)
    assert shown.page.locator("#page-at").inner_text() == "1 of 3"
    assert shown.page.locator("#page-back").is_disabled()
    shown.page.locator("#page-on").click()
    shown.page.locator("#page-on").click()
    assert shown.rows().count() == ROWS - 50
    assert shown.page.locator("#page-on").is_disabled()


def test_everything_by_keyboard(visit, page):
    shown = visit(page)
    shown.page.keyboard.press("/")
    assert shown.page.evaluate("document.activeElement.id") == "find"
    shown.page.keyboard.type("beach")
    assert shown.page.locator("#find").input_value() == "beach"
    shown.page.keyboard.press("Escape")
    shown.rows().first.focus()
    shown.page.keyboard.press("Enter")
    detail = shown.page.locator("tr.detail")
    assert "given caption" in detail.inner_text()
    shown.page.keyboard.press("ArrowDown")
    assert shown.page.evaluate("document.activeElement.dataset.row") == "1"
    shown.page.keyboard.press("ArrowUp")
    shown.page.keyboard.press("Escape")
    assert detail.count() == 0
    assert shown.page.evaluate("document.activeElement.dataset.row") == "0"


def test_a_row_opens_to_everything_about_its_pair(visit, page):
    shown = visit(page)
    shown.rows().nth(1).click()
    said = shown.page.locator("tr.detail").inner_text()
    for fact in (
        "pair",
        "image",
        "given caption",
        "p mismatch",
        "score",
        "rank",
        "proposed caption",
        "weight",
        "exchange",
        "truth",
    ):
        assert fact in said
    shown.rows().nth(1).click()
    assert shown.page.locator("tr.detail").count() == 0


def test_the_theme_can_be_switched_and_is_remembered(visit, page):
    shown = visit(page, scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = shown.page.evaluate(ground)
    shown.page.click("#theme")
    light = shown.page.evaluate(ground)
    assert light != dark
    assert shown.page.locator("#theme").inner_text() == "dark"
    shown.page.reload()
    assert shown.page.evaluate(ground) == light
    shown.page.click("#theme")
    assert shown.page.evaluate(ground) == dark


def test_it_reads_without_scripts(visit, page):
    shown = visit(page, java_script_enabled=False)
    assert shown.rows().count() == 25
    assert not shown.page.locator("#controls").is_visible()
    assert not shown.page.locator("#theme").is_visible()
    assert shown.page.locator("#gallery .card").count() == 16


def test_on_paper_everything_is_open_and_dark_is_light(visit, page):
    shown = visit(page, scheme="dark")
    shown.page.emulate_media(media="print")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.page.locator("nav").is_visible()
    assert len(shown.page.pdf()) > 10_000


def test_without_pictures_or_proposals_it_still_reads(visit, tmp_path):
    whole = full_page(pictures=False)
    rows = [
        replace(row, proposed_caption=None, proposed_weight=None, swap_with=None, truth=None)
        for row in whole.pairs.rows
    ]
    path = tmp_path / "bare.html"
    path.write_text(render(replace(whole, gallery=None, pairs=replace(whole.pairs, rows=rows))), encoding="utf-8")
    shown = visit(path)
    assert shown.page.locator("th button").all_inner_texts() == ["p", "image", "given caption", "score", "rank"]
    assert shown.page.locator("img").count() == 0
    shown.page.get_by_role("button", name="rank").click()
    assert shown.column("r")[0] == str(ROWS)


# The contrast ratio of WCAG 2, for every element that holds text of its own.
_CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const poor = new Set();
  for (const e of document.querySelectorAll("main *, header *, nav *, footer *")) {
    if (!hasText(e) || !e.offsetParent || e.closest("svg") || e.disabled) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${e.tagName} ${e.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, page, scheme):
    assert visit(page, scheme=scheme).page.evaluate(_CONTRAST) == []
