"""The oldest live records of a stream, kept at hand so that retention costs nothing while nothing expires."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from seamark.log.chunk import Chunk, chunks_from, records_of
from seamark.log.store import View


class Entry(NamedTuple):
    """What retention needs to know of a record."""

    seq: int
    ts: int
    size: int
    subject: tuple[str, ...] | None


class Front:
    """Committed live records from the earliest on, read chunk by chunk. Dropped when a commit fails or when records
    are removed from the middle; it is only a cache."""

    __slots__ = ("_ends", "_name", "_stream_id", "entries", "next")

    def __init__(self, name: str, stream_id: int, earliest: int) -> None:
        self._name = name
        self._stream_id = stream_id
        self._ends: deque[tuple[int, bytes]] = deque()  # last seq and key of the chunks the entries came from
        self.entries: deque[Entry] = deque()
        self.next = earliest

    def load(self, view: View) -> bool:
        """Fetch the next chunk's records; False when there are no more."""
        for chunk in chunks_from(self._name, self._stream_id, view, self.next):
            for record in records_of(self._name, chunk):
                if record.seq >= self.next:
                    self.entries.append(Entry(record.seq, record.ts, record.size, record.subject))
            self._ends.append((chunk.last, chunk.key))
            self.next = chunk.last + 1
            if self.entries:
                return True
        return False

    def pop(self) -> bytes | None:
        """Consume the oldest entry. Returns the key of its chunk when that chunk is wholly dead now."""
        entry = self.entries.popleft()
        if self._ends and self._ends[0][0] <= entry.seq:
            return self._ends.popleft()[1]
        return None

    def skip(self, view: View, consume: Callable[[Chunk], bool]) -> None:
        """Consume whole chunks by their headers alone, for as long as `consume` takes them."""
        if self.entries:
            return
        for chunk in chunks_from(self._name, self._stream_id, view, self.next):
            if chunk.first < self.next or not consume(chunk):
                break
            self.next = chunk.last + 1
