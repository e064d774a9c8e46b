"""Involuntary loss: what a stream's bounds on age, count and bytes take from its front.

A damaged chunk at the front stops retention of that stream, and nothing else: what cannot be read is neither served
nor declared lost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from seamark.clock import NS_PER_MS
from seamark.errors import Corrupt
from seamark.log.chunk import Chunk
from seamark.log.ledger import Ledger
from seamark.log.revision import Revision
from seamark.log.watermarks import Loss


def due(ledger: Ledger, now: int) -> bool:
    """Whether the oldest committed record has expired. Cheap while the front is at hand."""
    ttl_ms = ledger.meta.settings.ttl_ms
    if not ttl_ms or not ledger.meta.count:
        return False
    if ledger.front is not None and ledger.front.entries:
        return now - ledger.front.entries[0].ts > ttl_ms * NS_PER_MS
    try:
        oldest = Revision(ledger).oldest()
    except Corrupt:
        return False
    return oldest is not None and now - oldest.ts > ttl_ms * NS_PER_MS


def expire(revision: Revision, now: int) -> None:
    """Evict the prefix that is older than the stream's ttl: strictly older, so a record lives through its last tick."""
    ttl_ms = revision.meta.settings.ttl_ms
    if not ttl_ms:
        return
    oldest_allowed = now - ttl_ms * NS_PER_MS
    with suppress(Corrupt):
        oldest = revision.oldest()
        while oldest is not None and oldest.ts < oldest_allowed:
            revision.lose_oldest(oldest, Loss.TTL)
            _skip(revision, lambda chunk: chunk.last_ts < oldest_allowed, Loss.TTL)
            oldest = revision.oldest()


def trim(revision: Revision) -> None:
    """Evict the oldest until the stream is within its caps."""
    settings = revision.meta.settings
    records_max, bytes_max = settings.cap_records, settings.cap_bytes

    def over() -> bool:
        return bool(
            (records_max and revision.live_count > records_max) or (bytes_max and revision.live_bytes > bytes_max)
        )

    def even_without(chunk: Chunk) -> bool:
        """Whether the last record of the chunk has to go as well."""
        return bool(
            (records_max and revision.live_count - chunk.count >= records_max)
            or (bytes_max and revision.live_bytes - chunk.bytes > bytes_max)
        )

    with suppress(Corrupt):
        while over():
            _skip(revision, even_without, Loss.CAP)
            if not over():
                break
            oldest = revision.oldest()
            assert oldest is not None, "a stream without records is within every cap"
            revision.lose_oldest(oldest, Loss.CAP)


def _skip(revision: Revision, qualifies: Callable[[Chunk], bool], loss: Loss) -> None:
    """Evict whole chunks by their headers, once what was already read from the front is used up."""
    if not revision.skippable() or revision.front().entries:
        return

    def consume(chunk: Chunk) -> bool:
        if not qualifies(chunk):
            return False
        revision.lose_chunk(chunk, loss)
        return True

    front = revision.front()
    with revision.reading() as view:
        front.skip(view, consume)
