"""Search and review as people use them, in Chromium: by keyboard, with strangers' text, through restarts."""

import re

import pytest

from tests.browser.sites import CONTRAST, expect, serving
from tests.serving.sites import PAIRS, make_site, png

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>window.pwned=1</script>", '"><img src=x onerror="window.pwned=1">', "javascript:window.pwned=1",
    "' onmouseover='window.pwned=1", "</textarea><svg onload=window.pwned=1>", "{{constructor.constructor('x')()}}",
    "\u202egnirts", "\x07\x1b[31mred", "&lt;b&gt;", "a" * 3000,
]  # fmt: skip


def test_search_by_words_by_picture_and_by_neighbours(tmp_path, open_page):
    picture = tmp_path / "query.png"
    picture.write_bytes(png())
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(address)
        expect(page.locator(".hit")).to_have_count(24)  # some to begin with
        page.keyboard.press("Escape")
        page.fill("#text", "number 17")
        page.keyboard.press("Enter")
        expect(page.locator("#told")).to_contain_text("nearest")
        assert page.locator(".hit .words").first.inner_text() == "caption 17"
        assert "'number' was never seen in training" in page.inner_text("#told")
        page.set_input_files("#file", str(picture))
        expect(page.locator("#told")).to_contain_text("query.png")
        assert page.locator(".hit .words").first.inner_text() == "caption 5"
        page.locator(".hit .tile").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".strip li")
        page.keyboard.press("w")
        page.wait_for_selector("#why .carried.for")
        page.wait_for_selector("#heat:not([hidden])")
        expect(page.locator("#how")).to_contain_text("Strongest at the bottom, far right")
        page.keyboard.press("x")
        expect(page.locator("#how")).to_contain_text("Sent to review")
        first = page.inner_text("#detail-about")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#detail-about")).not_to_have_text(first)
        assert page.locator("#heat").is_hidden()
        page.keyboard.press("Escape")
        assert not page.locator("#detail").is_visible()
        page.select_option("#suspicious", "yes")
        expect(page.locator(".tag:not(.wrong)")).to_have_count(0)
        page.select_option("#suspicious", "no")
        expect(page.locator(".tag").first).to_have_text(re.compile(r"^p 0\.\d\d$"))  # "matched" would promise too much
        page.select_option("#suspicious", "yes")
        page.select_option("#split", "test")
        expect(page.locator(".hit")).not_to_have_count(0)


def test_what_is_typed_before_the_page_has_begun_stays(tmp_path, open_page):
    """The page asks the server how it stands; meanwhile somebody may type, and even ask."""
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(address)
        held = []
        page.route("**/api/health", lambda route: held.append(route))  # noqa: PLW0108
        for asked in (False, True):
            with page.expect_request("**/api/health"):
                page.reload()
            page.fill("#text", "number 17")
            if asked:
                page.keyboard.press("Enter")
                expect(page.locator("#told")).to_contain_text("nearest")
            with page.expect_response("**/api/health"):
                held.pop().continue_()
            expect(page.locator(".hit")).to_have_count(48 if asked else 24)
            expect(page.locator("#text")).to_have_value("number 17")
            expect(page.locator("#told")).to_contain_text("nearest" if asked else "at random")


def test_the_address_is_the_question_and_back_goes_back(tmp_path, open_page):
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/?q=number+17")
        expect(page.locator(".hit .words").first).to_have_text("caption 17")
        page.fill("#text", "number 30")
        page.keyboard.press("Enter")
        expect(page.locator(".hit .words").first).to_have_text("caption 30")
        page.go_back()
        expect(page.locator(".hit .words").first).to_have_text("caption 17")


def test_who_hears_the_page_finds_everything_by_name(tmp_path, open_page):
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/?q=number+17")
        expect(page.get_by_role("searchbox", name="What to look for")).to_be_visible()
        expect(page.get_by_role("list", name="Results").get_by_role("listitem")).to_have_count(48)
        page.get_by_role("button", name="Open pair 17: caption 17").click()
        expect(page.get_by_role("dialog", name="caption 17")).to_be_visible()
        page.keyboard.press("Escape")
        for name in ("Light or dark", "Keys", "By picture"):
            assert page.get_by_role("button", name=name).is_visible()
        page.goto(f"{address}/review?reviewer=ann")
        page.wait_for_selector(".card")
        assert page.get_by_role("group", name="Answer").get_by_role("button").count() == 6
        page.get_by_role("img", name="The picture of this pair").wait_for()  # visible, once its file has come
        assert page.get_by_role("progressbar", name="Answered").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_their_ground_in_both_themes(tmp_path, open_page, scheme):
    """Contrast of every colour that carries words, at least 4.5 to 1 (WCAG AA)."""
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/?q=number+17", scheme=scheme)
        page.wait_for_selector(".tag.wrong")
        for selector in (".words", ".foot", ".tag", ".tag.wrong", "#told", ".main", "h1"):
            measured = page.locator(selector).first.evaluate(CONTRAST)
            assert measured >= 4.5, (selector, measured)
        page.click("#theme")
        assert page.locator(".words").first.evaluate(CONTRAST) >= 4.5
        page.reload()
        assert page.locator("html").get_attribute("data-theme") == ("dark" if scheme == "light" else "light")


def test_captions_stand_as_they_are_read_and_long_ones_end_in_dots(tmp_path, open_page):
    captions = [["שני כלבים בשלג", "雪の中を走る二匹の犬", "word " * 300][k % 3] + f" {k}" for k in range(PAIRS)]
    with serving(make_site(tmp_path, captions)) as (address, _):
        page = open_page(f"{address}/?q=number+0")
        words = page.locator(".hit .words").first
        expect(words).to_have_text(captions[0])
        assert words.evaluate("e => [getComputedStyle(e).direction, getComputedStyle(e).textAlign]") == ["rtl", "start"]
        tallest = page.locator(".hit .words").evaluate_all("all => Math.max(...all.map((e) => e.clientHeight))")
        assert tallest <= 4 * 1.4 * 0.95 * 16 + 22, "four lines and the padding"
        page.goto(f"{address}/review?reviewer=ann")
        page.wait_for_selector(".card p")
        for shown in page.locator(".card p").all():
            rtl = shown.inner_text().startswith("ש")
            assert shown.evaluate("e => getComputedStyle(e).direction") == ("rtl" if rtl else "ltr")


def test_arrows_go_from_tile_to_tile_and_from_row_to_row(tmp_path, open_page):
    focus = "[...document.querySelectorAll('#results .tile')].indexOf(document.activeElement)"
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/?q=number+17")
        expect(page.locator(".hit")).to_have_count(48)
        page.locator(".hit .tile").first.focus()
        tops = page.locator(".hit").evaluate_all("all => all.map((e) => e.getBoundingClientRect().top)")
        columns = tops.count(tops[0])
        assert columns > 1
        for key, at in (("ArrowRight", 1), ("ArrowDown", 1 + columns), ("ArrowLeft", columns), ("ArrowUp", 0)):
            page.keyboard.press(key)
            assert page.evaluate(focus) == at
        page.keyboard.press("ArrowUp")
        assert page.evaluate(focus) == 0


def test_the_first_screens_say_what_to_do(tmp_path, open_page):
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(address)
        expect(page.locator("#told")).to_contain_text("24 of 211 pairs, at random. Ask in words or drop a picture")
        page.goto(f"{address}/review")
        page.wait_for_selector("#name-dialog[open]")
        assert "does the caption belong to the picture" in page.inner_text("#name-dialog")
        page.keyboard.press("Escape")
        assert page.locator("#name-dialog").is_visible()  # there is nothing behind it
        page.fill("#name", "ann")
        page.keyboard.press("Enter")
        expect(page.locator("#estimate")).to_have_text("not known yet")
        assert page.locator("#undo").is_disabled()
        page.keyboard.press("1")
        expect(page.locator("#answered")).to_have_text("1")
        expect(page.locator("#left")).to_have_text("210")
        assert page.locator("#undo").is_enabled()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (380, "dark")])
def test_strangers_text_stays_text(tmp_path, open_page, width, scheme):
    captions = [HOSTILE[k % len(HOSTILE)] + f" {k}" for k in range(PAIRS)]
    names = [f"{HOSTILE[k % len(HOSTILE)][:80]}{k}.png" for k in range(PAIRS)]
    with serving(make_site(tmp_path, captions, names)) as (address, _):
        page = open_page(address, width=width, scheme=scheme)
        page.fill("#text", "17 30 51 " + " ".join(HOSTILE[:5]))
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        expect(page.locator("#told")).to_contain_text("was never seen in training")
        page.locator(".hit .tile").first.click()
        page.wait_for_selector(".strip li")
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        from urllib.parse import quote

        page.goto(f"{address}/review?reviewer={quote(HOSTILE[1])}")
        page.wait_for_selector(".card")
        assert page.inner_text("#who") == HOSTILE[1]
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_server_that_is_gone_says_so(tmp_path, chromium):
    with serving(make_site(tmp_path)) as (address, _):
        context = chromium.new_context()
        page = context.new_page()
        page.goto(f"{address}/review?reviewer=ann")
        page.wait_for_selector(".card")
    page.keyboard.press("1")
    page.wait_for_selector("#notice:not([hidden])")
    assert "does not answer" in page.inner_text("#notice")
    context.close()
