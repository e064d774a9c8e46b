"""Answers of this surface: JSON with the request's id in it."""

from __future__ import annotations

from seamark.flags import ulid
from seamark.wire.exchange import Exchange, Headers
from seamark.wire.problem import ENCODER


def answer(exchange: Exchange, facts: dict[str, object], *, status: int = 200, headers: Headers = ()) -> None:
    """`facts`, and the request id beside them."""
    body = ENCODER.encode({**facts, "request_id": ulid.of_request(exchange.request_id)})
    exchange.respond(status, body, headers=headers)


def listed(exchange: Exchange, name: str, rows: list[dict[str, object]], next_cursor: str | None) -> None:
    """A page of a list; `next_cursor` is null on the last."""
    answer(exchange, {name: rows, "next_cursor": next_cursor})
