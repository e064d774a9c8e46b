"""The engine behind routers: hears what is written to sources, and lets each router that it concerns take a step.

A few workers serve all routers, in the order in which these have something to do; a step is bounded, and a router with more
to do queues up again behind the others. Nothing is polled. A router that cannot go on (its dest is full or missing, or the
store takes no writes) keeps its place and is tried again when its dest has news, when somebody reads the dest, and after a
pause that grows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from seamark import limits
from seamark.errors import SeamarkError, StreamNotFound
from seamark.log.protocol import Log, News, ReadsNow, StreamState
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.telemetry.metrics import Metrics
from seamark.telemetry.supervise import supervise
from seamark.topics.feed import Feed
from seamark.topics.model import stream_of
from seamark.topics.router_rows import Place
from seamark.topics.routers import Router

_PAUSE_SECONDS = 0.1

_log = logger("topics")


class Job:
    """A feed, and how it stands in the queue."""

    __slots__ = ("again", "failures", "feed", "held", "queued", "running", "timer", "waiters")

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.queued = False
        self.running = False
        self.again = False  # there was news while it ran
        self.held = False  # it is being changed, or is gone
        self.failures = 0
        self.timer: asyncio.TimerHandle | None = None
        self.waiters: list[tuple[Callable[[Feed], bool], asyncio.Future[None]]] = []

    @property
    def name(self) -> str:
        return self.feed.router.name

    def let_go(self, *, all_of_them: bool) -> None:
        """Those who waited for what has come about; or everybody, because no more will for now."""
        waiting, self.waiters = self.waiters, []
        for reached, future in waiting:
            if future.done():
                continue
            if all_of_them or reached(self.feed):
                future.set_result(None)
            else:
                self.waiters.append((reached, future))


class Forwarding:
    """All routers at work. Make it inside the running loop; `start` it, and `drain` it before the log is closed."""

    def __init__(self, log: Log, metrics: Metrics) -> None:
        self._log = log
        self._reads: ReadsNow | None = log if isinstance(log, ReadsNow) else None
        self._metrics = metrics
        self._jobs: dict[str, Job] = {}
        self._from: dict[str, dict[str, Job]] = {}  # by stream
        self._into: dict[str, dict[str, Job]] = {}
        self._queue: deque[Job] = deque()
        self._waiting = asyncio.Semaphore(0)  # as many as there are in the queue
        self._workers: list[asyncio.Task[None]] = []
        self._unsubscribe = log.wakeup.subscribe(self._hear)
        metrics.on_scrape(lambda: self._measure(metrics))

    def start(self) -> None:
        if not self._workers:
            self._workers = [supervise("routers", self._work) for _ in range(limits.ROUTERS_AT_WORK_MAX)]

    async def drain(self) -> None:
        """Nothing is forwarded any more, and nobody waits for it. May be called again."""
        self._unsubscribe()
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        for worker in workers:
            with suppress(asyncio.CancelledError):
                await worker
        for job in self._jobs.values():
            self._rest(job)

    # -- which routers there are

    def add(self, router: Router, place: Place) -> None:
        """It goes on from its place at once."""
        job = Job(Feed(self._log, self._metrics, router, place))
        self._jobs[router.name] = job
        self._from.setdefault(job.feed.source, {})[router.name] = job
        self._into.setdefault(job.feed.dest, {})[router.name] = job
        self._ready(job)

    def remove(self, name: str) -> None:
        """Only while it is held."""
        job = self._jobs.pop(name)
        assert job.held
        assert not job.running
        for index, stream in ((self._from, job.feed.source), (self._into, job.feed.dest)):
            del index[stream][name]
            if not index[stream]:
                del index[stream]
        self._rest(job)

    def feed(self, name: str) -> Feed:
        return self._jobs[name].feed

    @asynccontextmanager
    async def held(self, names: Iterable[str]) -> AsyncIterator[None]:
        """While these routers stand still: no copy and no place of theirs is on its way to the store."""
        jobs = [self._jobs[name] for name in names]
        for job in jobs:
            job.held = True
        try:
            for job in jobs:
                while job.running:
                    await self._wait(job, lambda feed: False)
            yield
        finally:
            for job in jobs:
                if job.name in self._jobs:
                    job.held = False
                    self._ready(job)

    def room_made(self, stream: str) -> None:
        """Something of this stream is gone by request: those that wait for room in it need not wait longer."""
        for job in self._into.get(stream, {}).values():
            if job.failures:
                self._ready(job)

    # -- read your writes

    def owes(self, topic: str) -> bool:
        """Whether routers may still have something for this topic. Cheap for one that none leads to."""
        if stream_of(topic) not in self._into:
            return False
        if self._reads is None:
            return True
        return any(not self._is_level(job, self._reads) for job in self._upstream(topic))

    async def catch_up(self, topic: str) -> None:
        """Return when all that is now in the sources of a topic has come to it, also by way of others; or as much as
        can for now."""
        for job in self._upstream(topic):
            await self.reach(job.name)

    async def reach(self, name: str) -> None:
        """The same of one router."""
        job = self._jobs.get(name)
        if job is None or not self._workers:
            return
        try:
            state = await self._log.state(job.feed.source)
        except SeamarkError:
            return  # whatever it is, reading the dest is not the place to say so
        if not job.feed.reaches(state) and not job.held:
            wait = self._wait(job, _reached(state))
            self._ready(job, urgent=True)
            await wait

    def _upstream(self, topic: str) -> list[Job]:
        """All routers on the way to a topic, each after those that feed its source; of a circle, every router once."""
        found: list[Job] = []
        seen = {stream_of(topic)}
        ahead: list[Job | str] = [stream_of(topic)]
        while ahead:
            here = ahead.pop()
            if isinstance(here, Job):
                found.append(here)
                continue
            jobs = [*self._into.get(here, {}).values()]
            ahead += jobs
            for source in {job.feed.source for job in jobs} - seen:
                seen.add(source)
                ahead.append(source)
        return found

    def _is_level(self, job: Job, reads: ReadsNow) -> bool:
        try:
            return job.feed.reaches(reads.state_now(job.feed.source))
        except StreamNotFound:
            return True

    # -- the queue

    def _hear(self, news: Sequence[News]) -> None:
        for one in news:
            if one.dropped:
                continue
            if one.stream in self._from and one.visible:
                for job in self._from[one.stream].values():
                    self._ready(job)
            self.room_made(one.stream)  # or the dest is there again

    def _ready(self, job: Job, *, urgent: bool = False) -> None:
        """It has something to do. Urgent is what a reader waits for."""
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None
        if job.running:
            job.again = True
        elif not job.held and not job.queued:
            job.queued = True
            (self._queue.appendleft if urgent else self._queue.append)(job)
            self._waiting.release()

    async def _work(self) -> None:
        while True:
            await self._waiting.acquire()
            job = self._queue.popleft()
            job.queued = False
            if job.held:
                continue
            job.running = True
            job.again = more = False
            try:
                more = await job.feed.step()
                self._went_on(job)
            except Exception as error:
                self._stopped(job, error)
            finally:
                job.running = False
                more = more or job.again
                job.let_go(all_of_them=job.held or not more or job.failures > 0)
                if more:
                    self._ready(job)

    def _went_on(self, job: Job) -> None:
        if job.failures:
            job.failures = 0
            _log.info(events.ROUTER_RESUMED, router=job.name)

    def _stopped(self, job: Job, error: Exception) -> None:
        """It keeps its place. A topic that is not there comes with news; for all else there is another try before long."""
        if not job.failures:
            unforeseen = None if isinstance(error, SeamarkError) else error
            _log.warning(events.ROUTER_WAITS, router=job.name, error=str(error), exc_info=unforeseen)
        job.failures += 1
        if not isinstance(error, StreamNotFound) and job.timer is None:
            pause = min(_PAUSE_SECONDS * 2 ** min(job.failures, 16), limits.ROUTER_RETRY_SECONDS_MAX)
            job.timer = asyncio.get_running_loop().call_later(pause, self._ready, job)

    def _wait(self, job: Job, reached: Callable[[Feed], bool]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        job.waiters.append((reached, future))
        return future

    def _rest(self, job: Job) -> None:
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None
        job.let_go(all_of_them=True)

    def _measure(self, metrics: Metrics) -> None:
        metrics.gauge("seamark_topics_routers").value = len(self._jobs)
        metrics.gauge("seamark_topics_routers_waiting").value = sum(job.failures > 0 for job in self._jobs.values())


def _reached(state: StreamState) -> Callable[[Feed], bool]:
    return lambda feed: feed.reaches(state)
