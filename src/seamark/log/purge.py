"""What is gone and still takes room: the data of dropped streams, and chunks below a floor. Removed in bounded steps
that a crash only delays."""

from __future__ import annotations

from copy import copy
from itertools import islice

from seamark import limits
from seamark.log import meta as metas
from seamark.log.chunk import Chunk
from seamark.log.ledger import Ledger
from seamark.log.seal import Damaged, seal
from seamark.log.store import ID, PLACE, Change, Space, Store, after

OWNED = (Space.RECORDS, Space.KEYS, Space.SUBJECTS, Space.COLUMNS)


def drop_changes(ledger: Ledger) -> list[Change]:
    """Metadata goes at once; the rest is noted for purging."""
    key = ID.pack(ledger.meta.id)
    return [(Space.STREAMS, ledger.name.encode(), None), (Space.DROPPED, key, seal(key, ledger.name.encode()))]


def step_dropped(store: Store) -> list[Change]:
    """The next part of dropped streams' data to remove; empty when there is none."""
    with store.view() as view:
        for key, _ in view.scan(Space.DROPPED, b""):
            changes = owned(store, key, limits.PURGE_RECORDS_MAX)
            return changes or [(Space.DROPPED, key, None)]
    return []


def owned(store: Store, stream_key: bytes, count_max: int) -> list[Change]:
    """Removals of what belongs to one stream id, beside its metadata."""
    changes: list[Change] = []
    with store.view() as view:
        for space in OWNED:
            room = count_max - len(changes)
            changes += [(space, key, None) for key, _ in islice(view.scan(space, stream_key, after(stream_key)), room)]
    return changes


def step_leftovers(ledger: Ledger) -> tuple[list[Change], bool]:
    """The next chunks below the floor to remove, and whether there are more. With the last goes the note of them."""
    meta = ledger.meta
    changes: list[Change] = []
    with ledger.store.view() as view:
        span = view.scan(Space.RECORDS, PLACE.pack(meta.id, 0), PLACE.pack(meta.id, meta.earliest))
        for key, value in islice(span, limits.PURGE_RECORDS_MAX):
            try:
                if Chunk(key, value).last >= meta.earliest:
                    break
            except Damaged:
                break  # where it ends is not known; `verify` shows it
            changes.append((Space.RECORDS, key, None))
    more = len(changes) == limits.PURGE_RECORDS_MAX
    if not more:
        done = copy(meta)
        done.leftovers = False
        name = ledger.name.encode()
        changes.append((Space.STREAMS, name, metas.encode(name, done)))
    return changes, more
