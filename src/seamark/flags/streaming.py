"""Event streams and the closures that they lead to, put together."""

from __future__ import annotations

import secrets
from pathlib import Path

from seamark.clock import Clock
from seamark.config import Settings
from seamark.flags.caller import Callers
from seamark.flags.closure_routes import ClosureRoutes
from seamark.flags.deltas import Deltas
from seamark.flags.directory import Directory
from seamark.flags.event_routes import EventRoutes
from seamark.flags.links import Base
from seamark.flags.script import Voice
from seamark.flags.signing import KEY_BYTES, KEY_FILE, Signer, key_in
from seamark.flags.tars import Tars
from seamark.flags.versions import Versions
from seamark.flags.watch import EventStreams
from seamark.log.protocol import Log
from seamark.stream.hub import Hub
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Route


class Streaming:
    def __init__(
        self,
        log: Log,
        hub: Hub,
        versions: Versions,
        *,
        directory: Directory,
        callers: Callers,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        key: bytes,
    ) -> None:
        """`key` signs addresses of closures."""
        signer = Signer(key, clock)
        self.tars = Tars(versions, metrics)
        self.deltas = Deltas(versions, self.tars, metrics, files_max=settings.flags_inline_files)
        self.voice = Voice(versions, self.deltas, self.tars, metrics)
        self.streams = EventStreams(
            log,
            hub,
            versions,
            self.voice,
            directory=directory,
            clock=clock,
            keepalive_seconds=settings.flags_keepalive_seconds,
        )
        base = Base(
            public_url=settings.public_url,
            scheme="https" if settings.tls_cert else "http",
            listening=f"{settings.host}:{settings.port}",
        )
        events = EventRoutes(
            self.streams, self.voice, directory=directory, callers=callers, signer=signer, base=base, metrics=metrics
        )
        closures = ClosureRoutes(versions, self.tars, directory=directory, callers=callers, signer=signer, clock=clock)
        self._rows = [*events.table(), *closures.table()]

    def table(self) -> list[Route]:
        return self._rows


def signing_key(settings: Settings) -> bytes:
    """Where nothing outlives the process, its addresses need not either. Raises BadConfig."""
    path: Path | None = settings.signing_key
    if path is None and settings.engine == "embedded":
        path = settings.data / KEY_FILE
    return secrets.token_bytes(KEY_BYTES) if path is None else key_in(path, secrets.token_bytes)
