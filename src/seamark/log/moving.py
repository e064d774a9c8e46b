"""A stream whose class changes to or from ephemeral moves its records between two stores."""

from __future__ import annotations

from seamark.errors import WriteFailed
from seamark.log import purge
from seamark.log.commit import Committer
from seamark.log.keys import expiry_put, receipt_of
from seamark.log.revision import Revision
from seamark.log.seal import Damaged
from seamark.log.store import ID, Change, Space, Store, after


def move(committer: Committer, revision: Revision, home: Store) -> None:
    """Commit the revision together with the move. The durable store is written once, so a crash leaves the stream
    wholly before or wholly after."""
    ledger = revision.ledger
    source = ledger.store
    removals, puts = _contents(source, revision)
    revision.home = home
    try:
        if home.durable:
            damaged = committer.commit([revision], puts)[1]
        else:
            home.write(puts)
            damaged = committer.commit([revision], removals)[1]
    except WriteFailed:
        if not home.durable:
            home.write(removals)
        raise
    finally:
        ledger.front = None
    if damaged:
        raise damaged[revision]
    ledger.store = home
    if home.durable:
        source.write(removals)


def _contents(source: Store, revision: Revision) -> tuple[list[Change], list[Change]]:
    """Removals at the source, and the same as puts."""
    prefix = ID.pack(revision.meta.id)
    here: list[Change] = []
    there: list[Change] = []
    with source.view() as view:
        for space in purge.OWNED:
            for key, value in view.scan(space, prefix, after(prefix)):
                here.append((space, key, None))
                there.append((space, key, bytes(value)))
                if space is Space.KEYS:
                    try:
                        created = receipt_of(key, value).created
                    except Damaged:
                        continue
                    there.append(expiry_put(key, created, revision.meta.settings.dedupe_window_ms))
    return here, there
