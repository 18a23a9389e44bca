"""JSON written as it was read: the same indentation, separators and escapes."""

from __future__ import annotations

import json
import re
from typing import Any

_OPENING = re.compile(rb"\s*[{\[](\r?\n)?([ \t]*)")
_MARK = b"\xef\xbb\xbf"


def dump_like(value: Any, raw: bytes) -> bytes:
    """`value` as JSON in the style of the file `raw`."""
    mark = _MARK if raw.startswith(_MARK) else b""
    text = raw.removeprefix(_MARK)
    opening = _OPENING.match(text)
    indent = opening.group(2).decode() if opening is not None and opening.group(1) else None
    colon = ": " if re.search(rb'"\s*:\s', text[:4096]) else ":"
    comma = ", " if indent is None and re.search(rb'[\]}"\d],\s', text[:65536]) else ","
    made = json.dumps(value, indent=indent, separators=(comma, colon), ensure_ascii=text.isascii())
    ending = text[len(text.rstrip()) :]
    return mark + made.encode(errors="surrogatepass") + ending
