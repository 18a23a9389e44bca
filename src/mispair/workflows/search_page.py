"""The answers to one question as a page to keep: pictures, captions, scores."""

from __future__ import annotations

import base64
from pathlib import Path

from mispair.pictures.reencode import reencode
from mispair.report.html import Html, join, raw_text, tag
from mispair.searching.index import Index
from mispair.searching.query import Hit, SearchResult
from mispair.serving.app import ASSETS
from mispair.workflows.search import encoder_of
from mispair.workflows.site import pictures_of_index


def search_page(result: SearchResult, folder: Path, asked: str) -> str:
    """One self-contained HTML file."""
    index = Index.open(folder)
    pictures = pictures_of_index(index, encoder_of(index).data, names=[hit.image_path for hit in result.hits])
    style = (ASSETS / "site.css").read_text(encoding="utf-8")
    items = [_item(hit, pictures.read(hit.image_path)) for hit in result.hits]
    notes = [tag("p", note, class_="notice") for note in result.notes]
    head = tag(
        "head", tag("meta", charset="utf-8"), tag("title", f"{asked} - mispair"), tag("style", raw_text(style, "style"))
    )
    body = tag("body", tag("header", tag("h1", asked), class_="top"), notes, tag("ol", items, class_="results"))
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _item(hit: Hit, data: bytes | None) -> Html:
    small = None if data is None else reencode(data, 320)
    source = None if small is None else "data:image/webp;base64," + base64.b64encode(small).decode()
    picture = tag("img", src=source, alt="", class_="tile") if source else tag("div", class_="tile")
    words = tag("div", tag("bdi", hit.caption), class_="words")
    foot = tag("div", tag("span", f"{hit.score:.3f}"), tag("span", hit.image_path), class_="foot")
    return tag("li", join([picture, words, foot]), class_="hit")
