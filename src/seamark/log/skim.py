"""Skimming: a selective read that passes over the blocks of columns in which nothing can be meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamark.limits import COLUMN_BLOCK_COST
from seamark.log.cache import ReadCache
from seamark.log.chunk import Chunk, corrupt, records_of
from seamark.log.columns import Block, Sieve, block_of, first_of
from seamark.log.record import Record
from seamark.log.seal import Damaged
from seamark.log.store import ID, PLACE, Space, View


class Skim:
    """One stream's blocks, for one condition, within one view."""

    def __init__(self, stream: str, stream_id: int, view: View, sieve: Sieve, cache: ReadCache) -> None:
        self._stream = stream
        self._stream_id = stream_id
        self._view = view
        self._sieve = sieve
        self._cache = cache
        self._chunk: Chunk | None = None
        self._records: dict[int, Record] = {}
        self.spent = 0  # in records that could have been examined instead

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Iterable[int]]]:
        """From `start` on, for as long as there are columns and `stop` is not passed: the last seq that a block speaks
        for, and the seqs in it that may be meant."""
        while start <= stop:
            seqs = self._candidates(start, stop)
            if seqs is None:
                return
            end = min(first_of(block_of(start) + 1) - 1, stop)
            yield end, seqs
            start = end + 1

    def record(self, seq: int) -> Record | None:
        """None when it is not there any more. Raises Corrupt."""
        chunk = self._chunk
        if chunk is None or not chunk.first <= seq <= chunk.last:
            found = self._view.floor(Space.RECORDS, PLACE.pack(self._stream_id, seq))
            if found is None or found[0][: ID.size] != ID.pack(self._stream_id):
                return None
            chunk = self._cache.parse(self._stream, *found)
            if chunk.last < seq:
                return None
            self._cache.held(self._stream, chunk)
            self._chunk = chunk
            self._records = {record.seq: record for record in records_of(self._stream, chunk)}
        return self._records.get(seq)

    def _candidates(self, start: int, stop: int) -> list[int] | None:
        """None when the block has no columns, or none that can be trusted: then it is read through."""
        try:
            block = Block(self._view, self._stream_id, block_of(start))
            if block.summary is None:
                return None
            seqs = block.candidates(self._sieve)
            self.spent += COLUMN_BLOCK_COST + block.asked
        except Damaged as damage:
            corrupt(self._stream, start, "column", damage)
            return None
        within: list[int] = seqs[(seqs >= start) & (seqs <= stop)].tolist()
        return within
