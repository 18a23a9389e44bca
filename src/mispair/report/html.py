"""Elements and the one escape: text becomes HTML here and nowhere else.

Captions, file names and ids are written by strangers. A child or attribute that is not already `Html` is escaped, so
forgetting to escape is not possible; only this file makes `Html` from a plain string.
"""

from __future__ import annotations

import json
import re
from html import escape as _entities
from typing import Any


class Html(str):
    """Text that is safe to stand in a page as it is."""

    __slots__ = ()


_VOID = frozenset({"meta", "link", "img", "input"})
# Embeddings, overrides and isolates could reach beyond the element that holds them, even beyond <bdi>.
_UNSHOWN = re.compile("[\x80-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_CONTROLS = {code: 0x2400 + code for code in range(32)} | {127: 0x2421} | dict.fromkeys((9, 10, 13), 32)


def visible(text: str) -> str:
    """The same text without what a reader cannot see or a browser would obey: controls become their pictures."""
    return _UNSHOWN.sub("\ufffd", text.translate(_CONTROLS))


def escape(text: object) -> Html:
    """Any text, safe between tags and inside quoted attributes."""
    return text if isinstance(text, Html) else Html(_entities(visible(str(text)), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` is class, `aria_label` is aria-label; None and False are left out, True stands alone."""
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{escape(value)}"')
    opening = f"<{' '.join(parts)}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def join(children: object, between: str = "") -> Html:
    """Children next to each other; None is nothing, lists are taken apart."""
    if children is None:
        return Html("")
    if isinstance(children, (list, tuple)):
        return Html(between.join(join(child) for child in children))
    return escape(children)


def raw_text(text: str, kind: str) -> Html:
    """Our own style or script, whose content HTML takes literally."""
    assert f"</{kind}" not in text.lower(), "an asset must not close its own element"
    return Html(text)


def data_island(value: Any, id_: str) -> Html:
    """JSON for the page's script. Nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(id_)}">{text}</script>')
