"""Whether the server lives, whether it is ready, what it counts, and what it offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

import seamark
from seamark.clock import Clock
from seamark.http.openapi import Info, document
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Route
from seamark.wire.problem import plain_problem

METRICS_MEDIA = b"text/plain; version=0.0.4; charset=utf-8"

Check = Callable[[], str | None]
"""None when all is well, else the reason in a few words."""


class Readiness:
    """Why the server is not ready; ready when there is no reason. `checks` are asked each time."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._checks = list(checks)
        self._started = False
        self._draining = False

    def add(self, check: Check) -> None:
        self._checks.append(check)

    def started(self) -> None:
        self._started = True

    def draining(self) -> None:
        self._draining = True

    @property
    def ending(self) -> bool:
        """The server goes down: it will not become ready again."""
        return self._draining

    def reasons(self) -> list[str]:
        if self._draining:
            return ["draining"]
        if not self._started:
            return ["starting"]
        return [reason for reason in (check() for check in self._checks) if reason]


def health_routes(
    readiness: Readiness,
    *,
    metrics: Metrics,
    clock: Clock,
    describe: Callable[[], Mapping[str, object]] = dict,
    public_metrics: bool = True,
) -> list[Route]:
    """/health, /ready and, unless it has a port of its own, /metrics. `describe` adds facts to /health."""
    born = clock.monotonic()

    def health(exchange: Exchange) -> None:
        facts = {"status": "ok", "version": seamark.__version__, "uptime_seconds": round(clock.monotonic() - born, 3)}
        exchange.respond(200, msgspec.json.encode({**facts, **describe()}), headers=_FRESH)

    def ready(exchange: Exchange) -> None:
        reasons = readiness.reasons()
        if reasons:
            facts = {"status": "not_ready", "backend_connected": False, "reasons": reasons}
            exchange.respond(503, msgspec.json.encode(facts), headers=_FRESH)
        else:
            exchange.respond(200, b'{"status":"ready","backend_connected":true}', headers=_FRESH)

    routes = [
        _route("/health", health, "Liveness", "The process answers; what it is and what an acknowledgement means."),
        _route("/ready", ready, "Readiness", "200 when requests are welcome, 503 with the reasons when not."),
    ]
    return [*routes, metrics_route(metrics)] if public_metrics else routes


def metrics_route(metrics: Metrics) -> Route:
    """/metrics, in the text format of Prometheus."""

    def scrape(exchange: Exchange) -> None:
        exchange.respond(200, metrics.text(), media=METRICS_MEDIA, headers=_FRESH)

    return _route("/metrics", scrape, "Metrics", "Everything that is counted, as Prometheus text.", METRICS_MEDIA)


def openapi_route(routes: Callable[[], Sequence[Route]], info: Info) -> Route:
    """/openapi.json, made once, when first asked for. `routes` returns the whole table, this row included."""
    made: list[bytes] = []

    def openapi(exchange: Exchange) -> None:
        if not made:
            made.append(document(routes(), info))
        exchange.respond(200, made[0])

    return _route("/openapi.json", openapi, "This document", "OpenAPI 3.1, made from the route table.")


_FRESH = ((b"Cache-Control", b"no-store"),)


def _route(
    path: str,
    handler: Callable[[Exchange], None],
    summary: str,
    description: str,
    media: bytes = b"application/json",
) -> Route:
    media_name = media.decode().partition(";")[0]
    operation: dict[str, object] = {
        "description": description,
        "tags": ["server"],
        "responses": {"200": {"description": summary, "content": {media_name: {}}}},
    }
    return Route("GET", path, handler, summary, "", plain_problem, 0, hot=True, openapi=operation)
