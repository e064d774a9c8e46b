"""Idempotency keys: a repeat within the stream's window is answered with the first receipt."""

from __future__ import annotations

from itertools import islice

from seamark import limits
from seamark.clock import NS_PER_MS
from seamark.log.chunk import corrupt
from seamark.log.keys import FirstReceipt, expiry_put, idempotency_key, receipt_of
from seamark.log.ledger import Ledger, Registry
from seamark.log.protocol import Receipt
from seamark.log.seal import Damaged, unseal
from seamark.log.store import ID, SEQ, Change, Space, View


def alive(row: FirstReceipt, window_ms: int, now: int) -> bool:
    return now - row.created <= window_ms * NS_PER_MS


def find(ledger: Ledger, view: View, key: str, now: int) -> FirstReceipt | None:
    """The first receipt, when the key was used within the window."""
    row = ledger.pending_keys.get(key)
    if row is None:
        place = idempotency_key(ledger.meta.id, key)
        value = view.get(Space.KEYS, place)
        if value is None:
            return None
        try:
            row = receipt_of(place, value)
        except Damaged as damage:
            raise corrupt(ledger.name, 0, "key", damage) from damage
    return row if alive(row, ledger.meta.settings.dedupe_window_ms, now) else None


def repeat(ledger: Ledger, row: FirstReceipt) -> Receipt:
    return Receipt(
        stream=ledger.name,
        instance=ledger.meta.instance,
        first=row.first,
        last=row.last,
        head=row.head,
        ts=row.ts,
        deduped=True,
    )


def forget(registry: Registry, view: View, now: int) -> list[Change]:
    """A few keys whose window has passed. The window is the one in force now, not the one when the key was filed."""
    changes: list[Change] = []
    for key, sealed in islice(view.scan(Space.EXPIRY, b"", SEQ.pack(max(now, 0))), limits.KEYS_PURGED_PER_COMMIT):
        place = key[SEQ.size :]
        try:
            unseal(key, sealed)
            value = view.get(Space.KEYS, place)
            row = None if value is None else receipt_of(place, value)
        except Damaged:
            continue  # left for `verify` to show; it is never used
        changes.append((Space.EXPIRY, key, None))
        if row is None:
            continue
        ledger = registry.by_id(ID.unpack_from(place)[0])
        window_ms = 0 if ledger is None else ledger.meta.settings.dedupe_window_ms
        if ledger is not None and alive(row, window_ms, now):
            changes.append(expiry_put(place, row.created, window_ms))
        else:
            changes.append((Space.KEYS, place, None))
    return changes
