"""A stream in memory (`Ledger`), and all of them (`Registry`)."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator

from seamark.errors import Corrupt, StreamNotFound
from seamark.log.front import Front
from seamark.log.keys import FirstReceipt
from seamark.log.meta import Meta
from seamark.log.protocol import StreamState
from seamark.log.record import Record
from seamark.log.settings import Durability
from seamark.log.store import Store
from seamark.log.watermarks import Watermarks


class Ledger:
    """One stream. `meta` is what the store has; `pending` are records that were acknowledged (class disk or memory)
    and are visible, but not committed: normally only within one turn, longer when the store refuses writes."""

    __slots__ = (
        "_marks",
        "assigned",
        "front",
        "last_ts",
        "meta",
        "name",
        "pending",
        "pending_bytes",
        "pending_keys",
        "store",
    )

    def __init__(self, name: str, meta: Meta, store: Store) -> None:
        self.name = name
        self.meta = meta
        self.store = store
        self.pending: list[Record] = []
        self.pending_bytes = 0
        self.pending_keys: dict[str, FirstReceipt] = {}
        self.assigned = meta.head
        self.last_ts = meta.last_ts
        self.front: Front | None = None
        self._marks: Watermarks | None = None

    @property
    def fsync(self) -> bool:
        return self.meta.settings.durability is Durability.FSYNC

    @property
    def head(self) -> int:
        """Last visible seq."""
        return self.pending[-1].seq if self.pending else self.meta.head

    @property
    def marks(self) -> Watermarks:
        marks = self._marks
        if marks is None:
            meta = self.meta
            earliest = meta.earliest if meta.count or not self.pending else self.pending[0].seq
            marks = self._marks = Watermarks(
                head=self.head, synced=meta.head, evict_floor=meta.evict_floor, earliest=earliest
            )
        return marks

    def show(self, records: list[Record], size: int) -> None:
        """Make acknowledged records visible before their commit."""
        self.pending.extend(records)
        self.pending_bytes += size
        self.last_ts = records[-1].ts
        self._marks = None

    def adopt(self, meta: Meta) -> None:
        """The store has taken everything."""
        self.meta = meta
        self.pending = []
        self.pending_bytes = 0
        self.pending_keys.clear()
        self.assigned = meta.head
        self.last_ts = meta.last_ts
        self._marks = None

    def forget_unseen(self) -> None:
        """What was assigned and never shown goes back; its seqs will be given again."""
        self.assigned = self.head
        self.last_ts = self.pending[-1].ts if self.pending else self.meta.last_ts
        self.front = None

    def state(self) -> StreamState:
        meta = self.meta
        return StreamState(
            name=self.name,
            instance=meta.instance,
            settings=meta.settings,
            marks=self.marks,
            count=meta.count + len(self.pending),
            bytes=meta.bytes + self.pending_bytes,
            last_ts=self.last_ts,
        )


class Registry:
    """All streams by name, and the running totals over them."""

    def __init__(self) -> None:
        self._ledgers: dict[str, Ledger] = {}
        self._names: list[str] = []
        self._by_id: dict[int, Ledger] = {}
        self.next_id = 1
        self.broken: dict[str, Corrupt] = {}
        self.records = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._ledgers)

    def __iter__(self) -> Iterator[Ledger]:
        return iter(list(self._ledgers.values()))

    def find(self, name: str) -> Ledger | None:
        """None when there is none. Raises Corrupt for a stream whose metadata is damaged."""
        ledger = self._ledgers.get(name)
        if ledger is None and name in self.broken:
            damage = self.broken[name]
            raise Corrupt(damage.message, **damage.fields)
        return ledger

    def get(self, name: str) -> Ledger:
        ledger = self.find(name)
        if ledger is None:
            raise StreamNotFound(f"there is no stream {name}", stream=name)
        return ledger

    def by_id(self, stream_id: int) -> Ledger | None:
        return self._by_id.get(stream_id)

    def add(self, ledger: Ledger) -> None:
        assert ledger.name not in self._ledgers
        self._ledgers[ledger.name] = ledger
        self._by_id[ledger.meta.id] = ledger
        if not self._names or ledger.name > self._names[-1]:
            self._names.append(ledger.name)
        else:
            insort(self._names, ledger.name)
        self.records += ledger.meta.count
        self.bytes += ledger.meta.bytes

    def remove(self, ledger: Ledger) -> None:
        del self._ledgers[ledger.name]
        del self._by_id[ledger.meta.id]
        del self._names[bisect_right(self._names, ledger.name) - 1]
        self.records -= ledger.meta.count
        self.bytes -= ledger.meta.bytes

    def replace(self, ledger: Ledger, meta: Meta) -> None:
        """A commit: the ledger's durable image changes, and the totals with it."""
        self.records += meta.count - ledger.meta.count
        self.bytes += meta.bytes - ledger.meta.bytes
        ledger.adopt(meta)

    def names(self, prefix: str, after: str) -> Iterator[str]:
        """In order; a string's order is that of its UTF-8 bytes."""
        start = bisect_right(self._names, after) if after else 0
        if prefix > after:
            start = bisect_right(self._names, prefix)
            if start and self._names[start - 1] == prefix:
                start -= 1
        for name in self._names[start:]:
            if not name.startswith(prefix):
                return
            yield name
