"""Opening: only metadata is read, whatever the size of the store. What a stop without `close` cost is declared here."""

from __future__ import annotations

from seamark import limits
from seamark.log import meta as metas
from seamark.log import purge
from seamark.log.admission import Gate
from seamark.log.chunk import corrupt
from seamark.log.commit import NEXT_ID
from seamark.log.ledger import Ledger, Registry
from seamark.log.meta import Meta
from seamark.log.protocol import News
from seamark.log.seal import Damaged, unseal
from seamark.log.settings import Durability
from seamark.log.store import ID, Change, Space, Store
from seamark.log.watermarks import Loss
from seamark.telemetry import events, logs

_log = logs.logger("log")


def load(registry: Registry, store: Store, gate: Gate) -> list[Change]:
    """Fill the registry. Returns the changes that make the losses of an unclean stop durable."""
    changes: list[Change] = []
    with store.view() as view:
        raw = view.get(Space.FACTS, NEXT_ID)
        try:
            registry.next_id = 1 if raw is None else ID.unpack(unseal(NEXT_ID, raw))[0]
        except Damaged as damage:
            raise corrupt("", 0, "next_id", damage) from damage
        for key, value in view.scan(Space.STREAMS, b""):
            name = key.decode("utf-8", "replace")
            try:
                meta = metas.decode(key, value)
            except Damaged as damage:
                registry.broken[name] = corrupt(name, 0, "meta", damage)
                continue
            if _recover(meta):
                changes.append((Space.STREAMS, key, metas.encode(key, meta)))
            registry.add(Ledger(name, meta, gate.home(meta.settings)))
    if changes:
        _log.warning(events.CRASH_RECOVERED, streams=len(changes))
    return changes


def reload(registry: Registry, store: Store, gate: Gate) -> list[News]:
    """The store came back by itself: a write that had been refused may have happened after all, and where the store
    differs from what we knew, it is right. Returns what readers have to be told."""
    news: list[News] = []
    found: set[str] = set()
    with store.view() as view:
        for key, value in view.scan(Space.STREAMS, b""):
            name = key.decode("utf-8", "replace")
            found.add(name)
            if name in registry.broken:
                continue
            try:
                meta = metas.decode(key, value)
            except Damaged as damage:
                corrupt(name, 0, "meta", damage)  # told; what we know of it still stands
                continue
            ledger, home = registry.find(name), gate.home(meta.settings)
            if ledger is None:
                if home is not store:
                    _forget(meta)
                registry.add(Ledger(name, meta, home))
            elif _adopt(registry, ledger, meta, home, store):
                news.append(News(name, meta.instance, ledger.marks, None, synced=True))
    for ledger in registry:
        if ledger.name not in found:
            registry.remove(ledger)
            _empty(ledger, store)
            news.append(News(ledger.name, ledger.meta.instance, ledger.marks, (), synced=True, dropped=True))
    return news


def _adopt(registry: Registry, ledger: Ledger, meta: Meta, home: Store, durable: Store) -> bool:
    """Take over what the store says of a stream we know. Returns whether it is something new."""
    assert meta.instance == ledger.meta.instance, "a stream is dropped and made again in two writes"
    if home is not durable and ledger.store is home:
        # Its records are ours; the store knows only its settings and the reservation.
        ledger.meta.settings, ledger.meta.reserved = meta.settings, meta.reserved
        return False
    if home is not durable:
        _forget(meta)
    elif ledger.store is home and meta == ledger.meta:
        return False
    else:
        _empty(ledger, durable)
    later = [record for record in ledger.pending if record.seq > meta.head]
    keys = {key: row for key, row in ledger.pending_keys.items() if row.first > meta.head}
    registry.replace(ledger, meta)
    ledger.store = home
    ledger.front = None
    if later:
        ledger.show(later, sum(record.size for record in later))
        ledger.assigned = later[-1].seq
    ledger.pending_keys.update(keys)
    return True


def _forget(meta: Meta) -> None:
    """What a refused write brought to memory, or moved there, was taken back. What is reserved was never given out."""
    meta.reserved = meta.head
    _recover(meta)


def _empty(ledger: Ledger, durable: Store) -> None:
    """What a stream has in memory, when it has no business there any more."""
    if ledger.store is not durable:
        ledger.store.write(purge.owned(ledger.store, ID.pack(ledger.meta.id), limits.SEQ_MAX))


def _recover(meta: Meta) -> bool:
    """Declare what the reservation says may be lost. Returns whether something changed."""
    if meta.settings.durability is Durability.EPHEMERAL:
        head = max(meta.head, meta.reserved)
        if head == meta.head and not meta.count and meta.earliest == head + 1:
            return False
        meta.count = meta.bytes = 0
        meta.head = meta.reserved = head
        meta.earliest = head + 1
        meta.lost = ()
        meta.removed = 0
        meta.crash_floor = head
        return True
    if meta.reserved <= meta.head:
        return False
    meta.lose(meta.reserved, Loss.CRASH)
    return True
