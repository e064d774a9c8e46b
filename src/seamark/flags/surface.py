"""The flags surface, put together: every part is made here, and knows of the others only what it is given here."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from seamark.clock import Clock
from seamark.config import Settings
from seamark.flags import audit, docs, manifest_docs, superadmin, watch_docs
from seamark.flags.audit_routes import AuditRoutes
from seamark.flags.caller import Callers
from seamark.flags.directory import Directory
from seamark.flags.evaluate_routes import EvaluateRoutes
from seamark.flags.manifest_routes import ManifestRoutes
from seamark.flags.namespace_routes import NamespaceRoutes
from seamark.flags.streaming import Streaming
from seamark.flags.table import Operation
from seamark.flags.tenant_routes import TenantRoutes
from seamark.flags.token_routes import TokenRoutes
from seamark.flags.upload import Uploads
from seamark.flags.versions import Versions
from seamark.log.protocol import Log
from seamark.stream.hub import Hub
from seamark.telemetry.metrics import Metrics
from seamark.telemetry.supervise import supervise
from seamark.wire.exchange import Route

REALMS = tuple(f"/api/v1/{word}" for word in ("tenants", "namespaces", "tokens", "events", "audit"))

OPERATIONS: dict[tuple[str, str], Operation] = {
    **docs.OPERATIONS,
    **manifest_docs.OPERATIONS,
    **watch_docs.OPERATIONS,
}


class FlagsSurface:
    """Make it inside the running loop. `start` loads what is kept, `drain` ends what runs by itself."""

    def __init__(
        self,
        log: Log,
        hub: Hub,
        *,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        signing_key: bytes,
        superadmin_secret: str | None = None,
    ) -> None:
        self.directory = Directory(log, clock)
        self.callers = Callers(self.directory, metrics)
        self.versions = Versions(log, clock)
        self.streaming = Streaming(
            log,
            hub,
            self.versions,
            directory=self.directory,
            callers=self.callers,
            clock=clock,
            metrics=metrics,
            settings=settings,
            key=signing_key,
        )
        self._debts = audit.Debts(log)
        self.uploads = Uploads()
        manifests = ManifestRoutes(
            self.versions,
            self.streaming.tars,
            uploads=self.uploads,
            debts=self._debts,
            callers=self.callers,
            metrics=metrics,
        )
        self._superadmin_secret = superadmin_secret
        self._loaded = False
        self._task: asyncio.Task[None] | None = None
        self._rows = [
            *TenantRoutes(self.directory, self.callers, clock).table(),
            *NamespaceRoutes(self.directory, self.callers, clock, head=self.versions.head).table(),
            *TokenRoutes(self.directory, self.callers).table(),
            *AuditRoutes(log, self.callers).table(),
            *self.streaming.table(),
            *manifests.table(),
            *EvaluateRoutes(self.versions, self.directory, self.callers, metrics).table(),
        ]
        metrics.on_scrape(lambda: self.directory.measure(metrics))

    def table(self) -> list[Route]:
        """The surface's rows of the route table."""
        return self._rows

    def start(self) -> None:
        self._task = supervise("flags.load", self._load)

    def unloaded(self) -> str | None:
        """For readiness: None once tenants and tokens are known."""
        return None if self._loaded else "tenants and tokens are being loaded"

    async def drain(self) -> None:
        """May be called again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.directory.close()

    async def _load(self) -> None:
        if self.directory.loading:
            await self._debts.settle()
            await self.directory.load()
        if self._superadmin_secret is not None and self.directory.usable:
            await superadmin.adopt(self.directory, self._superadmin_secret)
        self._loaded = True


def superadmin_secret(path: Path | None) -> str | None:
    """What the setting says, before anything is opened. Raises BadConfig."""
    return None if path is None else superadmin.secret_in(path)
