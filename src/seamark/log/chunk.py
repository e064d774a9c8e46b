"""A chunk: the records one commit brought for one stream, as one stored value behind a fixed header."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

import msgspec

from seamark import limits
from seamark.errors import Corrupt
from seamark.log.record import Record
from seamark.log.seal import SEAL, Buffer, Damaged, checksum
from seamark.log.store import ID, PLACE, Space, View
from seamark.telemetry import events, logs

VERSION = 1
# version, count, last seq, first ts, last ts, bytes of payload and meta
HEADER = struct.Struct(">BxxxIQqqQ")
BODY = SEAL.size + HEADER.size

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])
_log = logs.logger("log")


class Chunk:
    """A proven chunk; its records are decoded when they are asked for. `first` is where it is filed: no record in it is
    older."""

    __slots__ = ("_body", "_records", "bytes", "count", "first", "first_ts", "key", "last", "last_ts", "seal")

    def __init__(self, key: bytes, value: Buffer) -> None:
        if len(value) < BODY or len(key) != PLACE.size:
            raise Damaged("shorter than its header")
        self.seal: int = SEAL.unpack_from(value)[0]
        if self.seal != checksum(key, memoryview(value)[SEAL.size :]):
            raise Damaged("checksum")
        version, self.count, self.last, self.first_ts, self.last_ts, self.bytes = HEADER.unpack_from(value, SEAL.size)
        if version != VERSION:
            raise Damaged(f"format version {version}")
        self.key = key
        self.first: int = PLACE.unpack(key)[1]
        self._body: memoryview | None = memoryview(value)[BODY:]

    @property
    def body_bytes(self) -> int:
        """What is stored of the records; 0 once they are decoded."""
        return 0 if self._body is None else len(self._body)

    def records(self) -> list[Record]:
        """For the first time only while the view that gave the value is open. Not to be changed."""
        if self._body is not None:
            try:
                self._records: list[Record] = _decoder.decode(self._body)
            except msgspec.MsgspecError as error:
                raise Damaged(str(error)) from error
            self._body = None
        return self._records


def encode(key: bytes, records: Sequence[Record], size: int) -> bytearray:
    """The stored value of `records`, which hold `size` bytes of payload and meta."""
    value = bytearray(BODY)
    _encoder.encode_into(records, value, BODY)
    first, last = records[0], records[-1]
    HEADER.pack_into(value, SEAL.size, VERSION, len(records), last.seq, first.ts, last.ts, size)
    SEAL.pack_into(value, 0, checksum(key, memoryview(value)[SEAL.size :]))
    return value


def pack(stream_id: int, records: Sequence[Record], *, single: bool) -> Iterator[tuple[bytes, bytearray]]:
    """Cut records into chunks within the bounds; `single` gives each record its own."""
    records_max = 1 if single else limits.CHUNK_RECORDS_MAX
    start = size = 0
    for index, record in enumerate(records):
        meta = record.meta  # inlined Record.size: this runs for each record that is stored
        grown = size + len(record.payload) + (0 if meta is None else len(meta))
        if index > start and (index - start >= records_max or grown > limits.CHUNK_BYTES_MAX):
            key = PLACE.pack(stream_id, records[start].seq)
            yield key, encode(key, records[start:index], size)
            start, grown = index, grown - size
        size = grown
    if start < len(records):
        key = PLACE.pack(stream_id, records[start].seq)
        yield key, encode(key, records[start:], size)


def parse(stream: str, key: bytes, value: Buffer) -> Chunk:
    """A chunk, or Corrupt told and logged."""
    try:
        return Chunk(key, value)
    except Damaged as damage:
        seq = PLACE.unpack(key)[1] if len(key) == PLACE.size else 0
        raise corrupt(stream, seq, "chunk", damage) from damage


def records_of(stream: str, chunk: Chunk) -> list[Record]:
    try:
        return chunk.records()
    except Damaged as damage:
        raise corrupt(stream, chunk.first, "chunk", damage) from damage


def corrupt(stream: str, seq: int, where: str, damage: Damaged) -> Corrupt:
    """The error to raise for a damaged value, already in the log."""
    _log.error(events.CORRUPT_VALUE, stream=stream, seq=seq, where=where, damage=str(damage))
    return Corrupt(f"a stored value of {stream} is damaged ({where}: {damage})", stream=stream, seq=seq, where=where)


Parse = Callable[[str, bytes, Buffer], Chunk]


def chunks_from(stream: str, stream_id: int, view: View, seq: int, parse: Parse = parse) -> Iterator[Chunk]:
    """Chunks that may hold `seq` or later ones, in order. Raises Corrupt where one is damaged or hidden."""
    start = PLACE.pack(stream_id, seq)
    found = view.floor(Space.RECORDS, start)
    begun = False
    if found is not None and found[0] != start and found[0][:4] == start[:4]:
        before = parse(stream, *found)
        if before.last >= seq:
            yield before
            seq, begun = before.last + 1, True
    for key, value in view.scan(Space.RECORDS, start, PLACE.pack(stream_id, 2**64 - 1)):
        chunk = parse(stream, key, value)
        if chunk.first > seq and not begun:  # later ones follow one that is proven
            check_hole(stream, stream_id, view, seq)
        yield chunk
        seq, begun = chunk.last + 1, True
    check_hole(stream, stream_id, view, seq)


def check_hole(stream: str, stream_id: int, view: View, seq: int) -> None:
    """Where a search finds nothing, nothing may be hidden: a key that was damaged leads searches astray, and stands beside
    the place where they end. Raises Corrupt."""
    ours = ID.pack(stream_id)
    for key, value in view.beside(Space.RECORDS, PLACE.pack(stream_id, seq)):
        if key.startswith(ours):
            parse(stream, key, value)
        elif len(value) >= SEAL.size and SEAL.unpack_from(value)[0] == checksum(
            ours + key[ID.size :], memoryview(value)[SEAL.size :]
        ):
            raise corrupt(stream, seq, "key", Damaged("a chunk is filed under another stream"))
