"""A reader in memory: a pipe that can stall, a dialect of one JSON line per frame, and a hub over the memory log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seamark.clock import ManualClock
from seamark.limits import PIPE_HIGH_WATER_BYTES
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import open_memory
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Configured, Log, News, Page, Receipt, StreamState, Wakeup
from seamark.log.record import Draft, Record
from seamark.log.settings import Durability, StreamSettings
from seamark.log.watermarks import Cursor, Gap
from seamark.stream.dialect import Close, Span
from seamark.stream.hub import Hub
from seamark.stream.leg import LegSpec
from seamark.stream.pipe import Block, PipeOwner
from seamark.stream.session import Session
from seamark.stream.wheel import Wheel
from seamark.telemetry.metrics import Metrics

Frame = list[Any]


class TapPipe:
    """A pipe whose far end can stop taking bytes."""

    def __init__(self, high: int = PIPE_HIGH_WATER_BYTES) -> None:
        self.owner: PipeOwner | None = None
        self.high = high
        self.stalled = False
        self.taken: list[bytes] = []
        self.blocks: list[Block] = []  # as they were given, to see what is shared
        self.waiting: list[bytes] = []
        self.most_buffered = 0
        self.writes_while_paused = 0
        self.ended = False
        self._paused = False
        self._closing = False

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def buffered(self) -> int:
        return sum(map(len, self.waiting))

    def write(self, block: Block) -> None:
        if self._closing:
            return
        self.writes_while_paused += self._paused
        self.blocks.append(block)
        (self.waiting if self.stalled else self.taken).append(block.raw)
        self.most_buffered = max(self.most_buffered, self.buffered)
        if self.buffered > self.high and not self._paused:
            self._paused = True
            assert self.owner is not None
            self.owner.pause()

    def close(self, last: Block | None = None) -> None:
        if self._closing:
            return
        self._closing = True
        if last is not None:
            (self.waiting if self.stalled else self.taken).append(last.raw)
        if not self.stalled:
            self.abort()

    def abort(self) -> None:
        self._closing = True
        self.waiting.clear()
        if not self.ended:
            self.ended = True
            assert self.owner is not None
            self.owner.gone()

    # -- the far end

    def drain(self) -> None:
        """Take everything that waits, and whatever comes from now on."""
        self.stalled = False
        self.taken += self.waiting
        self.waiting = []
        if self._closing:
            self.abort()
        elif self._paused:
            self._paused = False
            assert self.owner is not None
            self.owner.resume()

    def fill(self) -> None:
        """Be full from now on, without anything written."""
        self.stalled = True
        if not self._paused and not self._closing:
            self._paused = True
            assert self.owner is not None
            self.owner.pause()

    def leave(self) -> None:
        """Take what is there and hang up."""
        self.taken += self.waiting
        self.abort()

    @property
    def frames(self) -> list[Frame]:
        return self.frames_after(0)

    def frames_after(self, taken: int) -> list[Frame]:
        """The frames in what was taken after the first so many blocks."""
        return [json.loads(line) for line in b"".join(self.taken[taken:]).splitlines()]


class LineDialect:
    """One line per burst: `["records", stream, after, to, head, live, [[seq, payload], ...]]`."""

    def __init__(self, projection: Hashable = "line") -> None:
        self.projection = projection
        self.encoded = 0
        self.assembled = 0

    def fragment(self, record: Record, live: bool) -> bytes:
        self.encoded += 1
        return json.dumps([record.seq, record.payload.decode()]).encode()

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        self.assembled += 1
        head = json.dumps(["records", span.stream, span.after, span.to, span.marks.head, span.live]).encode()
        return head[:-1] + b", [" + b",".join(fragments) + b"]]\n"


class BoundedDialect(LineDialect):
    """Bursts of two records at the most."""

    burst_records_max = 2
    burst_bytes_max = 1_000


def line(*frame: object) -> bytes:
    return json.dumps(frame).encode() + b"\n"


class LineScript:
    """Says everything it is asked to say, as lines; `personal` stamps its name before each burst."""

    def __init__(self, dialect: LineDialect | None = None, *, personal: bool = False, name: str = "me") -> None:
        self.dialect = dialect or LineDialect()
        self.personal = personal
        self.name = name

    def opening(self) -> bytes:
        return line("open")

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        return line("stamp", self.name, span.stream, span.to) + burst

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes:
        return line("gap", span.stream, gap.first, gap.last, gap.loss, span.to, first_read)

    def caught_up(self, span: Span) -> bytes:
        return line("caught-up", span.stream, span.to, span.marks.head, span.live)

    def dropped(self, stream: str, head: int) -> bytes:
        return line("dropped", stream, head)

    def heartbeat(self) -> bytes:
        return line("beat")

    def closing(self, reason: Close) -> bytes:
        return line("close", reason)

    def limited(self, span: Span) -> bytes:
        return line("limited", span.stream, span.to)


class Narrow:
    """A log seen through `Log` alone: its reads wait, as those of a remote engine do. With `silent` its news carries
    no records, as when another process writes."""

    def __init__(self, inner: LocalLog, *, silent: bool) -> None:
        self._inner = inner
        self._silent = silent
        self.writer = inner.writer
        self.append = inner.append
        self.configure = inner.configure
        self.drop = inner.drop
        self.state = inner.state
        self.streams = inner.streams
        self.seq_at = inner.seq_at
        self.delete = inner.delete
        self.close = inner.close

    @property
    def wakeup(self) -> Wakeup:
        return self

    def subscribe(self, listener: Callable[[Sequence[News]], None]) -> Callable[[], None]:
        if not self._silent:
            return self._inner.wakeup.subscribe(listener)

        def quiet(news: Sequence[News]) -> None:
            listener([News(n.stream, n.instance, n.marks, None, n.synced, n.visible, n.dropped) for n in news])

        return self._inner.wakeup.subscribe(quiet)

    async def read(self, name: str, cursor: Cursor, **options: Any) -> Page:
        await asyncio.sleep(0)
        page = await self._inner.read(name, cursor, **options)
        await asyncio.sleep(0)
        return page


class Late(Narrow):
    """A log whose news comes some turns after its records can be read, and comes twice."""

    def __init__(self, inner: LocalLog) -> None:
        super().__init__(inner, silent=False)
        self.read_now = inner.read_now
        self.state_now = inner.state_now

    def subscribe(self, listener: Callable[[Sequence[News]], None]) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def late(news: Sequence[News], turns: int) -> None:
            if turns:
                loop.call_soon(late, news, turns - 1)
            else:
                listener(news)

        def hear(news: Sequence[News]) -> None:
            late(news, 2)
            late(news, 3)

        return self._inner.wakeup.subscribe(hear)


class Disk(Narrow):
    """The embedded engine, where every stream that asks for nothing special is of class disk: visible first, durable a
    moment later, each in a news of its own."""

    def __init__(self, inner: LocalLog) -> None:
        super().__init__(inner, silent=False)
        self.read_now = inner.read_now
        self.state_now = inner.state_now
        self.append = self._append
        self.configure = self._configure

    async def _append(self, append: Append) -> Receipt:
        create = append.create and _of_class_disk(append.create)
        return await self._inner.append(msgspec.structs.replace(append, create=create))

    async def _configure(self, name: str, settings: StreamSettings) -> Configured:
        return await self._inner.configure(name, _of_class_disk(settings))

    async def read(self, name: str, cursor: Cursor, **options: Any) -> Page:
        return await self._inner.read(name, cursor, **options)


def _of_class_disk(settings: StreamSettings) -> StreamSettings:
    if settings.durability is not Durability.FSYNC:
        return settings
    return msgspec.structs.replace(settings, durability=Durability.DISK)


@dataclass
class World:
    """One process: a log, a hub, a clock that moves when told."""

    inner: LocalLog
    log: Log
    clock: ManualClock
    wheel: Wheel
    metrics: Metrics
    hub: Hub
    closed: list[tuple[Session, Close | None]] = field(default_factory=list)

    async def append(
        self, stream: str, *payloads: str, durability: Durability = Durability.FSYNC, **draft: Any
    ) -> Receipt:
        drafts = [Draft(payload.encode(), **draft) for payload in payloads]
        settings = StreamSettings(durability=durability)
        return await self.log.append(Append(stream=stream, drafts=drafts, create=settings))

    async def state(self, stream: str) -> StreamState:
        return await self.log.state(stream)

    def watch(self, *legs: LegSpec | str, script: LineScript | None = None, **options: Any) -> tuple[Session, TapPipe]:
        """Open a session on a pipe of its own; streams may be given by name."""
        pipe = options.pop("pipe", None) or TapPipe()
        specs = [LegSpec(stream=leg) if isinstance(leg, str) else leg for leg in legs]
        session: Session

        def on_close(reason: Close | None) -> None:
            self.closed.append((session, reason))

        session = Session(self.hub, pipe, script or LineScript(), specs, surface="test", on_close=on_close, **options)
        session.open()
        return session, pipe

    async def settle(self, turns: int = 30) -> None:
        """Let the loop turn until nothing is left to do."""
        for _ in range(turns):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float, step: float = 0.1) -> None:
        """Time goes by, a little at a time."""
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            self.wheel.advance()
            await self.settle(3)


def seqs(frames: list[Frame], stream: str | None = None) -> list[int]:
    """The seqs of all records in the frames, as they came."""
    return [
        record[0] for frame in frames if frame[0] == "records" and stream in (None, frame[1]) for record in frame[6]
    ]


def build(variant: str, path: Path | None = None) -> World:
    """`now`: reads never wait. `waiting`: they do. `silent`: and news carries no records. `late`: news is behind.
    `embedded`: that engine, in `path`. `disk`: the same, and streams are visible before they are durable."""
    clock = ManualClock()
    metrics = Metrics()
    inner = open_memory(clock, metrics) if path is None else open_embedded(path, clock, metrics)
    log: Log = inner
    if variant == "disk":
        log = Disk(inner)
    elif variant == "late":
        log = Late(inner)
    elif variant not in {"now", "embedded"}:
        log = Narrow(inner, silent=variant == "silent")
    wheel = Wheel(clock)
    return World(inner, log, clock, wheel, metrics, Hub(log, wheel, metrics))


@pytest.fixture(params=["now", "waiting", "silent", "late", "disk"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    made = build(request.param, tmp_path if request.param == "disk" else None)
    yield made
    made.hub.close()
    await made.inner.close()
    made.wheel.close()
