"""What several readers ask for is decoded once: chunks that are read again and again are kept with their records.

A kept chunk stands for a stored value with exactly its key and seal. It was proven when it was read, and each read that
takes it compares the stored seal first; so a value that was written anew, or is gone, is never answered from here. One
reader on its way through a history leaves nothing behind: a chunk is kept once it was asked for several times.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate

from seamark import limits
from seamark.log.chunk import Chunk, parse, records_of
from seamark.log.record import Record
from seamark.log.seal import SEAL, Buffer

# What Python's own objects add, about: of a record with its times, of a token, of a form's piece.
_RECORD_BYTES = 240
_TOKEN_BYTES = 64
_PIECE_BYTES = 41


class Held:
    """A kept chunk: its records, their running sizes, and the forms that surfaces gave them. Implements `Shared`."""

    __slots__ = ("_cache", "_forms", "chunk", "cost", "ends")

    def __init__(self, cache: ReadCache, chunk: Chunk, cost: int) -> None:
        self._cache = cache
        self._forms: dict[Hashable, list[bytes]] = {}
        self.chunk = chunk
        self.cost = cost
        self.ends = running_sizes(chunk.records())

    def each(self, form: Hashable, make: Callable[[Record], bytes]) -> Sequence[bytes]:
        """See `Shared`."""
        made = self._forms.get(form)
        if made is None:
            made = self._forms[form] = [make(record) for record in self.chunk.records()]
            grown = _size(made)
            if len(self._forms) > limits.READ_CACHE_FORMS_MAX:
                grown -= _size(self._forms.pop(next(iter(self._forms))))
            self._cache.grew(self, grown)
        return made


class ReadCache:
    """Chunks that are kept, those read last at the end. Belongs to one log."""

    def __init__(self, bytes_max: int = limits.READ_CACHE_BYTES) -> None:
        self._bytes_max = bytes_max
        self._held: OrderedDict[bytes, Held] = OrderedDict()
        self._asked: dict[bytes, int] = {}  # how often, of chunks that are not kept
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def parse(self, stream: str, key: bytes, value: Buffer) -> Chunk:
        """The chunk of a stored value, kept or not. Raises Corrupt."""
        held = self._held.get(key)
        if held is not None:
            if len(value) >= SEAL.size and held.chunk.seal == SEAL.unpack_from(value)[0]:
                return held.chunk
            self._drop(key)
        return parse(stream, key, value)

    def held(self, stream: str, chunk: Chunk) -> Held | None:
        """Its place here, if it has one, or has earned it by now. Raises Corrupt."""
        if chunk.count < limits.READ_CACHE_RECORDS_MIN:
            return None
        key = chunk.key
        held = self._held.get(key)
        if held is not None:
            if held.chunk is chunk:
                self._held.move_to_end(key)
                return held
            self._drop(key)
        stored = chunk.body_bytes
        records = records_of(stream, chunk)
        asks = self._asked.pop(key, 0) + 1
        if asks < limits.READ_CACHE_ASKS_MIN:
            self._asked[key] = asks
            if len(self._asked) > limits.READ_CACHE_ASKED_MAX:
                del self._asked[next(iter(self._asked))]
            return None
        return self._keep(chunk, _cost(records, stored))

    def grew(self, held: Held, by: int) -> None:
        """A kept chunk has another form."""
        if self._held.get(held.chunk.key) is held:
            held.cost += by
            self.bytes += by
            self._shrink()

    def _keep(self, chunk: Chunk, cost: int) -> Held | None:
        self._held[chunk.key] = Held(self, chunk, cost)
        self.bytes += cost
        self._shrink()
        return self._held.get(chunk.key)  # unless it is larger than everything

    def _shrink(self) -> None:
        while self.bytes > self._bytes_max:
            self._drop(next(iter(self._held)))

    def _drop(self, key: bytes) -> None:
        self.bytes -= self._held.pop(key).cost


def _cost(records: Sequence[Record], stored: int) -> int:
    """About what decoded records take in memory; all of a chunk are taken to be like its first."""
    tokens = records[0].subject if records else None
    return stored + len(records) * (_RECORD_BYTES + _TOKEN_BYTES * len(tokens or ()))


def _size(form: Sequence[bytes]) -> int:
    return sum(map(len, form)) + _PIECE_BYTES * len(form)


def running_sizes(records: Sequence[Record]) -> array[int]:
    """How much the records before each place hold, and at the end all of them."""
    sizes = [len(record.payload) if record.meta is None else record.size for record in records]
    return array("Q", accumulate(sizes, initial=0))
