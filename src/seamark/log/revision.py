"""What one stream becomes with the next commit. Nothing of it shows until the store has taken it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from seamark import limits
from seamark.errors import Corrupt
from seamark.log import chunk as chunks
from seamark.log import meta as metas
from seamark.log.chunk import Chunk, parse, records_of
from seamark.log.front import Entry, Front
from seamark.log.keys import FirstReceipt, receipt_puts, subject_removal
from seamark.log.ledger import Ledger
from seamark.log.record import Record
from seamark.log.settings import Durability
from seamark.log.store import ID, PLACE, Change, Space, View
from seamark.log.watermarks import Loss

_EPHEMERAL_RESERVE = 64  # records of this class end with the process anyway, so a wide reservation costs only numbers


class Revision:
    """Collects arrivals, removals and losses of one stream, and turns them into changes of the store.

    `meta` is the copy being changed; it takes the arrivals in when the revision is closed. Pending records of the
    ledger are always among the arrivals: whichever commit comes next carries them.
    """

    def __init__(self, ledger: Ledger, *, created: bool = False) -> None:
        self.ledger = ledger
        self.store = ledger.store
        self.home = ledger.store  # where the changes go; another store only while the stream moves
        self.meta = copy.copy(ledger.meta)
        self.created = created
        self.must_commit = created  # the durable store has to hear of it, whatever the class
        self.arrivals: list[Record] = list(ledger.pending)
        self.arrived_bytes = ledger.pending_bytes
        self.fresh: list[Record] = []  # arrivals that nobody has seen yet
        self.shown: list[Record] = []  # arrivals of this turn that were acknowledged before the commit
        self.closed = False
        self.keys: list[tuple[str, FirstReceipt]] = list(ledger.pending_keys.items())
        self.changes: list[Change] = []
        self.evicted: Counter[Loss] = Counter()
        self.gone: set[int] = set()  # committed seqs removed from the middle
        self.removed_count = 0
        self._start = 0  # arrivals before this one were evicted
        self._rewritten: dict[bytes, list[Record] | None] = {}
        self._dead: list[bytes] = []
        self._view: View | None = None

    @contextmanager
    def reading(self) -> Iterator[View]:
        """A view of the stream's store, shared by nested steps; it must be left before the commit."""
        if self._view is not None:
            yield self._view
            return
        with self.store.view() as view:
            self._view = view
            try:
                yield view
            finally:
                self._view = None

    def arrive(self, records: list[Record], size: int) -> None:
        self.arrivals += records
        self.fresh += records
        self.arrived_bytes += size

    # -- losing the oldest

    def oldest(self) -> Entry | None:
        """The oldest live record, committed or arriving."""
        if self.meta.count > 0 or self.gone:  # with nothing left alive, what is gone may still hold its chunk back
            front = self.front()
            while front.entries or self._load(front):
                if front.entries[0].seq not in self.gone:
                    return front.entries[0]
                self._pop(front)
        if self._start < len(self.arrivals):
            record = self.arrivals[self._start]
            return Entry(record.seq, record.ts, record.size, record.subject)
        return None

    def lose_oldest(self, entry: Entry, loss: Loss) -> None:
        """Evict the record that `oldest` gave."""
        if entry.seq > self.ledger.meta.head:
            self._start += 1
            self.arrived_bytes -= entry.size
        else:
            self._pop(self.front())
            self.meta.count -= 1
            self.meta.bytes -= entry.size
        if self.meta.settings.latest_per_subject and entry.subject is not None:
            self.changes.append(subject_removal(self.meta.id, entry.subject, entry.seq))
        self.meta.evict(entry.seq, 1, loss)
        self.evicted[loss] += 1

    def lose_chunk(self, chunk: Chunk, loss: Loss) -> None:
        """Evict a whole committed chunk by its header."""
        self._dead.append(chunk.key)
        self.meta.count -= chunk.count
        self.meta.bytes -= chunk.bytes
        self.meta.evict(chunk.last, chunk.count, loss)
        self.evicted[loss] += chunk.count

    def declare_lost(self, upto: int, loss: Loss) -> None:
        """Give out the seqs up to `upto` as lost. Nothing arrives in the same revision."""
        assert not self.arrivals
        self.meta.lose(upto, loss)
        self.ledger.assigned = max(self.ledger.assigned, upto)
        if len(self.meta.lost) <= limits.LOST_RANGES_MAX:
            return
        # Too many to keep apart: what is live before the oldest is evicted, and its range joins the floor.
        oldest_gap = self.meta.lost[0]
        oldest = self.oldest()
        while oldest is not None and oldest.seq < oldest_gap.first:
            self.lose_oldest(oldest, oldest_gap.loss)
            oldest = self.oldest()
        if self.meta.evict_floor <= oldest_gap.last:
            self.meta.evict(oldest_gap.last, 0, oldest_gap.loss)

    def skippable(self) -> bool:
        """Whether whole chunks may be evicted unread."""
        return not self.gone and not self.meta.settings.latest_per_subject and self.meta.count > 0

    def front(self) -> Front:
        front = self.ledger.front
        if front is None:
            front = self.ledger.front = Front(self.ledger.name, self.meta.id, self.ledger.meta.earliest)
        return front

    @property
    def live_count(self) -> int:
        return self.meta.count + len(self.arrivals) - self._start

    @property
    def live_bytes(self) -> int:
        return self.meta.bytes + self.arrived_bytes

    # -- voluntary removal

    def remove(self, seqs: Iterable[int], matches: Callable[[Record], bool] | None = None) -> None:
        """Remove committed live records, those that match; seqs that are none are passed over."""
        with self.reading() as view:
            for seq in sorted(seqs):
                self._remove_one(view, seq, matches)

    def remove_from(self, chunk: Chunk, keep: list[Record], removed: Sequence[Record]) -> None:
        """The same by a caller who has read the chunk: `keep` stays, `removed` were live in it."""
        self._rewritten[chunk.key] = keep or None
        self._count_out(removed)

    def remove_arrivals(self, seqs: set[int]) -> None:
        """Arrivals replaced by later arrivals: they keep their seq and are never stored."""
        kept = [record for record in self.arrivals if record.seq not in seqs]
        count = len(self.arrivals) - len(kept)
        self.removed_count += count
        self.meta.removed += count
        self.arrived_bytes -= sum(record.size for record in self.arrivals if record.seq in seqs)
        self.arrivals = kept

    # -- closing

    def close(self, *, resting: bool = False) -> None:
        """Work out floors, counts and every change. `resting`: the process ends, so nothing stays reserved."""
        meta, ledger = self.meta, self.ledger
        brought = max(ledger.assigned - meta.head, 0)
        meta.head = max(meta.head, ledger.assigned)
        meta.last_ts = max(meta.last_ts, ledger.last_ts)
        if self.evicted or self.gone or meta.count == 0:
            meta.earliest = self._first_live()
            meta.fold()
        self._put_records()
        meta.count += len(self.arrivals) - self._start
        meta.bytes += self.arrived_bytes
        for key, row in self.keys:
            self.changes += receipt_puts(meta.id, key, row, meta.settings.dedupe_window_ms)
        self._reserve(max(limits.RESERVE_RECORDS, 2 * brought), resting=resting)
        assert 1 <= meta.evict_floor <= meta.earliest <= meta.head + 1
        assert meta.removed >= 0
        assert meta.count >= 0
        self.closed = True

    def meta_change(self) -> Change:
        key = self.ledger.name.encode()
        return Space.STREAMS, key, metas.encode(key, self.meta)

    @property
    def durable_meta(self) -> bool:
        """Whether the durable store has to hear of this revision."""
        return self.must_commit or self.meta.settings.durability is not Durability.EPHEMERAL

    # -- inside

    def _first_live(self) -> int:
        try:
            oldest = self.oldest()
        except Corrupt:
            return max(self.front().next, self.meta.evict_floor)  # it may hold live records, for all we can read
        return self.meta.head + 1 if oldest is None else oldest.seq

    def _load(self, front: Front) -> bool:
        if self.meta.count == 0:
            return False
        with self.reading() as view:
            return front.load(view)

    def _pop(self, front: Front) -> None:
        dead = front.pop()
        if dead is not None:
            self._dead.append(dead)

    def _remove_one(self, view: View, seq: int, matches: Callable[[Record], bool] | None) -> None:
        if seq < self.meta.earliest or seq in self.gone:
            return
        found = view.floor(Space.RECORDS, PLACE.pack(self.meta.id, seq))
        if found is None or found[0][: ID.size] != ID.pack(self.meta.id):
            return
        chunk = parse(self.ledger.name, *found)
        if chunk.last < seq:
            return
        records = self._rewritten[chunk.key] if chunk.key in self._rewritten else records_of(self.ledger.name, chunk)
        removed = [record for record in records or () if record.seq == seq]
        if removed and (matches is None or matches(removed[0])):
            keep = [record for record in records or () if record.seq != seq and record.seq >= self.meta.earliest]
            self.remove_from(chunk, keep, removed)

    def _count_out(self, removed: Sequence[Record]) -> None:
        self.gone.update(record.seq for record in removed)
        self.removed_count += len(removed)
        self.meta.count -= len(removed)
        self.meta.bytes -= sum(record.size for record in removed)
        self.meta.removed += len(removed)
        if self.meta.settings.latest_per_subject:
            self.changes += [
                subject_removal(self.meta.id, record.subject, record.seq)
                for record in removed
                if record.subject is not None
            ]

    def _put_records(self) -> None:
        meta = self.meta
        for key, records in self._rewritten.items():
            value = None if records is None else chunks.encode(key, records, sum(record.size for record in records))
            self.changes.append((Space.RECORDS, key, value))
        self.changes += [(Space.RECORDS, key, None) for key in self._dead[: limits.PURGE_RECORDS_MAX]]
        meta.leftovers = meta.leftovers or len(self._dead) > limits.PURGE_RECORDS_MAX
        stored = self.arrivals[self._start :] if self._start else self.arrivals
        single = meta.settings.sparse or meta.settings.latest_per_subject > 0
        self.changes += [(Space.RECORDS, *packed) for packed in chunks.pack(meta.id, stored, single=single)]

    def _reserve(self, ahead: int, *, resting: bool) -> None:
        meta = self.meta
        if resting or meta.settings.durability is Durability.FSYNC:
            meta.reserved = meta.head
        elif meta.settings.durability is not Durability.EPHEMERAL:
            meta.reserved = meta.head + ahead
        elif self.must_commit or meta.head > meta.reserved:
            self.must_commit = True
            meta.reserved = meta.head + _EPHEMERAL_RESERVE * ahead
