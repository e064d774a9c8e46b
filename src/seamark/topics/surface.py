"""The topics surface, put together: every part is made here, and knows of the others only what it is given here."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from seamark.access.keys import KeyRing
from seamark.clock import Clock
from seamark.config import Settings
from seamark.log.protocol import Log
from seamark.stream.hub import Hub
from seamark.telemetry.metrics import Metrics
from seamark.telemetry.supervise import supervise
from seamark.topics import docs
from seamark.topics.routes import TopicRoutes
from seamark.topics.service import Topics
from seamark.wire.exchange import Route

OPERATIONS = {**docs.OPERATIONS}


class TopicsSurface:
    """Make it inside the running loop. `start` begins what runs by itself, `drain` ends it."""

    def __init__(
        self, log: Log, hub: Hub, *, keys: KeyRing, clock: Clock, metrics: Metrics, settings: Settings
    ) -> None:
        self.topics = Topics(log, clock, topics_max=settings.max_topics)
        self._tasks: list[asyncio.Task[None]] = []
        self._routes = TopicRoutes(self.topics, clock, body_bytes_max=settings.max_body_bytes)

    def table(self) -> list[Route]:
        """The surface's rows of the route table."""
        return [*self._routes.table()]

    def start(self) -> None:
        self._tasks.append(supervise("topics.load", self.topics.load))

    async def drain(self) -> None:
        """Whoever waits is answered, and nothing runs by itself any longer. May be called again."""
        self.topics.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
