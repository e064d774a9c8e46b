"""Reading a stream from a cursor on: the gap first, then records from the store, then those not yet committed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from seamark import limits
from seamark.errors import BadInput, Corrupt
from seamark.log.cache import Held, ReadCache, running_sizes
from seamark.log.chunk import Chunk, check_hole, chunks_from, corrupt, parse, records_of
from seamark.log.columns import Skims
from seamark.log.ledger import Ledger
from seamark.log.protocol import Page, Part
from seamark.log.record import Record
from seamark.log.seal import Damaged
from seamark.log.skim import Skim
from seamark.log.store import ID, PLACE, Space, View
from seamark.log.watermarks import Cursor, Gap, Loss

Accept = Callable[[Record], bool]
_SEQ = attrgetter("seq")


class Walk:
    """One reading under way. It can be interrupted after any chunk and goes on from `at`."""

    def __init__(
        self,
        ledger: Ledger,
        cache: ReadCache,
        cursor: Cursor,
        *,
        records_max: int,
        bytes_max: int,
        synced: bool,
        accept: Accept | None,
    ) -> None:
        if records_max < 1 or bytes_max < 0 or cursor.seq < 0:
            raise BadInput("a page has at least one record, and a cursor is not negative")
        self._ledger = ledger
        self._cache = cache
        self._parts: list[Part] = []
        self._instance = ledger.meta.instance
        self._records_max = min(records_max, limits.PAGE_RECORDS_MAX)
        self._bytes_max = min(bytes_max, limits.PAGE_BYTES_MAX)
        self._accept = accept
        self._sieve = accept.sieve() if ledger.meta.settings.indexed and isinstance(accept, Skims) else None
        self.records: list[Record] = []
        self.bytes = 0
        self.scanned = 0
        self.full = False
        marks = ledger.marks
        self.gap, self.resume = _start(ledger, cursor)
        self.at = self.resume
        self.stop = marks.synced if synced else marks.head
        for lost in ledger.meta.lost:
            if lost.first > self.at:
                self.stop = min(self.stop, lost.first - 1)
                break

    @property
    def ended(self) -> bool:
        return self.full or self.at >= self.stop

    def step(self, scan_max: int) -> None:
        """Examine up to about `scan_max` records."""
        ledger = self._ledger
        budget = self.scanned + scan_max
        committed = min(self.stop, ledger.meta.head)
        start = max(self.at + 1, ledger.meta.earliest)
        if ledger.meta.count and start <= committed:
            with ledger.store.view() as view:
                if self._sieve is not None:
                    skim = Skim(ledger.name, ledger.meta.id, view, self._sieve, self._cache)
                    self._skim(view, skim, start, committed, budget)
                    start = max(self.at + 1, start)
                if self.full or self.scanned >= budget:
                    return
                if start <= committed:
                    self._scan(view, start, committed, budget)
                    if self.full or self.scanned >= budget:
                        return
        self.at = max(self.at, committed)
        for record in ledger.pending:
            if self.at < record.seq <= self.stop and not self._take(record):
                return
        self.at = max(self.at, self.stop)

    def page(self) -> Page:
        return Page(
            records=self.records,
            gap=self.gap,
            resume=self.resume,
            cursor=Cursor(seq=self.at, instance=self._instance),
            marks=self._ledger.marks,
            scanned=self.scanned,
            parts=self._parts,
        )

    def _skim(self, view: View, skim: Skim, start: int, stop: int, budget: int) -> None:
        """As far as there are columns: only what they cannot rule out is looked at."""
        for end, seqs in skim.blocks(start, stop):
            for seq in seqs:
                record = skim.record(seq)
                if record is None:
                    self._check_removed(seq)
                    check_hole(self._ledger.name, self._ledger.meta.id, view, seq)
                elif not self._take(record):
                    break
            else:
                self.at = end
            if self.full or self.scanned + skim.spent >= budget:
                break
        self.scanned += skim.spent

    def _scan(self, view: View, start: int, stop: int, budget: int) -> None:
        """Everything."""
        for chunk in chunks_from(self._ledger.name, self._ledger.meta.id, view, start, self._cache.parse):
            if chunk.first > stop:
                break
            self._check_dense_to(chunk.first)
            self._chunk(chunk, start, stop)
            if self.full or self.at >= stop or self.scanned >= budget:
                return
        self._check_dense_to(stop + 1)

    def _chunk(self, chunk: Chunk, start: int, stop: int) -> None:
        held = self._cache.held(self._ledger.name, chunk)
        records = records_of(self._ledger.name, chunk)
        if (  # the common case of a history that nobody else reads
            held is None
            and self._accept is None
            and chunk.first >= start
            and chunk.last <= stop
            and len(self.records) + chunk.count <= self._records_max
            and self.bytes + chunk.bytes <= self._bytes_max
        ):
            self._took(records, chunk.bytes)
            return
        low = 0 if chunk.first >= start else bisect_left(records, start, key=_SEQ)
        high = len(records) if chunk.last <= stop else bisect_right(records, stop, key=_SEQ)
        if self._accept is not None:
            for record in records[low:high]:
                if not self._take(record):
                    return
        else:
            self._take_run(records, running_sizes(records) if held is None else held.ends, held, low, high)

    def _take_run(self, records: list[Record], ends: Sequence[int], held: Held | None, low: int, high: int) -> None:
        """What `_take` would take of `records[low:high]`, at once."""
        at = len(self.records)
        stop = min(high, low + self._records_max - at)
        left = ends[low] + self._bytes_max - self.bytes
        if ends[stop] > left:
            stop = max(bisect_right(ends, left, low, stop) - 1, low)
            if stop == low and not at:
                stop += 1  # at least one, whatever its size
            self.full = stop < high
        if stop > low:
            self._took(records[low:stop], ends[stop] - ends[low])
            if held is not None:
                self._parts.append(Part(at, held, low, stop))

    def _took(self, records: list[Record], size: int) -> None:
        self.records += records
        self.bytes += size
        self.scanned += len(records)
        self.at = records[-1].seq
        self.full = self.full or len(self.records) >= self._records_max

    def _take(self, record: Record) -> bool:
        """Examine one record; False when the page is full."""
        if self._accept is None or self._accept(record):
            size = self.bytes + record.size
            if self.records and size > self._bytes_max:
                self.full = True
                return False
            self.records.append(record)
            self.bytes = size
            self.full = len(self.records) >= self._records_max
        self.scanned += 1
        self.at = record.seq
        return not self.full

    def _check_dense_to(self, first: int) -> None:
        """Where nothing was ever removed, what does not follow the last record means that records are missing."""
        expected = max(self.at + 1, self._ledger.meta.earliest)
        if first > expected:
            self._check_removed(expected)

    def _check_removed(self, seq: int) -> None:
        """A record that is not there may have been removed, if ever one was."""
        if not self._ledger.meta.removed:
            raise corrupt(self._ledger.name, seq, "density", Damaged("records are missing"))

    def check_unchanged(self, ledger: Ledger | None) -> None:
        """After an interruption: end here when what comes next was evicted or dropped meanwhile."""
        if ledger is not self._ledger or ledger.meta.evict_floor > self.at + 1:
            self.full = True


def read(walk: Walk) -> None:
    """Read on without waiting, within the bound that keeps the loop alive."""
    try:
        walk.step(limits.SCAN_RECORDS_MAX)
    except Corrupt:
        if walk.at == walk.resume and walk.gap is None:
            raise
        walk.full = True  # what was read is good; the next page meets the damage


def seq_at(ledger: Ledger, ts: int) -> int:
    """First live seq stored at or after `ts`: a binary search over the chunks' headers."""
    meta = ledger.meta
    if meta.count:
        with ledger.store.view() as view:
            low, high = meta.earliest, meta.head + 1
            while low < high:
                middle = (low + high) // 2
                chunk = _chunk_at(ledger, view, middle)
                if chunk is not None and chunk.last_ts >= ts and chunk.last >= meta.earliest:
                    high = middle
                else:
                    low = middle + 1
            for record in _live_from(ledger, view, low):
                if record.ts >= ts:
                    return record.seq
    for record in ledger.pending:
        if record.ts >= ts:
            return record.seq
    return ledger.head + 1


def _live_from(ledger: Ledger, view: View, seq: int) -> Iterator[Record]:
    for chunk in chunks_from(ledger.name, ledger.meta.id, view, max(seq, ledger.meta.earliest)):
        for record in records_of(ledger.name, chunk):
            if record.seq >= ledger.meta.earliest:
                yield record


def _chunk_at(ledger: Ledger, view: View, seq: int) -> Chunk | None:
    found = view.floor(Space.RECORDS, PLACE.pack(ledger.meta.id, seq))
    if found is not None and found[0][: ID.size] == ID.pack(ledger.meta.id):
        chunk = parse(ledger.name, *found)
        if chunk.last >= seq:
            return chunk
    else:
        chunk = None
    check_hole(ledger.name, ledger.meta.id, view, seq)
    return chunk


def _start(ledger: Ledger, cursor: Cursor) -> tuple[Gap | None, int]:
    """The gap that the cursor meets, if any, and where records start."""
    marks, meta = ledger.marks, ledger.meta
    foreign = cursor.instance is not None and cursor.instance != meta.instance
    if foreign or cursor.seq > marks.head:
        return Gap(first=1, last=marks.earliest - 1, loss=Loss.RECREATED), marks.earliest - 1
    gap = meta.front_gap(cursor.seq + 1)
    if gap is None:
        for lost in meta.lost:
            if lost.first <= cursor.seq + 1 <= lost.last:
                gap = Gap(first=cursor.seq + 1, last=lost.last, loss=lost.loss)
    return (None, cursor.seq) if gap is None else (gap, gap.last)
