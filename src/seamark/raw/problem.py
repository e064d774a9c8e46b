"""Errors of the log in this surface's words."""

from __future__ import annotations

from seamark.errors import SeamarkError
from seamark.raw.model import PREFIX
from seamark.wire.exchange import Headers
from seamark.wire.problem import plain_problem


def raw_problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    """The plain problem, in which a stream goes by the name that the client gave it."""
    if isinstance(error, SeamarkError):
        stream = error.fields.get("stream")
        if isinstance(stream, str) and stream.startswith(PREFIX):
            name = stream.removeprefix(PREFIX)
            error = type(error)(error.message.replace(stream, name), **{**error.fields, "stream": name})
    return plain_problem(error, request_id)
