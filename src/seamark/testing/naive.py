"""A log made of models: slow, in memory, and simple enough to be believed. It proves that the contract can be kept, it
stands in for an engine in tests of other rooms, and with `laggy` it behaves like an engine at the end of a wire."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from seamark import limits
from seamark.clock import Clock
from seamark.errors import (
    BadInput,
    HeadConflict,
    QuotaExceeded,
    RecordTooLarge,
    SeamarkError,
    ShuttingDown,
    StreamFull,
    StreamNotFound,
)
from seamark.log.protocol import (
    Append,
    Configured,
    Deleted,
    Done,
    Dropped,
    News,
    Page,
    Put,
    Receipt,
    Selector,
    StreamState,
    Wakeup,
    Writer,
)
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.model import StreamModel, Written

Listener = Callable[[Sequence[News]], None]
LAG_TURNS = 3  # turns of the event loop between the steps of a laggy log


class NaiveStream:
    """A model with an identity."""

    __slots__ = ("instance", "model", "name")

    def __init__(self, name: str, instance: str, settings: StreamSettings) -> None:
        self.name = name
        self.instance = instance
        self.model = StreamModel(settings)

    def state(self, now_ns: int) -> StreamState:
        model = self.model
        model.retain(now_ns)
        marks = model.marks(synced=model.head)
        return StreamState(self.name, self.instance, model.settings, marks, model.count, model.bytes, model.last_ts)


class NaiveLog:
    """Implements Log, its own Writer and Wakeup, Shelf and Declares."""

    def __init__(self, clock: Clock, *, quota_bytes: int = 0, laggy: bool = False) -> None:
        self._clock = clock
        self._quota_bytes = quota_bytes
        self._laggy = laggy
        self._streams: dict[str, NaiveStream] = {}
        self._instances = itertools.count(1)
        self._values: dict[tuple[str, bytes], bytes] = {}
        self._listeners: list[Listener] = []
        self._outbox: deque[tuple[int, Callable[[], None]]] = deque()
        self._turning = False
        self._closed = False

    @property
    def writer(self) -> Writer:
        return self

    @property
    def wakeup(self) -> Wakeup:
        return self

    # -- writing

    def submit(self, append: Append, done: Done) -> None:
        self._later(lambda: self._commit(append, done))

    async def append(self, append: Append) -> Receipt:
        answer: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        def done(result: Receipt | SeamarkError) -> None:
            if isinstance(result, Receipt):
                answer.set_result(result)
            else:
                answer.set_exception(result)

        self.submit(append, done)
        return await answer

    def _commit(self, append: Append, done: Done) -> None:
        try:
            receipt = self._write(append)
        except SeamarkError as refusal:
            done(refusal)
            return
        if append.stream and not receipt.deduped:
            stream = self._streams[append.stream]
            records = [r for r in stream.model.records if receipt.first <= r.seq <= receipt.last]
            marks = stream.model.marks(synced=stream.model.head)
            shown = None if self._laggy else records
            news = News(stream.name, stream.instance, marks, records=shown, synced=True)
            self._later(lambda: done(receipt), at_once=not self._laggy)
            self._later(lambda: self._tell(news), at_once=not self._laggy)
        else:
            done(receipt)

    def _write(self, append: Append) -> Receipt:
        if self._closed:
            raise ShuttingDown("the log is closed")
        check_bounds(append)
        now = self._clock.now_ns()
        if not append.stream:
            self._put(append)
            return Receipt("", "", 1, 0, 0, now)
        stream, created = self._target(append)
        model = stream.model
        model.retain(now)
        self._check_quota(append, model, now)
        written = self._append_to(stream, append, now)
        if not written.deduped:
            self._put(append)
        if created:
            self._streams[stream.name] = stream
        return Receipt(
            stream.name,
            stream.instance,
            written.first,
            written.last,
            written.head,
            written.ts,
            created,
            written.deduped,
        )

    def _target(self, append: Append) -> tuple[NaiveStream, bool]:
        known = self._streams.get(append.stream)
        if known is not None:
            return known, False
        if append.create is None:
            raise StreamNotFound(f"no stream {append.stream!r}", stream=append.stream)
        return NaiveStream(append.stream, f"naive-{next(self._instances)}", append.create), True

    def _append_to(self, stream: NaiveStream, append: Append, now: int) -> Written:
        try:
            return stream.model.append(append.drafts, now, key=append.key, expect_head=append.expect_head)
        except StreamFull as full:
            settings = stream.model.settings
            full.fields.update(stream=stream.name, cap_records=settings.cap_records, cap_bytes=settings.cap_bytes)
            raise
        except SeamarkError as refusal:
            refusal.fields["stream"] = stream.name
            raise

    def _check_quota(self, append: Append, model: StreamModel, now: int) -> None:
        incoming = sum(_size(draft) for draft in append.drafts)
        if not self._quota_bytes or model.find_key(append.key, now) is not None:
            return
        if sum(stream.model.bytes for stream in self._streams.values()) + incoming > self._quota_bytes:
            raise QuotaExceeded("no room for more bytes", limit="quota_bytes", max=self._quota_bytes)

    def _put(self, append: Append) -> None:
        for put in append.puts:
            self._values.pop((put.space, put.key), None)
            if put.value is not None:
                self._values[put.space, put.key] = put.value

    # -- news

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, news: News) -> None:
        for listener in list(self._listeners):
            try:
                listener([news])
            except Exception:
                continue  # a failing listener harms nobody; a naive log has nowhere to write it down

    def _later(self, act: Callable[[], None], *, at_once: bool = False) -> None:
        """Run `act` in its turn: actions never overtake one another."""
        if at_once:
            act()
            return
        self._outbox.append((LAG_TURNS if self._laggy else 1, act))
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        turns, act = self._outbox.popleft()
        if turns > 1:
            self._outbox.appendleft((turns - 1, act))
        else:
            act()
        self._turning = bool(self._outbox)
        if self._turning:
            asyncio.get_running_loop().call_soon(self._turn)

    # -- streams

    async def configure(self, name: str, settings: StreamSettings) -> Configured:
        stream = self._streams.get(name)
        created = stream is None
        if stream is None:
            stream = self._streams[name] = NaiveStream(name, f"naive-{next(self._instances)}", settings)
        stream.model.configure(settings, self._clock.now_ns())
        return Configured(stream.state(self._clock.now_ns()), created)

    async def drop(self, name: str) -> Dropped:
        stream = self._streams.pop(name, None)
        if stream is None:
            return Dropped(name, existed=False, head=0, instance="")
        marks = stream.model.marks(synced=stream.model.head)
        news = News(name, stream.instance, marks, records=(), visible=False, dropped=True)
        self._later(lambda: self._tell(news), at_once=not self._laggy)
        return Dropped(name, existed=True, head=marks.head, instance=stream.instance)

    async def state(self, name: str) -> StreamState:
        return self._find(name).state(self._clock.now_ns())

    async def streams(self, *, prefix: str = "", after: str = "", limit: int = 1_000) -> list[StreamState]:
        names = sorted((n for n in self._streams if n.startswith(prefix)), key=str.encode)
        return [await self.state(name) for name in names if name.encode() > after.encode()][:limit]

    def _find(self, name: str) -> NaiveStream:
        stream = self._streams.get(name)
        if stream is None:
            raise StreamNotFound(f"no stream {name!r}", stream=name)
        return stream

    # -- reading and removing

    async def read(
        self,
        name: str,
        cursor: Cursor,
        *,
        records_max: int = limits.PAGE_RECORDS_DEFAULT,
        bytes_max: int = limits.PAGE_BYTES_DEFAULT,
        synced: bool = False,
        accept: Callable[[Record], bool] | None = None,
    ) -> Page:
        stream = self._find(name)
        state = stream.state(self._clock.now_ns())
        story = stream.model.read(cursor, instance=stream.instance)
        gaps: deque[Gap] = deque(story.gaps)
        first = story.records[0].seq if story.records else state.marks.head + 1
        gap = gaps.popleft() if gaps and gaps[0].first <= first else None
        resume = cursor.seq if gap is None else gap.last
        end = gaps[0].first - 1 if gaps else state.marks.head
        page, seq, scanned, size = list[Record](), end, 0, 0
        for record in story.records:
            if not resume < record.seq <= end:
                continue
            taken = accept is None or accept(record)
            if taken and page and (len(page) == records_max or size + record.size > bytes_max):
                seq = record.seq - 1
                break
            scanned += 1
            if taken:
                page.append(record)
                size += record.size
        return Page(page, gap, resume, Cursor(seq, stream.instance), state.marks, scanned)

    async def seq_at(self, name: str, ts: int) -> int:
        model = self._find(name).model
        return next((record.seq for record in model.records if record.ts >= ts), model.head + 1)

    async def delete(self, name: str, selector: Selector) -> Deleted:
        stream = self._find(name)
        count = stream.model.delete(selector, self._clock.now_ns())
        return Deleted(count, stream.state(self._clock.now_ns()))

    async def lose(
        self, name: str, upto: int, loss: Loss, *, expect_head: int | None = None, puts: Sequence[Put] = ()
    ) -> StreamState:
        beside = Append(puts=puts)
        check_bounds(beside)
        stream = self._find(name)
        model = stream.model
        if expect_head is not None and expect_head != model.head:
            raise HeadConflict.at(name, expected=expect_head, head=model.head)
        if upto <= model.head:
            raise BadInput("only later seqs can be declared lost", head=model.head)
        model.declare_lost(upto, loss)
        self._put(beside)
        news = News(name, stream.instance, model.marks(synced=model.head), records=(), synced=True)
        self._later(lambda: self._tell(news), at_once=not self._laggy)
        return stream.state(self._clock.now_ns())

    async def close(self) -> None:
        self._closed = True

    # -- the shelf

    def fetch(self, space: str, key: bytes) -> bytes | None:
        return self._values.get((space, key))

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for (at, key), value in sorted(self._values.items()):
            if at == space and key.startswith(prefix):
                yield key, value


def _size(draft: Draft) -> int:
    return len(draft.payload) + len(draft.meta or b"")


def check_bounds(append: Append) -> None:
    """Refuse what is beyond limits.py."""
    bounded = [
        (len(append.drafts), limits.RECORDS_PER_APPEND_MAX),
        (len(append.stream.encode()), limits.STREAM_NAME_BYTES_MAX),
        (len((append.key or "").encode()), limits.KEY_BYTES_MAX),
        (append.stamp_bytes, limits.STAMP_BYTES_MAX),
        *((len(put.key), 400) for put in append.puts),
    ]
    for draft in append.drafts:
        if _size(draft) > limits.RECORD_BYTES_MAX + append.stamp_bytes:
            raise RecordTooLarge("the record is too large", bytes=_size(draft), max=limits.RECORD_BYTES_MAX)
        subject, geometry = draft.subject or (), draft.geometry
        bounded += [
            (len(draft.meta or b""), limits.META_BYTES_MAX + append.stamp_bytes),
            (len((draft.tag or "").encode()), limits.TAG_BYTES_MAX),
            (len((draft.node or "").encode()), limits.NODE_BYTES_MAX),
            (len(subject), limits.SUBJECT_TOKENS_MAX),
            (sum(len(token.encode()) for token in subject), limits.SUBJECT_BYTES_MAX),
            (len((geometry.text or "").encode()) if geometry else 0, limits.GEOMETRY_BYTES_MAX),
        ]
    if any(value > bound for value, bound in bounded):
        raise BadInput("beyond a bound of limits.py")
