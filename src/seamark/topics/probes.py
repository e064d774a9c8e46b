"""Whether the surface lives, whether it is ready, and what it counts: `/v0/health`, `/v0/ready`, `/v0/metrics`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import seamark
from seamark.clock import Clock
from seamark.errors import NotReady, ShuttingDown
from seamark.limits import SMALL_BODY_BYTES_MAX
from seamark.telemetry.metrics import Metrics
from seamark.topics.census import JobsOf, census
from seamark.topics.docs import whole
from seamark.topics.measures import Status, as_json, as_text
from seamark.topics.probe_docs import OPERATIONS
from seamark.topics.problem import topics_problem
from seamark.topics.render import ENCODER
from seamark.topics.service import Topics
from seamark.wire.exchange import ANY_KEY, Exchange, Handler, Route

TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_FRESH = ((b"Cache-Control", b"no-store"),)


class Readiness(Protocol):
    """Whether the server as a whole is ready, and if not, why."""

    @property
    def ending(self) -> bool: ...
    def reasons(self) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sights:
    """What the probes look at beside the topics themselves. Functions, because all of it changes."""

    readiness: Readiness
    routers: Callable[[], int]
    leases: Callable[[], int]
    jobs: JobsOf
    connections: Callable[[], int]
    sessions: Callable[[], int]


class Probes:
    """Handlers. `guarded` asks everybody but the metrics' readers for a key as well, whatever it may do."""

    def __init__(
        self, topics: Topics, sights: Sights, metrics: Metrics, clock: Clock, *, guarded: bool = False
    ) -> None:
        self._topics = topics
        self._sights = sights
        self._metrics = metrics
        self._clock = clock
        self._born = clock.monotonic()
        self._guarded = guarded

    def table(self) -> list[Route]:
        """Rows of the route table; the two short paths are those that other software asks by habit."""
        probe = ANY_KEY if self._guarded else ""
        return [
            _route("/v0/health", self.health, probe),
            _route("/healthz", self.health, probe),
            _route("/v0/ready", self.ready, probe),
            _route("/readyz", self.ready, probe),
            _route("/v0/metrics", self.measures, "read"),
        ]

    def health(self, exchange: Exchange) -> None:
        facts = {"status": "ok", "version": seamark.__version__, "uptime_ms": self._uptime_ms()}
        exchange.respond(200, ENCODER.encode(facts), headers=_FRESH)

    def ready(self, exchange: Exchange) -> None:
        if self._sights.readiness.ending:
            raise ShuttingDown("the server is going down")
        reasons = self._reasons()
        if reasons:
            raise NotReady(f"not ready: {', '.join(reasons)}", replay_progress=self._progress())
        facts = {"status": "ready", "wal_replay_complete": True, "topics": len(self._topics.known)}
        exchange.respond(200, ENCODER.encode(facts), headers=_FRESH)

    async def measures(self, exchange: Exchange) -> None:
        sights = self._sights
        found = await census(self._topics.log, sights.jobs, lambda name: exchange.principal.may("read", name))
        status = Status(
            routers=sights.routers(),
            leases=sights.leases(),
            connections=sights.connections(),
            sessions=sights.sessions(),
            ready=not self._reasons(),
            progress=self._progress(),
            uptime_ms=self._uptime_ms(),
        )
        if b"application/json" in (exchange.header(b"accept") or b""):
            exchange.respond(200, ENCODER.encode(as_json(found, status, self._metrics)), headers=_FRESH)
        else:
            exchange.respond(200, as_text(found, status, self._metrics), media=TEXT, headers=_FRESH)

    def _reasons(self) -> list[str]:
        loading = [] if self._topics.loaded else ["the topics are being loaded"]
        return [*loading, *self._sights.readiness.reasons()]

    def _progress(self) -> float:
        """The log is open before anybody can ask; what may be missing is which of its streams are topics."""
        return float(self._topics.loaded)

    def _uptime_ms(self) -> int:
        return round((self._clock.monotonic() - self._born) * 1_000)


def _route(path: str, handler: Handler, action: str) -> Route:
    summary, operation = OPERATIONS["GET", path]
    return Route("GET", path, handler, summary, action, topics_problem, SMALL_BODY_BYTES_MAX, True, whole(operation))
