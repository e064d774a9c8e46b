"""Opening: only metadata is read, whatever the size of the store. What a stop without `close` cost is declared here."""

from __future__ import annotations

from seamark.errors import Corrupt
from seamark.log import meta as metas
from seamark.log.admission import Gate
from seamark.log.chunk import corrupt
from seamark.log.commit import NEXT_ID
from seamark.log.ledger import Ledger, Registry
from seamark.log.meta import Meta
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


def reload(registry: Registry, store: Store) -> None:
    """The store came back by itself: where it holds more than we knew, it is right."""
    with store.view() as view:
        for key, value in view.scan(Space.STREAMS, b""):
            ledger = registry.find(key.decode("utf-8", "replace"))
            if ledger is None or ledger.store is not store:
                continue
            try:
                meta = metas.decode(key, value)
            except Damaged as damage:
                raise _gone(ledger, damage) from damage
            if meta.instance == ledger.meta.instance and meta.head > ledger.meta.head:
                later = [record for record in ledger.pending if record.seq > meta.head]
                registry.replace(ledger, meta)
                ledger.front = None
                if later:
                    ledger.show(later, sum(record.size for record in later))
                    ledger.assigned = later[-1].seq


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


def _gone(ledger: Ledger, damage: Damaged) -> Corrupt:
    return corrupt(ledger.name, 0, "meta", damage)
