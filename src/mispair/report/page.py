"""render: the content of a report in, one self-contained HTML file out."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from mispair.report.content import ReportPage
from mispair.report.html import Html, raw_text, tag
from mispair.report.sections import sections


def render(page: ReportPage) -> str:
    """The whole file: no network, no font, no script but its own, and its policy forbids all others."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", page.title),
        tag("style", raw_text(style, "style")),
    ]
    parts = sections(page)
    contents = tag(
        "nav", tag("ol", *[tag("li", tag("a", t, href=f"#{a}")) for a, t, _ in parts]), aria_label="Contents"
    )
    body = [
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        _header(page),
        tag(
            "div",
            contents,
            tag("main", _answer(page), *[_section(*part) for part in parts]),
            class_="columns",
        ),
        tag(
            "footer",
            f"Written by mispair on {page.created}. This file is complete in itself: it can be mailed and archived.",
        ),
        tag("script", raw_text(script, "script")),
    ]
    return "<!doctype html>\n" + tag("html", tag("head", *head), tag("body", *body), lang="en") + "\n"


def _header(page: ReportPage) -> Html:
    switch = tag("button", "dark", type="button", id="theme", hidden=True, aria_label="Switch between light and dark")
    return tag("header", tag("div", tag("h1", page.title), tag("p", page.subject, class_="subject")), switch)


def _answer(page: ReportPage) -> Html:
    said = [tag("p", sentence) for sentence in page.answer]
    cautions = [tag("p", sentence, class_="caution") for sentence in page.caution]
    return tag("section", *said, *cautions, id="answer", aria_label="The answer", class_="answer")


def _section(anchor: str, title: str, content: Html) -> Html:
    return tag("section", tag("h2", title), content, id=anchor, aria_label=title)


def _asset(name: str) -> str:
    return files("mispair.report").joinpath(f"assets/{name}").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
