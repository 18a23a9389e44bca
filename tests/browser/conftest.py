"""A real browser, where there is one: Debian's Chromium driven by Playwright (make setup-browser)."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def chromium():
    """Started for each file, since as long as it is open its event loop runs in this process, and no other can."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make setup-browser")
    path = os.environ.get("MISPAIR_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is missing: make setup-browser, or set MISPAIR_CHROMIUM to its path")
    with playwright.sync_playwright() as driver:
        # Chromium's sandbox refuses to run as root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


class Visit:
    """A page that was opened, and everything it complained about or asked for."""

    def __init__(self, context, path):
        self.page = context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def rows(self):
        return self.page.locator("#pairs-view tbody tr:not(.detail)")

    def column(self, key):
        return [text.strip() for text in self.rows().locator(f".col-{key}").all_inner_texts()]


@pytest.fixture
def visit(chromium):
    """Open a file; afterwards it must have complained about nothing and asked nobody for anything."""
    opened, contexts = [], []

    def _open(path, width=1280, height=900, scheme="light", **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        opened.append(Visit(context, path))
        return opened[-1]

    yield _open
    for one in opened:
        assert one.complaints == []
        assert [url for url in one.requests if not url.startswith(("file:", "data:"))] == []
        assert len({url for url in one.requests if url.startswith("file:")}) == 1, "the page is one file"
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(chromium):
    """Open an address; afterwards nothing was complained about and nobody else was asked for anything."""
    contexts, complaints, requests = [], [], []

    def _open(address, width=1280, height=900, scheme="light"):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(60_000)  # a busy machine is slow, not wrong
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    _open.complaints = complaints
    yield _open
    assert complaints == []
    assert [url for url in requests if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []
    for context in contexts:
        context.close()
