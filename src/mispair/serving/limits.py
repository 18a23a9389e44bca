"""Who may connect, how much a request may hold, and what a page may load. Lengths of texts are in `search.query`."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from mispair.errors import InputError
from mispair.value_words import complaint

MOST_BODY = 12 << 20  # bytes of a request: one picture
MOST_BASE64 = MOST_BODY - (1 << 20)  # of a picture in it
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refusal(BaseModel):
    """What a request that cannot be answered gets: one sentence."""

    detail: str


def what_is_malformed(complaints: Sequence[Mapping[str, Any]]) -> str:
    """The first complaint about a request as one sentence: which value, and what would be right."""
    first = complaints[0]
    if first["type"] == "json_invalid":
        return "the body is not JSON"
    path = ".".join(str(step) for step in first["loc"][1:])[:100] or str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"there is no {path} in such a request"
    return f"{path}: {complaint(first)}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refuse_open_host(host: str, token: str | None) -> None:
    """Anything but loopback needs a token."""
    if not is_loopback(host) and not token:
        raise InputError(f"--host {host} can be reached by others: set --token, or leave it at 127.0.0.1")
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isprintable()):
        raise InputError("--token needs at least 16 printable ASCII characters; try: openssl rand -hex 16")


class Guard:
    """In front of every route: who asks, from where, how much; and the headers of every answer."""

    def __init__(self, app: App, host: str, token: str | None) -> None:
        self.app, self.host, self.token = app, host, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        if scope["path"] == "/knn-service":  # clients of clip-retrieval send JSON without saying so
            others = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-type"]
            scope = {**scope, "headers": [*others, (b"content-type", b"application/json")]}
        taken, too_large = 0, False

        async def counted() -> Message:
            nonlocal taken, too_large
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BODY:
                too_large = True
                raise BodyTooLargeError
            return message

        async def with_headers(message: Message) -> None:
            if too_large:  # whatever the route makes of the break is not what happened
                return
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                extra = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        with contextlib.suppress(BodyTooLargeError):
            await self.app(scope, counted, with_headers)
        if too_large:
            await _answer(send, 413, f"a request holds at most {MOST_BODY >> 20} MB")

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > MOST_BODY:
            return 413, f"a request holds at most {MOST_BODY >> 20} MB"
        asked = urlsplit("//" + headers.get(b"host", b"").decode("latin-1")).hostname or ""
        if is_loopback(self.host) and not is_loopback(asked):  # a name that a stranger's page points at this machine
            return 421, f"this server answers to {self.host}, not to {asked[:80]!r}"
        origin = headers.get(b"origin")
        if scope["method"] not in ("GET", "HEAD") and origin is not None:
            where = urlsplit(origin.decode("latin-1"))
            if where.netloc.encode() != headers.get(b"host", b""):
                return 403, "a page of another address may not change anything here"
        open_to_all = scope["path"] == "/api/health"
        if self.token is not None and not open_to_all and not self._knows(scope, headers):
            return 401, "this server needs its token: open the address that was printed, or send Authorization: Bearer"
        return None

    def _knows(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        assert self.token is not None
        sent = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        for part in headers.get(b"cookie", b"").split(b";"):
            name, _, value = part.strip().partition(b"=")
            if name == b"mispair_token" and not sent:
                sent = value
        if not sent and scope["method"] == "GET" and scope["path"] in ("/", "/review"):
            for part in scope["query_string"].split(b"&"):
                if part.startswith(b"token="):
                    sent = part.removeprefix(b"token=")
        return hmac.compare_digest(sent, self.token.encode())


class BodyTooLargeError(Exception):
    """More bytes came than were announced or allowed."""


async def _answer(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), *((n.encode(), v.encode()) for n, v in HEADERS.items())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
