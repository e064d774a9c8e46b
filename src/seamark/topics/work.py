"""Work streams: a connection that is given jobs as long as it holds fewer than it may, instead of asking for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from seamark.errors import Conflict, Missing
from seamark.limits import CLOSE_LINGER_SECONDS_MAX, HEARTBEAT_SPREAD_PERCENT
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.pipe import Block, Pipe
from seamark.stream.stall import Stall
from seamark.stream.wheel import Timer
from seamark.telemetry.supervise import supervise
from seamark.topics.queue import Job, Queue, Want
from seamark.topics.render import ENCODER

HEARTBEAT_SECONDS = 15.0
RETRY_MS = 2_000
BATCH_JOBS = 64  # to one stream before the others have their turn
_SURFACE = "topics work"
_OPENING = b"retry: %d\n\n" % RETRY_MS
_HEARTBEAT = b": hb\n\n"
_MS_PER_SECOND = 1_000


def _ending(code: int, error: str, message: str, **more: int) -> bytes:
    body = {"code": code, "error": error, "message": message, **more}
    return b"event: error\ndata: %b\n\n" % ENCODER.encode(body)


_ENDINGS = {
    Close.SHUTDOWN: _ending(503, "shutting_down", "the server is stopping", retry_after_ms=RETRY_MS),
    Close.DROPPED: _ending(409, "not_a_queue", "the topic was deleted: there is no queue any more"),
    Close.SLOW: _ending(408, "slow_reader", "nothing was read for too long", retry_after_ms=RETRY_MS),
}

Render = Callable[[Job], bytes]


class WorkStream:
    """The owner of one pipe. What it holds of the queue is written down in the queue's leases, under its number."""

    __slots__ = ("_beat", "_crew", "_hub", "_linger", "_on_close", "_pipe", "_render", "_stall", "_want", "_wrote_at", "closed", "paused")  # fmt: skip

    def __init__(
        self, crew: Crew, pipe: Pipe, want: Want, render: Render, *, on_close: Callable[[], None] | None = None
    ) -> None:
        """`want.most` is how many jobs it may hold at a time; `on_close` is called exactly once."""
        self._crew = crew
        self._hub = crew.hub
        self._pipe = pipe
        self._want = want
        self._render = render
        self._on_close = on_close
        self._wrote_at = 0.0
        self._beat: Timer | None = None
        self._linger: Timer | None = None
        self._stall: Stall | None = None
        self.closed = False
        self.paused = False
        pipe.owner = self

    def open(self) -> None:
        self._hub.metrics.counter("seamark_stream_sessions_total", _SURFACE).value += 1
        self._hub.metrics.gauge("seamark_stream_sessions", _SURFACE).value += 1
        self._write(Block(_OPENING))
        if not self.closed:
            self._arm_beat(HEARTBEAT_SECONDS)
            self._crew.join(self)

    @property
    def owner(self) -> int:
        return self._want.owner

    def wanted(self) -> Want | None:
        """What it could be given now."""
        room = self._want.most - self._crew.queue.leases.held_by(self.owner)
        if self.closed or self.paused or room <= 0:
            return None
        return Want(self._want.node, min(room, BATCH_JOBS), self._want.lease_ms, self.owner)

    def hand_over(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Send jobs; returns those that could not be sent."""
        for place, job in enumerate(jobs):
            if self.closed or self.paused:
                return jobs[place:]
            self._write(Block(self._render(job)))
            self._hub.deliveries.value += 1
        return ()

    def close(self, reason: Close) -> None:
        """End the stream, saying why. Only the first call counts."""
        if not self.closed:
            self._end(reason)
            self._linger = self._hub.wheel.add(CLOSE_LINGER_SECONDS_MAX, self._pipe.abort)
            self._pipe.close(Block(_ENDINGS[reason]))

    # -- the pipe's owner

    def pause(self) -> None:
        if not self.paused and not self.closed:
            self.paused = True
            self._stall = Stall(self._hub, self._pipe, self._too_slow)

    def resume(self) -> None:
        if self.paused and not self.closed:
            self._unpause()
            self._crew.wake()

    def gone(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if not self.closed:
            self._end(None)

    # -- inside

    def _write(self, block: Block) -> None:
        self._wrote_at = self._hub.wheel.now()
        self._pipe.write(block)

    def _end(self, reason: Close | None) -> None:
        self.closed = True
        if self.paused:
            self._unpause()
        if self._beat is not None:
            self._beat.cancel()
        self._hub.metrics.gauge("seamark_stream_sessions", _SURFACE).value -= 1
        self._hub.metrics.counter("seamark_stream_closed_total", reason or "gone").value += 1
        self._crew.leave(self)
        if self._on_close is not None:
            self._on_close()

    def _unpause(self) -> None:
        self.paused = False
        if self._stall is not None:
            self._stall.end()
            self._stall = None

    def _too_slow(self) -> None:
        self.close(Close.SLOW)

    def _arm_beat(self, delay_seconds: float) -> None:
        spread = HEARTBEAT_SECONDS * HEARTBEAT_SPREAD_PERCENT / 100
        self._beat = self._hub.wheel.add(delay_seconds, self._on_beat, spread_seconds=spread)

    def _on_beat(self) -> None:
        quiet = self._hub.wheel.now() - self._wrote_at
        if self.paused or quiet < HEARTBEAT_SECONDS:
            self._arm_beat(HEARTBEAT_SECONDS - (0.0 if self.paused else quiet))
            return
        self._write(self._hub.block(_HEARTBEAT))
        if not self.closed:
            self._arm_beat(HEARTBEAT_SECONDS)


class Crew:
    """The work streams of one queue, fed by one task that sleeps until there may be something to give: a new job, one that
    came back, or a stream that has room again."""

    def __init__(self, queue: Queue, hub: Hub) -> None:
        self.queue = queue
        self.hub = hub
        self._streams: dict[int, WorkStream] = {}
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        queue.on_change = self.wake

    def __len__(self) -> int:
        return len(self._streams)

    def join(self, stream: WorkStream) -> None:
        self._streams[stream.owner] = stream
        self.wake()
        if self._task is None or self._task.done():
            self._task = supervise("work streams", self._feed)

    def leave(self, stream: WorkStream) -> None:
        """What it holds is for the others, at once."""
        self._streams.pop(stream.owner, None)
        self.queue.release(stream.owner)
        self.wake()

    def wake(self) -> None:
        self._bell.set()

    def end(self, reason: Close) -> None:
        """Close every stream."""
        for stream in list(self._streams.values()):
            stream.close(reason)

    async def _feed(self) -> None:
        while self._streams:
            self._bell.clear()
            try:
                given = await self._give()
            except (Missing, Conflict):
                self.end(Close.DROPPED)
                return
            if given:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    async def _give(self) -> bool:
        """One pass over the streams that have room. Whether any was given something."""
        asking = [(stream, want) for stream in self._streams.values() if (want := stream.wanted()) is not None]
        if not asking:
            await self.queue.refresh()  # a lease may have run out, which makes room
            return False
        hands = await self.queue.take([want for _, want in asking])
        for (stream, _), jobs in zip(asking, hands, strict=True):
            left = stream.hand_over(jobs)
            if left:
                self.queue.undo(left)
        return any(hands)

    async def _sleep(self) -> None:
        """Until something rings, at the latest when time alone brings a job back."""
        due = self.queue.leases.next_due()
        timer: Timer | None = None
        if due is not None:
            seconds = max(due - self.queue.now_ms(), 0) / _MS_PER_SECOND
            timer = self.hub.wheel.add(seconds, self.wake)
        try:
            await self._bell.wait()
        finally:
            if timer is not None:
                timer.cancel()
