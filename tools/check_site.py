"""Is the built documentation whole? Every local link and anchor leads somewhere, and nothing is loaded from elsewhere.

Usage: python -m tools.check_site site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ELSEWHERE = re.compile(r"""(?:@import\s*|url\(\s*)["']?(?:https?:)?//""")


class Page(HTMLParser):
    """Links, anchors and resources of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attributes}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "prev", "next"):
            self.resources.append(values.get("href", ""))
        elif "src" in values:
            self.resources.append(values["src"])


def problems(site: Path) -> list[str]:
    """One line per broken link or foreign resource."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in page.links + page.resources:
            where = urlsplit(link)
            if where.scheme in ("http", "https") or link.startswith("//"):
                if link in page.resources:
                    found.append(f"{path}: loads {link}")
                continue
            if where.scheme:
                continue  # mailto:, data:
            target = (path.parent / unquote(where.path)).resolve() if where.path else path.resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                if path.name != "404.html":  # its links are written for a server
                    found.append(f"{path}: {link} leads nowhere")
            elif where.fragment and target.suffix == ".html":
                anchors = next(page.anchors for other, page in pages.items() if other.resolve() == target)
                if unquote(where.fragment) not in anchors:
                    found.append(f"{path}: {link} has no such place")
    for sheet in site.rglob("*.css"):
        if _ELSEWHERE.search(sheet.read_text(encoding="utf-8")):
            found.append(f"{sheet}: loads from another host")
    return found


def main() -> int:
    site = Path(sys.argv[1])
    found = problems(site)
    for line in found:
        print(line)
    count = len(list(site.rglob("*.html")))
    print(f"{count} pages, {len(found)} problems")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
