"""Realms: parts of the path space that belong to one surface also where it has no row. Whoever asks there for what does
not exist is answered in that surface's words, and only if they might ask at all: strangers learn nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from seamark.http.problems import Problem
from seamark.wire.exchange import ANY_KEY, Exchange, Route

_SCOPES = {"GET": "read", "HEAD": "read", "POST": "write", "PUT": "admin", "DELETE": "delete"}


def _nameless(raw_path: str) -> str | None:
    return None


class Realm(NamedTuple):
    """`/v0`, say, and everything below it."""

    prefix: str
    problem: Problem
    name_of: Callable[[str], str | None] = _nameless
    """The name in a raw path that a key's prefixes are held against, decoded; None where the path has none."""
    keyed: bool = True
    """Whether API keys open it. Where the surface knows callers of its own, which rows it has is no secret."""

    def owns(self, raw_path: str) -> bool:
        return raw_path == self.prefix or raw_path.startswith(f"{self.prefix}/")

    def row(self, method: str) -> Route:
        """What stands in for the row that is missing, so that the same checks come before the answer."""
        action = _SCOPES.get(method, ANY_KEY) if self.keyed else ""
        return Route(method, self.prefix, _nowhere, "", action, self.problem, 0)


def _nowhere(exchange: Exchange) -> None:
    raise AssertionError("a row that stands for its absence is never run")
