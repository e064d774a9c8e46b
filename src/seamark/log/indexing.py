"""Keeping the columns of indexed streams: whole blocks of committed history are taken into columns in short steps, and
columns of what is gone are removed. A crash costs at most a block that is begun again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from seamark.errors import Corrupt
from seamark.limits import COLUMN_STEP_RECORDS, PURGE_RECORDS_MAX
from seamark.log.chunk import chunks_from, records_of
from seamark.log.columns import PLACE, Builder, block_of, first_of
from seamark.log.ledger import Ledger, Registry
from seamark.log.store import ID, Change, Space, Store

Write = Callable[[Store, list[Change]], None]


class Indexing:
    """Two chores over all indexed streams."""

    def __init__(self, registry: Registry, write: Write) -> None:
        self._registry = registry
        self._write = write
        self._builders: dict[int, Builder] = {}  # by stream id; what is under construction
        self._skipped: dict[int, int] = {}  # blocks that cannot be read, and are not tried again by this process

    def build(self) -> bool:
        """A step for the first stream that has a whole block without columns. True when there may be more to do."""
        for stream_id in [known for known in self._builders if self._registry.by_id(known) is None]:
            del self._builders[stream_id]  # dropped meanwhile
        return any(ledger.meta.settings.indexed and self._step(ledger) for ledger in self._registry)

    def clear(self) -> bool:
        """Remove columns that lie wholly before what is live."""
        for ledger in self._registry:
            if not ledger.meta.settings.indexed or block_of(ledger.meta.earliest) == 0:
                continue
            start = PLACE.pack(ledger.meta.id, 0, 0)
            stop = PLACE.pack(ledger.meta.id, block_of(ledger.meta.earliest), 0)
            with ledger.store.view() as view:
                dead = list(islice(view.scan(Space.COLUMNS, start, stop), PURGE_RECORDS_MAX))
                changes: list[Change] = [(Space.COLUMNS, key, None) for key, _ in dead]
            if changes:
                self._write(ledger.store, changes)
                return True
        return False

    def _step(self, ledger: Ledger) -> bool:
        meta = ledger.meta
        builder = self._builders.get(meta.id)
        if builder is None:
            block = max(self._next(ledger), block_of(meta.earliest))
            if first_of(block + 1) - 1 > meta.head:
                return False
            builder = self._builders[meta.id] = Builder(block)
        try:
            whole = _feed(ledger, builder)
        except Corrupt:
            whole = True
            self._skipped[meta.id] = builder.block  # it stays without columns, so that readers meet the damage
        if whole:
            del self._builders[meta.id]
            if self._skipped.get(meta.id) != builder.block:
                self._write(ledger.store, builder.changes(meta.id))
        return True

    def _next(self, ledger: Ledger) -> int:
        """The block behind the last one that has columns."""
        prefix = ID.pack(ledger.meta.id)
        with ledger.store.view() as view:
            found = view.floor(Space.COLUMNS, PLACE.pack(ledger.meta.id, 2**64 - 1, 2**16 - 1))
        known = PLACE.unpack(found[0])[1] + 1 if found is not None and found[0][: ID.size] == prefix else 0
        return max(known, self._skipped.get(ledger.meta.id, -1) + 1)


def _feed(ledger: Ledger, builder: Builder) -> bool:
    """Some more records; True when the block is whole."""
    budget = COLUMN_STEP_RECORDS
    start = max(builder.next, ledger.meta.earliest)
    with ledger.store.view() as view:
        for chunk in chunks_from(ledger.name, ledger.meta.id, view, start):
            if chunk.first > builder.end:
                return True
            records = records_of(ledger.name, chunk)
            builder.add(record for record in records if start <= record.seq <= builder.end)
            budget -= chunk.count
            if chunk.last >= builder.end:
                return True
            if budget <= 0:
                return False
    return True
