"""Errors as HTTP answers, beside the envelopes of the surfaces: what HTTP itself asks for, and the server's own refusals."""

from __future__ import annotations

from collections.abc import Callable

from seamark.errors import MethodNotAllowed
from seamark.wire.exchange import Headers
from seamark.wire.problem import ENCODER

Problem = Callable[[Exception, str], tuple[int, bytes, Headers]]


def with_http_headers(error: Exception, headers: Headers) -> Headers:
    """Add Allow to a 405 where the surface has not."""
    if isinstance(error, MethodNotAllowed):
        return _with(headers, b"Allow", ", ".join(error.fields.get("allow", ())).encode())
    return headers


def media_of(headers: Headers) -> tuple[bytes, Headers]:
    """The media type of an error's body, and the other headers. JSON, unless the surface says that it is something else."""
    for header in headers:
        if header[0].lower() == b"content-type":
            return header[1], [other for other in headers if other is not header]
    return b"application/json", headers


def refusal_body(code: str, message: str, request_id: str) -> bytes:
    """The body of what the server refuses before any surface is concerned."""
    return ENCODER.encode({"error": {"code": code, "message": message}, "request_id": request_id})


def _with(headers: Headers, name: bytes, value: bytes) -> Headers:
    if any(given.lower() == name.lower() for given, _ in headers):
        return headers
    return (*headers, (name, value))
