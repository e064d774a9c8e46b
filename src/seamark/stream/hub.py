"""The hub: hears the log's news and hands it to the channels, at the end of each turn of the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from seamark.errors import Busy, ShuttingDown
from seamark.limits import SESSIONS_MAX
from seamark.log.protocol import Log, News, ReadsNow
from seamark.stream.burst import Manner, manner_of
from seamark.stream.channel import Channel
from seamark.stream.dialect import Close, Dialect
from seamark.stream.leg import Leg
from seamark.stream.pipe import Block
from seamark.stream.wheel import Wheel
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from seamark.stream.session import Session

_BLOCKS_KEPT_MAX = 64
_MANNERS_KEPT_MAX = 64

_log = logger("stream")


class Hub:
    """All live streams of one process. Make it inside the running loop; `close` it with the log."""

    def __init__(self, log: Log, wheel: Wheel, metrics: Metrics) -> None:
        self.log = log
        self.reads_now: ReadsNow | None = log if isinstance(log, ReadsNow) else None
        self.wheel = wheel
        self.metrics = metrics
        self.sessions: set[Session] = set()
        self.draining = False
        self.deliveries = metrics.counter("seamark_stream_deliveries_total", "live")
        self.history_deliveries = metrics.counter("seamark_stream_deliveries_total", "history")
        self.lagging = metrics.gauge("seamark_stream_lagging")
        self._loop = asyncio.get_running_loop()
        self._channels: dict[tuple[str, bool], Channel] = {}
        self._dirty: list[Channel] = []
        self._scheduled = False
        self._blocks: dict[bytes, Block] = {}
        self._manners: dict[tuple[type, Hashable], Manner] = {}
        self._unsubscribe = log.wakeup.subscribe(self._hear)

    def admit(self) -> None:
        """Ask before a stream's body is begun. Raises ShuttingDown or Busy."""
        if self.draining:
            raise ShuttingDown("the server is stopping", retry_after_seconds=2)
        if len(self.sessions) >= SESSIONS_MAX:
            raise Busy("too many open streams", limit="SESSIONS_MAX", max=SESSIONS_MAX, retry_after_seconds=5)

    def drain(self, reason: Close = Close.SHUTDOWN) -> int:
        """End every stream with its surface's closing event; no new ones are admitted. Returns how many there were."""
        self.draining = True
        sessions = list(self.sessions)
        for session in sessions:
            session.close(reason)
        return len(sessions)

    def close(self) -> None:
        """Drain, and stop listening to the log."""
        self.drain()
        self._unsubscribe()

    def block(self, raw: bytes) -> Block:
        """The one block for bytes that many sessions say (a heartbeat), framed once."""
        block = self._blocks.get(raw)
        if block is None:
            if len(self._blocks) >= _BLOCKS_KEPT_MAX:
                self._blocks.clear()
            block = self._blocks[raw] = Block(raw)
        return block

    def manner(self, dialect: Dialect) -> Manner:
        """Found out once for a projection: what an object is capable of takes long to ask, and readers come in thousands."""
        key = (type(dialect), dialect.projection)
        manner = self._manners.get(key)
        if manner is None:
            if len(self._manners) >= _MANNERS_KEPT_MAX:
                self._manners.clear()
            manner = self._manners[key] = manner_of(dialect)
        return manner

    # -- for channels and sessions

    def attach(self, leg: Leg) -> None:
        key = (leg.stream, leg.synced)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = Channel(self, leg.stream, leg.synced)
        channel.attach(leg)

    def forget_channel(self, channel: Channel) -> None:
        key = (channel.stream, channel.synced)
        if self._channels.get(key) is channel:
            del self._channels[key]

    def mark(self, channel: Channel) -> None:
        """There is something to flush: with the news that is being heard, or else in the next tick."""
        if not channel.dirty:
            channel.dirty = True
            self._dirty.append(channel)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _hear(self, news: Sequence[News]) -> None:
        """Flush at once: the writer's turn has gathered all that arrived in this tick, and waiting for the next one
        would only split what belongs together over two writes (docs/performance.md)."""
        scheduled, self._scheduled = self._scheduled, True
        channels = self._channels
        try:
            for one in news:
                for synced in (False, True):
                    channel = channels.get((one.stream, synced))
                    if channel is not None:
                        channel.hear(one)
        finally:
            if self._dirty:
                self._flush()
            else:
                self._scheduled = scheduled

    def _flush(self) -> None:
        self._scheduled = False
        dirty, self._dirty = self._dirty, []
        for channel in dirty:
            channel.dirty = False
            try:
                channel.flush()
            except Exception:
                _log.error(events.FANOUT_FAILED, stream=channel.stream, exc_info=True)
