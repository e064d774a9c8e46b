"""The whole wiring of one server process, on one screen."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import seamark
from seamark.access.inflight import InFlight
from seamark.access.keys import NOBODY, KeyRing, parse_keys
from seamark.access.principal import Principal
from seamark.clock import Clock, SystemClock
from seamark.console.routes import console_routes
from seamark.errors import Unauthenticated
from seamark.flags.problem import flags_problem
from seamark.flags.streaming import signing_key
from seamark.flags.surface import REALMS as FLAGS_REALMS
from seamark.flags.surface import FlagsSurface, superadmin_secret
from seamark.http.access_log import AccessLog
from seamark.http.allocator import keep_memory
from seamark.http.asgi import ASGIApp, Receive, Scope, Send, build_asgi
from seamark.http.front import Authenticate, Front
from seamark.http.health import Readiness, health_routes, metrics_route, openapi_route
from seamark.http.openapi import Info
from seamark.http.plane import Patience, Plane
from seamark.http.realm import Realm
from seamark.http.server import Listening, Server, loop_factory
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import open_memory
from seamark.log.protocol import Health, Log
from seamark.notify.guard import make_gate
from seamark.notify.measures import SERIES as NOTIFY_SERIES
from seamark.notify.options import NotifySettings
from seamark.notify.problem import ROOT as NOTIFY_ROOT
from seamark.notify.problem import catalogue_problem
from seamark.notify.settings import read_options
from seamark.notify.surface import NotifySurface
from seamark.raw.demo import feed
from seamark.raw.routes import RawRoutes
from seamark.raw.watch import Watches
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.wheel import Wheel
from seamark.telemetry.metrics import METRICS, Metrics
from seamark.telemetry.supervise import supervise
from seamark.topics import paths
from seamark.topics.problem import topics_problem
from seamark.topics.surface import TopicsSurface
from seamark.wire.exchange import Headers, Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from seamark.config import Settings


_REALMS = (
    Realm(paths.ROOT, topics_problem, paths.topic_in),
    *(Realm(prefix, flags_problem, keyed=False) for prefix in FLAGS_REALMS),
    Realm(NOTIFY_ROOT, catalogue_problem, keyed=False),
)


class Assembly:
    """One log, one hub, one route table. Make it inside the running loop; `drain` and then `close` it there."""

    def __init__(self, settings: Settings, *, clock: Clock, notify: NotifySettings | None = None) -> None:
        # What may be refused comes before a store is made.
        keys = parse_keys(settings.api_keys.reveal(), place=str(settings.sources["api_keys"]))
        options = notify or read_options(settings)
        superadmin = superadmin_secret(settings.superadmin_token_file)
        key = signing_key(settings)
        self.settings = settings
        self.metrics = Metrics((*METRICS, *NOTIFY_SERIES))
        self.metrics.watch_process()
        gate = make_gate(settings, schema=options.schema, clock=clock, metrics=self.metrics)
        self.metrics.gauge("seamark_build_info", seamark.__version__).value = 1
        _count_uptime(self.metrics, clock)
        self.log = _open_log(settings, clock, self.metrics)
        self.wheel = Wheel(clock)
        self.hub = Hub(self.log, self.wheel, self.metrics)
        self.readiness = Readiness([self._unwritable])
        self.topics = TopicsSurface(
            self.log,
            self.hub,
            keys=keys,
            clock=clock,
            metrics=self.metrics,
            settings=settings,
            readiness=self.readiness,
        )
        self.notify = NotifySurface(self.log, self.hub, options=options, gate=gate, clock=clock, metrics=self.metrics)
        self.readiness.add(self.notify.unprepared)
        self.flags = FlagsSurface(
            self.log,
            self.hub,
            clock=clock,
            metrics=self.metrics,
            settings=settings,
            signing_key=key,
            superadmin_secret=superadmin,
        )
        self.readiness.add(self.flags.unloaded)
        self.front = Front(
            self.routes(clock),
            authenticate=_authenticator(keys, closed=gate.decides and not settings.allow_insecure),
            inflight=InFlight(settings.max_inflight_per_key),
            realms=_REALMS,
            metrics=self.metrics,
            clock=clock,
            access_log=AccessLog() if settings.access_log else None,
        )
        self.topics.start()
        self.notify.start()
        self.flags.start()
        self._tasks = [supervise("demo", lambda: feed(self.log, clock, random.Random()))] if settings.demo else []

    def routes(self, clock: Clock) -> list[Route]:
        """The route table: the only place that knows every surface."""
        settings = self.settings
        watches = Watches(self.hub, heartbeat_seconds=settings.heartbeat_seconds)
        routes = [
            *console_routes(),
            *health_routes(
                self.readiness,
                metrics=self.metrics,
                clock=clock,
                describe=self._describe,
                public_metrics=not settings.metrics_port,
            ),
            *RawRoutes(self.log, watches, body_bytes_max=settings.max_body_bytes).table(),
            *self.topics.table(),
            *self.notify.table(),
            *self.flags.table(),
        ]
        info = Info(title="Seamark", version=seamark.__version__, server_url=settings.public_url or "/")
        document = openapi_route(lambda: self.front.table.routes, info)
        return [*routes, document, document._replace(path="/api-docs/openapi.json")]  # where notify clients look for it

    async def drain(self) -> None:
        """Streams get their closing event; what was accepted is still committed."""
        for task in self._tasks:
            task.cancel()
        self.hub.drain(Close.SHUTDOWN)
        await self.topics.drain()
        await self.notify.drain()
        await self.flags.drain()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        await self.drain()
        self.hub.close()
        self.wheel.close()
        await self.log.close()

    def _describe(self) -> dict[str, object]:
        facts: dict[str, object] = {"engine": self.settings.engine}
        if isinstance(self.log, Health):
            facts["log"] = self.log.health()
        return facts

    def _unwritable(self) -> str | None:
        if isinstance(self.log, Health) and not self.log.health()["writable"]:
            return "the store takes no writes"
        return None


def serve(settings: Settings, *, on_ready: Callable[[str], None]) -> int:
    """Serve until told to stop; the exit code."""
    keep_memory()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(settings, on_ready))


async def _serve(settings: Settings, on_ready: Callable[[str], None]) -> int:
    clock = SystemClock()
    assembly = Assembly(settings, clock=clock)
    patience = Patience(
        keep_alive_seconds=settings.keep_alive_seconds,
        header_seconds=settings.header_timeout_seconds,
        body_grace_seconds=settings.body_timeout_seconds,
    )
    metrics_plane = None
    if settings.metrics_port:
        metrics_front = Front(
            [metrics_route(assembly.metrics)], authenticate=_open_door, metrics=Metrics(), clock=clock
        )
        metrics_plane = Plane(metrics_front, patience=patience)
    server = Server(
        build_asgi(assembly.front),
        Plane(assembly.front, patience=patience),
        listening=_listening(settings),
        readiness=assembly.readiness,
        drain=assembly.drain,
        close=assembly.close,
        on_ready=on_ready,
        metrics_plane=metrics_plane,
    )
    try:
        await server.serve()
    finally:
        await assembly.close()
    return server.exit_code


def asgi(settings: Settings) -> ASGIApp:
    """The same server as a plain ASGI application, for any ASGI server that runs one process."""
    inner: list[ASGIApp] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        assembly = Assembly(settings, clock=SystemClock())
        inner.append(build_asgi(assembly.front))
        assembly.readiness.started()
        try:
            yield
        finally:
            inner.clear()
            assembly.readiness.draining()
            await assembly.close()

    life = build_asgi(Front([], authenticate=_open_door, metrics=Metrics()), lifespan=lifespan)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (inner[0] if inner and scope["type"] != "lifespan" else life)(scope, receive, send)

    return app


def _open_log(settings: Settings, clock: Clock, metrics: Metrics) -> Log:
    if settings.engine == "memory":
        return open_memory(clock, metrics, quota_bytes=settings.quota_bytes)
    return open_embedded(settings.data, clock, metrics, quota_bytes=settings.quota_bytes)


def _count_uptime(metrics: Metrics, clock: Clock) -> None:
    born, uptime = clock.monotonic(), metrics.gauge("seamark_uptime_seconds")
    metrics.on_scrape(lambda: setattr(uptime, "value", clock.monotonic() - born))


def _authenticator(keys: KeyRing, *, closed: bool) -> Authenticate:
    """`closed`: where there are no keys, nobody has any. A server that asks users of one surface who they are must not leave
    the others open to everybody."""

    def authenticate(headers: Headers, query: bytes, route: Route) -> Principal:
        if not route.action:
            return NOBODY
        if closed and not keys:
            raise Unauthenticated("this server has no API keys, and without one nothing is served here")
        return keys.authenticate(headers, query, in_query=route.key_in_query)

    return authenticate


def _open_door(headers: Headers, query: bytes, route: Route) -> Principal:
    return NOBODY


def _listening(settings: Settings) -> Listening:
    return Listening(
        host=settings.host,
        port=settings.port,
        port_file=settings.port_file,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        metrics_host=settings.metrics_host,
        metrics_port=settings.metrics_port or None,
        grace_seconds=settings.grace_seconds,
    )


__all__ = ["Assembly", "asgi", "serve"]
