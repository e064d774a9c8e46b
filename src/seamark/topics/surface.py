"""The topics surface, put together: every part is made here, and knows of the others only what it is given here."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

from seamark.access.keys import KeyRing
from seamark.clock import Clock
from seamark.config import Settings
from seamark.log.protocol import Log
from seamark.stream.hub import Hub
from seamark.telemetry.metrics import Metrics
from seamark.telemetry.supervise import supervise
from seamark.topics import docs, probe_docs, queue_docs, router_docs, watch_docs
from seamark.topics.probes import Probes, Readiness, Sights
from seamark.topics.queue_routes import QueueRoutes
from seamark.topics.queues import Queues
from seamark.topics.router_book import RouterBook
from seamark.topics.router_routes import RouterRoutes
from seamark.topics.routes import TopicRoutes
from seamark.topics.service import Topics
from seamark.topics.slots import StreamSlots
from seamark.topics.watch import Watches
from seamark.topics.watch_routes import WatchRoutes
from seamark.wire.exchange import Route

OPERATIONS = {
    **docs.OPERATIONS,
    **watch_docs.OPERATIONS,
    **router_docs.OPERATIONS,
    **queue_docs.OPERATIONS,
    **probe_docs.OPERATIONS,
}


class TopicsSurface:
    """Make it inside the running loop. `start` begins what runs by itself, `drain` ends it."""

    def __init__(
        self,
        log: Log,
        hub: Hub,
        *,
        keys: KeyRing,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        readiness: Readiness,
    ) -> None:
        self.topics = Topics(log, clock, topics_max=settings.max_topics)
        self._tasks: list[asyncio.Task[None]] = []
        self._routes = TopicRoutes(self.topics, clock, body_bytes_max=settings.max_body_bytes)
        self.routers = RouterBook(self.topics, metrics, routers_max=settings.max_routers)
        self._router_routes = RouterRoutes(self.routers, clock, body_bytes_max=settings.max_body_bytes)
        self.topics.derived = self.routers.forwarding.owes
        self.topics.before_read = self.routers.forwarding.catch_up
        self.topics.on_removal = self.routers.topic_removed
        self.slots = StreamSlots(settings.max_sse_connections, settings.max_sse_connections_per_key)
        self.watches = Watches(
            self.topics,
            hub,
            clock,
            random_bytes=secrets.token_bytes,
            slots=self.slots,
            sessions_max=settings.max_watch_sessions,
            keep=settings.engine != "memory",
        )
        self._watch_routes = WatchRoutes(self.watches, keys, clock, body_bytes_max=settings.max_body_bytes)
        self.queues = Queues(self.topics, hub, clock)
        self._queue_routes = QueueRoutes(self.queues, hub, self.slots, clock, body_bytes_max=settings.max_body_bytes)
        self.topics.queue_facts = self.queues.facts
        self.topics.on_change = self.watches.topic_changed
        self.topics.on_deletion = self._records_deleted
        sights = Sights(
            readiness=readiness,
            routers=lambda: len(self.routers.roster),
            leases=lambda: self.queues.in_flight,
            jobs=self.queues.standing_now,
            connections=lambda: self.slots.open,
            sessions=lambda: len(self.watches.sessions),
        )
        self._probes = Probes(self.topics, sights, metrics, clock, guarded=settings.probe_auth)

    def table(self) -> list[Route]:
        """The surface's rows of the route table."""
        return [
            *self._routes.table(),
            *self._watch_routes.table(),
            *self._router_routes.table(),
            *self._queue_routes.table(),
            *self._probes.table(),
        ]

    def _records_deleted(self, stream: str) -> None:
        self.queues.records_deleted(stream)
        self.routers.forwarding.room_made(stream)

    def start(self) -> None:
        self.watches.start()
        self.queues.start()
        self.routers.forwarding.start()
        self._tasks.append(supervise("topics.load", self.topics.load))
        self._tasks.append(supervise("topics.routers", self.routers.settle))

    async def drain(self) -> None:
        """Whoever waits is answered, and nothing runs by itself any longer. May be called again."""
        self.topics.close()
        await self.watches.drain()
        await self.queues.drain()
        await self.routers.forwarding.drain()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
