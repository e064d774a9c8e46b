"""The key that a request presents, wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from seamark.errors import Unauthenticated

_SCHEME = b"Bearer"  # matched literally, as the contract of the topics surface has it


def presented_key(headers: Sequence[tuple[bytes, bytes]], query: bytes = b"", *, in_query: bool = False) -> bytes:
    """The key in the `Authorization` header or, where a route allows it, in `?token=`. The header wins, and of several
    tokens the first. Raises Unauthenticated when there is none."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) > 1:
        # Whoever stands in front of us may have looked at the other one.
        raise Unauthenticated("the Authorization header is given twice")
    if given:
        scheme, _, secret = given[0].partition(b" ")
        if scheme != _SCHEME:
            raise Unauthenticated("the Authorization header must read 'Bearer <key>'")
        return secret.strip()
    token = _token(query) if in_query else None
    if token is None:
        raise Unauthenticated("an API key is required: send it as 'Authorization: Bearer <key>'")
    return token


def _token(query: bytes) -> bytes | None:
    """The first `token` of a form-encoded query. A browser's EventSource cannot send headers."""
    for pair in query.split(b"&"):
        name, equals, value = pair.partition(b"=")
        if equals and _decoded(name) == b"token":
            return _decoded(value)
    return None


def _decoded(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))
