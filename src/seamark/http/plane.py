"""The data plane as a whole: what its connections share, how many there are, and how long each may take."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seamark import limits
from seamark.http.connection import PlaneProtocol
from seamark.http.front import Front
from seamark.http.heads import Heads
from seamark.http.ordered import OrderedProtocol, Phase
from seamark.http.transport_pipe import TransportPipe
from seamark.telemetry import events, logs

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


_AT_A_TIME = 1_000  # connections inspected before the loop has its turn again: well under a millisecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the plane waits, and for how many. The defaults are the bounds; tests ask for less."""

    keep_alive_seconds: float = limits.KEEP_ALIVE_SECONDS
    header_seconds: float = limits.HEADER_SECONDS
    body_grace_seconds: float = limits.BODY_GRACE_SECONDS
    body_bytes_per_second: float = limits.BODY_BYTES_PER_SECOND_MIN
    write_stall_seconds: float = limits.WRITE_STALL_SECONDS
    linger_seconds: float = limits.LINGER_SECONDS
    round_seconds: float = 1.0
    connections_max: int = limits.CONNECTIONS_MAX


class Plane:
    """Give `protocol` to uvicorn as its `http` class. One plane serves one event loop."""

    def __init__(self, front: Front, *, patience: Patience | None = None) -> None:
        self.front = front
        self.heads = Heads()
        self.patience = patience or Patience()
        self.draining = False
        self.now = 0.0  # monotonic, refreshed each round: deadlines need no better
        self.date_line = b""
        self.connections: set[OrderedProtocol] = set()
        self.pipes: set[TransportPipe] = set()
        self.body_bytes = 0  # of bodies that arrive in several parts, over all connections
        self._made_with: tuple[Config, ServerState, dict[str, Any]] | None = None  # the same for all of a server
        self._closing: dict[TransportPipe, tuple[float, int]] = {}
        self._round: asyncio.Handle | None = None
        self._log = logs.logger("http")
        open_now = front.metrics.gauge("seamark_http_connections")
        front.metrics.on_scrape(lambda: setattr(open_now, "value", self.open))

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> PlaneProtocol:
        """What uvicorn calls for every connection."""
        self._made_with = (config, server_state, app_state)
        return PlaneProtocol(self, config, server_state, app_state, _loop)

    @property
    def open(self) -> int:
        """Connections of every kind."""
        return len(self.connections) + len(self.pipes)

    def join(self, connection: OrderedProtocol) -> bool:
        """Count a new connection in. False: there is no room for it."""
        if self._round is None:
            self._begin_round(asyncio.get_running_loop())
        fits = self.open < self.patience.connections_max
        self.connections.add(connection)
        if not fits:
            self.refused("too_many_connections")
        return fits

    @property
    def crowded(self) -> bool:
        """Even those who are told that there is no room have become too many."""
        return self.open > self.patience.connections_max + limits.CONNECTIONS_REFUSED_MAX

    def leave(self, connection: OrderedProtocol) -> None:
        self.connections.discard(connection)

    def refused(self, code: str) -> None:
        """Counted for everybody; told in the log only to those who look closely, or strangers could fill it."""
        self._log.debug(events.CONNECTION_REFUSED, reason=code)
        self.front.metrics.counter("seamark_http_refused_total", code).value += 1

    # -- PipeHost
    def pipe_opened(self, pipe: TransportPipe) -> None:
        self.pipes.add(pipe)

    def pipe_over(self, pipe: TransportPipe, transport: asyncio.Transport) -> bool:
        if self.draining or self._made_with is None:
            return False
        self.pipe_lost(pipe)
        connection = self.protocol(*self._made_with)
        transport.set_write_buffer_limits()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if connection.phase is Phase.FRESH:
            connection.phase = Phase.IDLE  # it owes nothing
        return True

    def pipe_closing(self, pipe: TransportPipe) -> None:
        self._closing[pipe] = (self.now, pipe.buffered)

    def pipe_lost(self, pipe: TransportPipe) -> None:
        self.pipes.discard(pipe)
        self._closing.pop(pipe, None)

    # -- ending
    def drain(self) -> None:
        """From now on every answer is its connection's last. Streams are their owners' to close."""
        self.draining = True
        for connection in list(self.connections):
            connection.shutdown()

    def cut(self) -> int:
        """Abort whatever is still open. How many that were."""
        count = self.open
        for connection in list(self.connections):
            connection.abort()
        for pipe in list(self.pipes):
            pipe.abort()
        return count

    # -- the round: once a second, everybody's deadline
    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = self.front.clock.monotonic()
        self.date_line = b"Date: %b\r\n" % self.front.date()
        self._round = loop.call_later(self.patience.round_seconds, self._end_round, loop)

    def _end_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = self.front.clock.monotonic()
        self._inspect(loop, list(self.connections))

    def _inspect(self, loop: asyncio.AbstractEventLoop, left: list[OrderedProtocol]) -> None:
        """Some of the connections, then others have their turn before the rest."""
        for connection in left[-_AT_A_TIME:]:
            try:
                connection.inspect(self.now)
            except Exception as error:  # one broken connection must not end the rounds of all the others
                self._log.error(events.TASK_FAILED, task="plane.round", exc_info=error)
                connection.abort()
        del left[-_AT_A_TIME:]
        if left:
            self._round = loop.call_soon(self._inspect, loop, left)
            return
        self._round = None
        self._cut_stuck_pipes()
        if self.open:
            self._begin_round(loop)

    def _cut_stuck_pipes(self) -> None:
        """A closed pipe whose peer takes nothing any more would stay for ever."""
        for pipe, (since, buffered) in list(self._closing.items()):
            left = pipe.buffered
            if left < buffered:
                self._closing[pipe] = (self.now, left)
            elif self.now - since > self.patience.linger_seconds:
                pipe.abort()
