"""The log as the rest of Seamark sees it. Every engine implements `Log`; everything beyond it is an optional
capability with a Protocol of its own. Appends go through the one `Writer` seam, news arrives through the one `Wakeup`
seam; nothing above may assume that writer, store and reader share a process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from seamark import limits
from seamark.errors import SeamarkError
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss, Watermarks


class Put(msgspec.Struct, frozen=True):
    """A small value beside the streams (session, token, router cursor, blob), moved by the same commit as an append.

    `value` None removes the key. Keys are bytes, at most 400.
    """

    space: str
    key: bytes
    value: bytes | None


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """One atomic unit of writing: all of it or nothing."""

    stream: str = ""  # may be empty when only `puts` matter
    drafts: Sequence[Draft] = ()
    key: str | None = None  # idempotency key: a repeat within the stream's window answers with the first receipt
    create: StreamSettings | None = None  # create the stream with these when it does not exist
    expect_head: int | None = None  # refuse with HeadConflict unless the stream's head is exactly this
    puts: Sequence[Put] = ()
    stamp_bytes: int = 0  # bytes of each meta beyond what a client may bring, because Seamark added them


class Receipt(msgspec.Struct, frozen=True):
    """What became of an append. For a repeat (`deduped`) the seqs and `head` are those of the first time."""

    stream: str
    instance: str
    first: int
    last: int
    head: int
    ts: int
    created: bool = False
    deduped: bool = False
    write_ms: float = 0.0  # time in the store's write path, not counting the sync
    sync_ms: float = 0.0  # time of the durable sync this receipt waited for; exactly 0.0 unless class is fsync


class StreamState(msgspec.Struct, frozen=True):
    """A stream as it stands."""

    name: str
    instance: str
    settings: StreamSettings
    marks: Watermarks
    count: int  # live records
    bytes: int  # payload plus meta of the live records
    last_ts: int  # ns of the newest append, 0 when there was none


class Configured(msgspec.Struct, frozen=True):
    state: StreamState
    created: bool


class Shared(Protocol):
    """Records that the log keeps at hand for several readers, and what was made of them."""

    def each(self, form: Hashable, make: Callable[[Record], bytes]) -> Sequence[bytes]:
        """What `make` gives for each of these records. Equal forms mean: the same bytes for the same record."""
        ...


class Part(NamedTuple):
    """A run of a page's records, from `at` on, that is also the run of `shared` from `start` to `stop`."""

    at: int
    shared: Shared
    start: int
    stop: int


class Page(msgspec.Struct, frozen=True):
    """Part of a stream from a cursor on. The gap, if any, comes before the records, and `resume` is where the records
    start: `gap.last` after a gap, else the cursor. Every seq in `resume+1 .. cursor.seq` was examined."""

    records: list[Record]
    gap: Gap | None
    resume: int
    cursor: Cursor  # after the last examined seq, with the instance
    marks: Watermarks
    scanned: int  # stored records examined, delivered or not; skimmed blocks count as a few
    parts: Sequence[Part] = ()  # those of the records that other readers have been given as well, in order

    @property
    def caught_up(self) -> bool:
        return self.cursor.seq >= self.marks.head

    def each(self, form: Hashable, make: Callable[[Record], bytes]) -> list[bytes]:
        """What `make` gives for each record, taken from where it was made before; see `Shared`."""
        records = self.records
        if not self.parts:
            return [make(record) for record in records]
        made: list[bytes] = []
        for at, shared, start, stop in self.parts:
            if len(made) < at:
                made += [make(record) for record in records[len(made) : at]]
            made += shared.each(form, make)[start:stop]
        if len(made) < len(records):
            made += [make(record) for record in records[len(made) :]]
        return made


class TagMatch(msgspec.Struct, frozen=True):
    """Tag equals `text`, or starts with it."""

    text: str
    prefix: bool = False


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Which records to delete: all given parts must hold. At least one part is required.

    Bound at the head seen when the call begins, so later records are never touched.
    """

    before: int | None = None  # seq < before
    tag: TagMatch | None = None
    seqs: tuple[int, ...] | None = None
    subject: tuple[str, ...] | None = None


class Deleted(msgspec.Struct, frozen=True):
    count: int
    state: StreamState


class Dropped(msgspec.Struct, frozen=True):
    """A stream that was removed with all its records; `existed` false when there was none."""

    name: str
    existed: bool
    head: int
    instance: str


class News(msgspec.Struct, frozen=True):
    """What readers are told. `records` are the newly visible (or newly synced) ones when the writer is in this
    process, else None: then read from the log. `dropped` says that the stream is gone; `marks.head` was its last."""

    stream: str
    instance: str
    marks: Watermarks
    records: Sequence[Record] | None = None
    synced: bool = False  # these records are now durable (for fsync streams visible and synced are one news)
    visible: bool = True  # these records are now visible to eventual readers
    dropped: bool = False


Done = Callable[[Receipt | SeamarkError], None]


class Writer(Protocol):
    """The one way in."""

    def submit(self, append: Append, done: Done) -> None:
        """Queue an append. `done` is called exactly once, from the event loop, when the append is acknowledgeable
        under its stream's durability class, or has failed. May be called before `submit` returns."""
        ...


class Wakeup(Protocol):
    """The one way to learn of news."""

    def subscribe(self, listener: Callable[[Sequence[News]], None]) -> Callable[[], None]:
        """Call `listener` from the event loop after each turn that changed something. Returns the way to stop."""
        ...


class Log(Protocol):
    """An ordered, dense, resumable record of what happened, per stream."""

    @property
    def writer(self) -> Writer: ...
    @property
    def wakeup(self) -> Wakeup: ...

    async def append(self, append: Append) -> Receipt:
        """`writer.submit` as an awaitable."""
        ...

    async def configure(self, name: str, settings: StreamSettings) -> Configured:
        """Create the stream or replace its settings. Durable before it returns; a tightened bound evicts at once."""
        ...

    async def drop(self, name: str) -> Dropped: ...

    async def state(self, name: str) -> StreamState:
        """Raises StreamNotFound. Applies retention first."""
        ...

    async def streams(self, *, prefix: str = "", after: str = "", limit: int = 1_000) -> list[StreamState]:
        """In byte order of name, those after `after`."""
        ...

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
        """The records after `cursor` that `accept` lets through; `synced` stops at the durable mark. Applies retention
        first. Goes on past rejected and deleted records until `records_max` accepted ones, the byte budget (always at
        least one record), the head, or the next lost range; every examined seq moves the cursor. A cursor beyond the
        head or of another instance gives a RECREATED gap and everything that is live. An `accept` that `Skims` lets an
        indexed stream pass over history in which it would accept nothing."""
        ...

    async def seq_at(self, name: str, ts: int) -> int:
        """First seq stored at or after `ts` (ns), head + 1 when none is."""
        ...

    async def delete(self, name: str, selector: Selector) -> Deleted:
        """Voluntary removal: silent, permanent, durable on return as the stream's class demands."""
        ...

    async def close(self) -> None:
        """Commit what was accepted, then close."""
        ...


@runtime_checkable
class ReadsNow(Protocol):
    """Capability: reads that never wait, for callers on the data plane. Same meaning as `Log.read` and `Log.state`."""

    def read_now(
        self,
        name: str,
        cursor: Cursor,
        *,
        records_max: int = limits.PAGE_RECORDS_DEFAULT,
        bytes_max: int = limits.PAGE_BYTES_DEFAULT,
        synced: bool = False,
        accept: Callable[[Record], bool] | None = None,
    ) -> Page: ...

    def state_now(self, name: str) -> StreamState: ...


@runtime_checkable
class Shelf(Protocol):
    """Capability: the small values that `Put` writes."""

    def fetch(self, space: str, key: bytes) -> bytes | None: ...

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]: ...


@runtime_checkable
class Health(Protocol):
    """Capability: what an acknowledgement of this engine is really worth, and whether it takes writes now."""

    def health(self) -> dict[str, str | int | float | bool]: ...


@runtime_checkable
class Declares(Protocol):
    """Capability: a loss that happened before the records came here, told in place of the records."""

    async def lose(
        self, name: str, upto: int, loss: Loss, *, expect_head: int | None = None, puts: Sequence[Put] = ()
    ) -> StreamState:
        """Give out the seqs from the head up to `upto` as lost, without records. Durable before it returns, and `puts`
        with it. Raises HeadConflict when the head is not `expect_head`."""
        ...
