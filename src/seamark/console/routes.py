"""The web console: a few static files, read once, served with a validator so that browsers ask again but rarely load."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from seamark.errors import RouteNotFound
from seamark.wire.exchange import Exchange, Handler, Route
from seamark.wire.problem import plain_problem

_MEDIA = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
}
_POLICY = b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"


class _File(NamedTuple):
    body: bytes
    media: bytes
    etag: bytes


def console_routes() -> list[Route]:
    """`/` and `/console/{file}`."""
    files = {entry.name: _load(entry.name) for entry in (resources.files(__package__) / "static").iterdir()}

    def index(exchange: Exchange) -> None:
        _answer(exchange, files["index.html"])

    def file(exchange: Exchange) -> None:
        name = exchange.params["file"]
        if name not in files:
            raise RouteNotFound(f"the console has no file {name!r}")
        _answer(exchange, files[name])

    return [_route("/", index, "The web console"), _route("/console/{file}", file, "The console's files")]


def _load(name: str) -> _File:
    body = (resources.files(__package__) / "static" / name).read_bytes()
    suffix = name[name.rindex(".") :]
    return _File(body, _MEDIA[suffix], b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode())


def _answer(exchange: Exchange, file: _File) -> None:
    headers = [
        (b"ETag", file.etag),
        (b"Cache-Control", b"no-cache"),
        (b"Content-Security-Policy", _POLICY),
        (b"X-Content-Type-Options", b"nosniff"),
    ]
    if exchange.header(b"if-none-match") == file.etag:
        exchange.respond(304, b"", headers=headers)
    else:
        exchange.respond(200, file.body, media=file.media, headers=headers)


def _route(path: str, handler: Handler, summary: str) -> Route:
    openapi = {"tags": ["console"], "responses": {"200": {"description": summary}}}
    return Route("GET", path, handler, summary, "", plain_problem, 0, hot=False, openapi=openapi)
