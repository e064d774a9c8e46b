"""The notify surface, put together: every part is made here, and knows of the others only what it is given here."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import seamark
from seamark.clock import Clock
from seamark.log.protocol import Log
from seamark.notify.admin import AdminRoutes
from seamark.notify.gate import Gatekeeper
from seamark.notify.measures import Measures, mirror_http
from seamark.notify.options import NotifySettings
from seamark.notify.routes import NotifyRoutes
from seamark.notify.service import Notifications
from seamark.notify.watch import Streams
from seamark.stream.hub import Hub
from seamark.telemetry.metrics import Metrics
from seamark.telemetry.supervise import supervise
from seamark.wire.exchange import Route

PROBES = {"/health": "GET", "/ready": "GET"}  # of the server, and of the contract


class NotifySurface:
    """Make it inside the running loop. `start` makes the streams of the schema, `drain` ends that."""

    def __init__(
        self, log: Log, hub: Hub, *, options: NotifySettings, gate: Gatekeeper, clock: Clock, metrics: Metrics
    ) -> None:
        """Raises BadConfig."""
        measures = Measures(metrics, options.schema, backend=options.backend, version=seamark.__version__)
        self.notifications = Notifications(log, options)
        streams = Streams(self.notifications, hub, options=options, measures=measures, clock=clock)
        self._gate = gate
        self._rows = [
            *NotifyRoutes(self.notifications, streams, gate=gate, measures=measures, clock=clock).table(),
            *AdminRoutes(self.notifications, gate=gate, measures=measures, clock=clock).table(),
        ]
        methods = {row.path: row.method for row in self._rows} | PROBES
        metrics.on_scrape(lambda: mirror_http(metrics, methods))
        self._task: asyncio.Task[None] | None = None

    def table(self) -> list[Route]:
        """The surface's rows of the route table."""
        return self._rows

    def start(self) -> None:
        self._task = supervise("notify.prepare", self.notifications.prepare)

    def unprepared(self) -> str | None:
        """For readiness: None once every event type has its stream."""
        return None if self.notifications.prepared else "the streams of event types are being made"

    async def drain(self) -> None:
        """May be called again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self._gate.close()
