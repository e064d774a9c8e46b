"""All queues of one log: which there are, who is claiming, who is connected, and what becomes of them when they go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

from seamark.clock import Clock
from seamark.errors import SeamarkError
from seamark.log.protocol import Append, News, Shelf, StreamState
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.pipe import Pipe
from seamark.telemetry.supervise import supervise
from seamark.topics import dead_letters, lease_rows
from seamark.topics.cohort import Cohort
from seamark.topics.model import PREFIX, TopicConfig, config_of, stream_of
from seamark.topics.queue import Job, Queue, Standing, Want, not_a_queue
from seamark.topics.service import Topics
from seamark.topics.work import Crew, Render, WorkStream


class _Desk:
    """One queue with those who come to it."""

    def __init__(self, queue: Queue, crew: Crew, cohort: Cohort) -> None:
        self.queue = queue
        self.crew = crew
        self.cohort = cohort


class Queues:
    """A queue is looked up by the name of its topic. A table is made when a queue is first asked for something."""

    def __init__(self, topics: Topics, hub: Hub, clock: Clock) -> None:
        self._topics = topics
        self._log = topics.log
        self._hub = hub
        self._clock = clock
        self._desks: dict[str, _Desk] = {}
        self._owners = count(1)
        self._finishing: asyncio.Task[None] | None = None
        self._unsubscribe = self._log.wakeup.subscribe(self._hear)

    def start(self) -> None:
        """Finish what the last process had begun."""
        if isinstance(self._log, Shelf) and (streams := list(dead_letters.interrupted(self._log))):
            self._finishing = supervise("dead letters", lambda: self._finish(streams))

    async def drain(self) -> None:
        """Streams are told that the server stops, and claimers that wait for others are served now."""
        self._unsubscribe()
        for desk in self._desks.values():
            desk.crew.end(Close.SHUTDOWN)
            desk.cohort.close()
        if self._finishing is not None:
            self._finishing.cancel()
            with suppress(asyncio.CancelledError):
                await self._finishing

    # -- what clients do

    async def open(self, name: str, *, catch_up: bool = False) -> Queue:
        """The queue as it is now; with `catch_up` what routers owe it is there. Raises StreamNotFound, NotAQueue."""
        return (await self._open(name, catch_up)).queue

    async def claim(self, name: str, want: Want) -> tuple[list[Job], Standing]:
        """Jobs for one claimer. With a window, together with the others that come in it."""
        desk = await self._open(name, True)
        if desk.queue.config.claim_jitter_ms:
            jobs = await desk.cohort.claim(want)
        else:
            jobs = (await desk.queue.take([want]))[0]
        return jobs, await self.standing(desk.queue)

    async def work(
        self, name: str, want: Want, render: Render, pipe: Callable[[], Pipe], on_close: Callable[[], None]
    ) -> None:
        """Begin a work stream; `pipe` is called when nothing can be refused any more."""
        desk = await self._open(name, True)
        want = Want(want.node, want.most, want.lease_ms, next(self._owners))
        WorkStream(desk.crew, pipe(), want, render, on_close=on_close).open()

    # -- what is told of them

    async def standing(self, queue: Queue) -> Standing:
        return queue.standing(await self._log.state(queue.stream))

    async def facts(self, state: StreamState) -> dict[str, int]:
        """What the state of a topic says of its jobs."""
        queue = self._desk(state).queue
        return queue.standing(await queue.refresh(state))._asdict()

    def standing_now(self, state: StreamState) -> Standing:
        """The same for a scrape, without a look at the log. A queue that nobody asked for anything is not opened for it,
        unless it may have leases from before this process."""
        desk = self._desks.get(state.name)
        known = desk is not None and desk.queue.instance == state.instance
        if not known and not config_of(state.settings).leases_durable:
            return Standing(state.count, 0, 0)
        return self._desk(state).queue.standing(state)

    @property
    def in_flight(self) -> int:
        """Leases of all queues."""
        return sum(desk.queue.leases.in_flight for desk in self._desks.values())

    def records_deleted(self, stream: str) -> None:
        """Some of its records are gone, by request; jobs may be among them that somebody holds."""
        desk = self._desks.get(stream)
        if desk is not None:
            desk.queue.unsure = True
            desk.crew.wake()

    # -- inside

    async def _open(self, name: str, catch_up: bool) -> _Desk:
        if catch_up and self._topics.derived(name):
            await self._topics.before_read(name)
        state = await self._log.state(stream_of(name))
        desk = self._desk(state)
        await desk.queue.refresh(state)
        return desk

    def _desk(self, state: StreamState) -> _Desk:
        desk = self._desks.get(state.name)
        if desk is not None and desk.queue.instance == state.instance:
            return desk
        if not config_of(state.settings).is_queue:
            raise not_a_queue(state.name)
        queue = Queue(self._log, self._clock, state, self._ensure)
        desk = _Desk(queue, Crew(queue, self._hub), Cohort(queue, self._hub.wheel))
        self._desks[state.name] = desk
        return desk

    async def _ensure(self, name: str) -> None:
        await self._topics.ensure(name, TopicConfig())

    async def _finish(self, streams: Sequence[str]) -> None:
        for stream in streams:
            with suppress(SeamarkError):
                desk = self._desk(await self._log.state(stream))
                await desk.queue.finish_moves()

    def _hear(self, news: Sequence[News]) -> None:
        for one in news:
            if one.dropped and one.stream.startswith(PREFIX):
                self._close(one.stream)
            elif one.visible and (desk := self._desks.get(one.stream)) is not None:
                desk.crew.wake()

    def _close(self, stream: str) -> None:
        """The topic is gone, and so is everything that was kept of it as a queue."""
        desk = self._desks.pop(stream, None)
        if desk is not None:
            desk.crew.end(Close.DROPPED)
            desk.cohort.close()
        if isinstance(self._log, Shelf):
            puts = [*lease_rows.forget(self._log, stream), *dead_letters.forget(self._log, stream)]
            if puts:
                self._log.writer.submit(Append(puts=puts), lambda outcome: None)
