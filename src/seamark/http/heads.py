"""Heads that were here before. What the parser and the guards make of a head depends on its bytes alone, and a client
sends the same ones again and again: for hot routes the outcome is kept, so that the same bytes need no second judgement.
Who is asking is no part of it; that is looked at for every request. Nothing is learned from the first request of a connection:
it may be its only one, like that for a stream, whose path may be nobody else's and a secret."""

from __future__ import annotations

from typing import NamedTuple

from seamark import limits
from seamark.http.routing import Match
from seamark.wire.exchange import Headers

_END = b"\r\n\r\n"


class Head(NamedTuple):
    """A head that passed every guard, keeps its connection, and says how long its body is."""

    match: Match
    method: str
    query: bytes
    headers: Headers  # shared between requests: do not change
    length: int


class Heads:
    """Known heads by their bytes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> Head | None:
        """The head of `data`, if it is known and `data` is exactly one request with all of its body."""
        end = data.find(_END) + len(_END)
        head = self._known.get(data[:end])
        return head if head is not None and len(data) - end == head.length else None

    def learn(self, data: bytes, head: Head) -> None:
        """`data` was one request, and `head` is what the parser made of it."""
        front, end, body = data.partition(_END)
        if not end or len(body) != head.length or len(front) > limits.HEAD_CACHE_BYTES:
            return  # more came with it than one request
        if len(self._known) >= limits.HEAD_CACHE_MAX:
            self._known.clear()
        self._known[front + end] = head
