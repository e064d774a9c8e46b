"""One request and the way to answer it. A route is written once against `Exchange` and runs unchanged on the data
plane (inside the protocol, no task) and as plain ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from seamark.access.principal import Principal
from seamark.stream.pipe import Pipe

Headers = Sequence[tuple[bytes, bytes]]

ANY_KEY = "any key"
"""The action of a route that needs a key, whatever its scopes."""


class Exchange(Protocol):
    """`respond` or `stream` must be called exactly once, now or later, from the event loop.

    The request is complete when the route runs: `body` is whole and within its limit. Header names are lower-case.
    """

    method: str
    path: str  # percent-decoded
    params: Mapping[str, str]  # the route's path parameters, percent-decoded
    query: bytes  # raw, without "?"
    headers: Headers
    body: bytes
    request_id: str  # lower-case UUID, fresh for every request
    principal: Principal

    def header(self, name: bytes) -> bytes | None:
        """First value of a header, None when absent."""
        ...

    def respond(self, status: int, body: bytes, *, media: bytes = b"application/json", headers: Headers = ()) -> None:
        """Answer whole. `Content-Length`, `Date` and `X-Request-ID` are added."""
        ...

    def stream(self, *, headers: Headers, status: int = 200) -> Pipe:
        """Begin an endless body and take the pipe. Only what is in `headers` is sent, plus chunked framing, `Date` and
        `X-Request-ID`. The owner must be set before control returns to the event loop."""
        ...


Handler = Callable[[Exchange], Awaitable[None] | None]
"""A plain function runs inside the protocol; a coroutine function gets a task. SeamarkError raised by either is
answered through the route's `problem`; any other exception becomes a logged 500."""


class Route(NamedTuple):
    """A row of the route table; the OpenAPI document and the docs are made from the same rows."""

    method: str
    path: str  # "/raw/{stream}/records"; a parameter spans exactly one segment, "{name:path}" the rest
    handler: Handler
    summary: str
    action: str  # the scopes it needs: "read", "write", "delete", "admin", "read+write", ANY_KEY, or "" for none
    problem: Callable[[Exception, str], tuple[int, bytes, Headers]]  # error, request id -> status, body, headers; the
    # body is JSON unless a Content-Type is among these
    body_bytes_max: int
    hot: bool = False  # answered in the protocol without an ASGI task
    openapi: Mapping[str, object] | None = None  # operation object: parameters, requestBody, responses
    named: str = ""  # the path parameter that a key's prefixes are held against before the body is read
    key_in_query: bool = False  # `?token=` will do: for browsers' EventSource, which cannot send headers
