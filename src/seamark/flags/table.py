"""Rows of the route table as this surface makes them: who may is asked by the handlers, because tokens are its own, and what
goes wrong is told in its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seamark import limits
from seamark.flags.problem import flags_problem
from seamark.wire.exchange import Handler, Headers, Route

Operation = tuple[str, str, Mapping[str, Any]]  # what it does, the permission that it needs, and its OpenAPI object

Problem = Callable[[Exception, str], tuple[int, bytes, Headers]]

NO_TOKEN = ""


def row(
    operations: Mapping[tuple[str, str], Operation],
    method: str,
    path: str,
    handler: Handler,
    *,
    body_bytes_max: int = limits.SMALL_BODY_BYTES_MAX,
    hot: bool = False,
    problem: Problem = flags_problem,
) -> Route:
    """One row, described by `operations`."""
    summary, permission, described = operations[method, path]
    openapi = {"security": [{"bearer": [permission]}] if permission else [], **described}
    most = 0 if method in {"GET", "DELETE", "OPTIONS"} else body_bytes_max
    return Route(method, path, handler, summary, "", problem, most, hot, openapi)
