"""Topics with routers between them, on a log and without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from seamark.clock import ManualClock
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Log, Receipt
from seamark.log.record import Draft, Record
from seamark.log.watermarks import Gap
from seamark.telemetry.metrics import Metrics
from seamark.testing.reading import Reading, read_all
from seamark.topics.model import DEFAULT_SETTINGS, TopicConfig, stream_of
from seamark.topics.router_book import RouterBook
from seamark.topics.routers import Guarantee, Router
from seamark.topics.service import Topics


class Routed:
    """One life of a process over a log. `open` it inside a running loop, and `close` it there."""

    def __init__(self, log: Log, clock: ManualClock, *, routers_max: int = 0) -> None:
        self.log = log
        self.clock = clock
        self.topics = Topics(log, clock)
        self.book = RouterBook(self.topics, Metrics(), routers_max=routers_max)
        self.forwarding = self.book.forwarding
        self.forwarding.start()

    async def close(self, *, log: bool = True) -> None:
        self.topics.close()
        await self.forwarding.drain()
        if log:
            await self.log.close()

    async def route(self, name: str, source: str, dest: str, **more: object) -> bool:
        guarantee = Guarantee(str(more.pop("guarantee", Guarantee.AT_LEAST_ONCE)))
        router = Router(name=name, source=source, dest=dest, guarantee=guarantee, **more)  # type: ignore[arg-type]
        return await self.book.put(router, create_dest=True)

    async def configure(self, topic: str, **settings: object) -> None:
        await self.topics.configure(topic, msgspec.convert(settings, TopicConfig))

    async def write(self, topic: str, *texts: str, **fields: object) -> Receipt:
        drafts = [Draft(text.encode(), **fields) for text in texts]  # type: ignore[arg-type]
        return await self.log.append(Append(stream=stream_of(topic), drafts=drafts, create=DEFAULT_SETTINGS))

    async def read(self, topic: str) -> Reading:
        """As a reader finds it, who sees what was written before."""
        await self.forwarding.catch_up(topic)
        return await read_all(self.log, stream_of(topic))

    async def records(self, topic: str) -> list[Record]:
        return (await self.read(topic)).records

    async def texts(self, topic: str) -> list[str]:
        return [record.payload.decode() for record in await self.records(topic)]

    async def gaps(self, topic: str) -> list[Gap]:
        return (await self.read(topic)).gaps

    def forwarded(self, name: str) -> int:
        return self.book.get(name).forwarded


class KeptStore(MemoryStore):
    """Outlives the logs that are opened over it; refuses writes while `ill`."""

    durable = True

    def close(self) -> None:
        """What it holds stays, for the next log."""


@asynccontextmanager
async def routed() -> AsyncIterator[Routed]:
    clock = ManualClock()
    life = Routed(LocalLog(KeptStore(), clock, Metrics(), ephemeral=MemoryStore()), clock)
    try:
        yield life
    finally:
        await life.close()
