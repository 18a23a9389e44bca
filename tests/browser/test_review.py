"""A review as people do it, in Chromium: by keyboard, by two at once, through restarts and kills."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from mispair.reviewing.decisions import read_decisions
from tests.browser.sites import CONTRAST, expect, serving
from tests.reviewing.audits import small_audit
from tests.serving.sites import make_site, png

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_review_can_be_read_in_both_themes(tmp_path, open_page, scheme):
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/review?reviewer=ann", scheme=scheme)
        page.wait_for_selector(".card")
        parts = (
            ".card b",
            ".card p",
            ".figures",
            ".answers .right",
            ".answers kbd",
            "#estimate",
            "#estimate-how",
            "#who",
        )
        for selector in parts:
            measured = page.locator(selector).first.evaluate(CONTRAST)
            assert measured >= 4.5, (selector, measured)


def test_one_screen_holds_a_pair_its_proposals_and_all_answers(tmp_path, open_page):
    with serving(make_site(tmp_path)) as (address, _):
        page = open_page(f"{address}/review?reviewer=ann", width=1200, height=800)
        for count in range(1, 40):
            page.wait_for_selector(".card")
            if page.locator(".card.proposed").count() and page.locator(".card.other").count():
                break
            page.keyboard.press("1")
            expect(page.locator("#answered")).to_have_text(str(count))
        assert page.locator(".card.other").count() == 1
        for button in page.locator(".answers button").all():
            box = button.bounding_box()
            assert box["y"] + box["height"] <= 800
            assert box["height"] < 60, "one line"


def test_a_review_of_30_pairs_by_keyboard_with_undo_reload_and_a_restart(tmp_path, open_page):
    site = make_site(tmp_path)

    def answered(page, count):
        expect(page.locator("#answered")).to_have_text(str(count))

    with serving(site) as (address, port):
        page = open_page(f"{address}/review?reviewer=ann")
        for count in range(1, 16):
            page.wait_for_selector(".card")
            page.keyboard.press("12s"[count % 3])
            answered(page, count)
        for count in (14, 13):
            page.keyboard.press("u")
            answered(page, count)
        page.reload()
        answered(page, 13)
        page.keyboard.press("e")
        page.wait_for_selector("#edit-dialog[open]")
        page.fill("#caption", "what it really shows")
        page.locator("#edit-form button[type=submit]").click()
        answered(page, 14)
    with serving(make_site_again(site, tmp_path), port):
        page.reload()
        answered(page, 14)
        for count in range(15, 31):
            page.keyboard.press("1")
            answered(page, count)
        page.keyboard.press("?")
        assert page.locator("#legend").is_visible()
        page.keyboard.press("Escape")
    standing = read_decisions(tmp_path / "decisions.jsonl").standing
    assert len(standing) == 30
    assert "what it really shows" in [d.caption for d in standing]
    assert all(d.seconds is not None and d.p_mismatch is not None for d in standing)


def test_a_killed_server_has_kept_every_answer_and_the_page_goes_on(tmp_path, open_page):
    """The real command, killed with SIGKILL in the middle; the page is not even loaded again."""
    verdicts, _ = small_audit()
    verdicts.save(tmp_path / "audit")
    (tmp_path / "photos").mkdir()
    for k in range(len(verdicts)):
        (tmp_path / "photos" / f"{k}.png").write_bytes(png())
    with reviewing(tmp_path) as (process, port):
        page = open_page(f"http://127.0.0.1:{port}/review?reviewer=ann")
        page.wait_for_selector(".card")
        for count in range(1, 8):
            page.keyboard.press("12"[count % 2])
            expect(page.locator("#answered")).to_have_text(str(count))
        process.kill()
        process.wait(30)
    assert len(read_decisions(tmp_path / "audit" / "decisions.jsonl").standing) == 7
    with reviewing(tmp_path, port):
        page.keyboard.press("1")
        expect(page.locator("#answered")).to_have_text("8")
        page.keyboard.press("u")
        expect(page.locator("#answered")).to_have_text("7")
    assert len(read_decisions(tmp_path / "audit" / "decisions.jsonl").standing) == 7
    # What was on its way when the server died, or asked for while it was dead: the browser's words, not the page's.
    own = [said for said in open_page.complaints if not said.startswith("Failed to load resource: net::ERR_")]
    open_page.complaints[:] = own


@contextmanager
def reviewing(folder, port=0):
    """`mispair review` as a process of its own, once it says where; ended by SIGTERM."""
    command = [sys.executable, "-m", "mispair", "review", str(folder / "audit"), "--pictures", str(folder / "photos")]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        yield process, int(re.search(r":(\d+)/review", line).group(1))
    finally:
        if process.poll() is None:
            process.terminate()
            assert process.wait(30) in (0, -signal.SIGTERM)
        process.stdout.close()


def make_site_again(site, folder):
    """The same site as a new process would open it: the review read from its file."""
    from dataclasses import replace

    from mispair.reviewing.session import ReviewSession

    return replace(site, review=ReviewSession(folder, site.review.verdicts))


def test_two_reviewers_at_once_are_not_shown_each_others_answers(tmp_path, open_page):
    with serving(make_site(tmp_path)) as (address, _):
        pages = {name: open_page(f"{address}/review?reviewer={name}") for name in ("ann", "bob")}
        for count in range(1, 11):
            for page in pages.values():
                page.wait_for_selector(".card")
                page.keyboard.press("1")
                expect(page.locator("#answered")).to_have_text(str(count))
        for page in pages.values():
            assert page.inner_text("#answered") == "10"
    standing = read_decisions(tmp_path / "decisions.jsonl").standing
    assert {d.reviewer: sum(e.reviewer == d.reviewer for e in standing) for d in standing} == {"ann": 10, "bob": 10}
