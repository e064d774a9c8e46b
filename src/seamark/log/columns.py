"""Columns: what a block of records says in its subjects and bounds, kept beside the records, so that a selective reader of
a long history reads the few records that can be meant and not all of them.

A block is a fixed range of seqs. For each token position it has one hash per seq, the distinct tokens once, and where some of
those are numbers, what they are as doubles; for places, the bounds of each record, rounded outward. Columns only ever say "maybe": whoever finds a seq here reads the record and
asks it. So a record that was removed meanwhile costs one look, and a hash that two tokens share costs nothing but time.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from xxhash import xxh32_intdigest

from seamark.limits import COLUMN_BLOCK_RECORDS, SUBJECT_TOKENS_MAX
from seamark.log.record import Geometry, Record
from seamark.log.seal import Buffer, Damaged, seal, unseal
from seamark.log.store import Change, Space, View

PLACE = struct.Struct(">IQH")  # stream id, block, part
HASHES = np.dtype("<u4")
BOUNDS = np.dtype("<f4")
NUMBERS = np.dtype("<f8")
_SUMMARY = 0  # says that the block is there
_BOUNDS = 1  # four rows: least latitude, least longitude, greatest latitude, greatest longitude
_TOKENS = 2  # and the parts after it: two for each position, hashes and distinct tokens
_NUMBERS = (
    2**15
)  # and the parts after it: one for each position, the numbers that its distinct tokens are, NaN for the others

_COUNT = struct.Struct("<I")
_NUMERIC = frozenset("0123456789+-.")  # what a number begins with

_encoder = msgspec.msgpack.Encoder()

assert _TOKENS + 2 * SUBJECT_TOKENS_MAX <= _NUMBERS <= 2**16 - SUBJECT_TOKENS_MAX


class Summary(msgspec.Struct, array_like=True, frozen=True):
    """How far the columns of a block reach."""

    positions: int
    placed: bool  # some record has bounds
    numbered: bool = False  # numbers are kept; blocks of before there were any have to be asked for each token


_summaries = msgspec.msgpack.Decoder(Summary)


class Within(NamedTuple):
    """A token that has to be a number in a closed interval, and one of some numbers if there are any. Columns compare doubles, so a
    number that differs by less than those tell apart passes as well."""

    low: float
    high: float
    among: tuple[float, ...] = ()

    def hold(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Which of them are meant; NaN never is."""
        held: np.ndarray[Any, Any] = (numbers >= self.low) & (numbers <= self.high)
        return held & np.isin(numbers, self.among) if self.among else held


Question: TypeAlias = str | Within | Callable[[str], bool]


class Sieve(NamedTuple):
    """What a reader's condition asks of columns: a text or a number that a token has to be, or a question to each distinct token;
    and bounds (least latitude, least longitude, greatest latitude, greatest longitude) that a record's have to touch."""

    tokens: tuple[tuple[int, Question], ...] = ()
    bounds: tuple[float, float, float, float] | None = None


@runtime_checkable
class Skims(Protocol):
    """Capability of the condition that a read is given: it can tell what no record that it accepts is without."""

    def sieve(self) -> Sieve | None:
        """None when the columns cannot help."""
        ...


def block_of(seq: int) -> int:
    return (seq - 1) // COLUMN_BLOCK_RECORDS


def first_of(block: int) -> int:
    return block * COLUMN_BLOCK_RECORDS + 1


def hash_of(token: str) -> int:
    """Never 0, which stands for no token."""
    return xxh32_intdigest(token.encode()) or 1


def number_of(token: str) -> float:
    """NaN for a token that is none. Takes a few texts for numbers that the wire would not: those are asked again."""
    if token[:1] not in _NUMERIC:
        return math.nan
    try:
        return float(token)
    except ValueError:
        return math.nan


class Distinct:
    """The distinct tokens of a column, so laid out that one can be read without the others: how many there are, their hashes,
    where each ends, and the texts."""

    def __init__(self, body: Buffer) -> None:
        count = _COUNT.unpack_from(body)[0] if len(body) >= _COUNT.size else -1
        start = _COUNT.size + 2 * HASHES.itemsize * count
        if not 0 <= start <= len(body):
            raise Damaged("shorter than its tokens")
        self.hashes = np.frombuffer(body, HASHES, count, _COUNT.size)
        self._ends = np.frombuffer(body, HASHES, count, _COUNT.size + HASHES.itemsize * count)
        self._texts = memoryview(body)[start:]

    @staticmethod
    def encode(known: dict[str, int]) -> bytes:
        """From tokens and their hashes."""
        texts = [token.encode() for token in known]
        ends = np.cumsum([len(text) for text in texts], dtype=HASHES)
        hashes = np.fromiter(known.values(), HASHES, len(known))
        return b"".join((_COUNT.pack(len(known)), hashes.tobytes(), ends.tobytes(), *texts))

    def token(self, place: int) -> str:
        start = int(self._ends[place - 1]) if place else 0
        try:
            return str(self._texts[start : int(self._ends[place])], "utf-8")
        except UnicodeDecodeError as error:
            raise Damaged(str(error)) from error


class Builder:
    """One block under construction, fed with its records in order."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.next = first_of(block)  # the first seq that was not seen yet
        self._columns: list[np.ndarray[Any, Any]] = []
        self._known: list[dict[str, int]] = []
        self._numbers: list[list[float]] = []
        self._bounds: list[array[float]] = []  # rows as they are stored, exact: they are rounded all at once

    @property
    def end(self) -> int:
        """The last seq of the block."""
        return first_of(self.block + 1) - 1

    def add(self, records: Iterable[Record]) -> None:
        """Records of this block, behind those added before."""
        first = first_of(self.block)
        for record in records:
            offset = record.seq - first
            for position, token in enumerate(record.subject or ()):
                if position == len(self._columns):
                    self._columns.append(np.zeros(COLUMN_BLOCK_RECORDS, HASHES))
                    self._known.append({})
                    self._numbers.append([])
                known = self._known[position]
                number = known.get(token)
                if number is None:
                    number = known[token] = hash_of(token)
                    self._numbers[position].append(number_of(token))
                self._columns[position][offset] = number
            if record.geometry is not None:
                self._place(offset, record.geometry)
            self.next = record.seq + 1

    def changes(self, stream_id: int) -> list[Change]:
        """The finished block as values to store."""
        summary = Summary(len(self._columns), bool(self._bounds), True)
        parts: list[tuple[int, bytes]] = [(_SUMMARY, _encoder.encode(summary))]
        if self._bounds:
            rows = [_outward(row, -math.inf if place < 2 else math.inf) for place, row in enumerate(self._bounds)]
            parts.append((_BOUNDS, b"".join(rows)))
        for position, (column, known) in enumerate(zip(self._columns, self._known, strict=True)):
            parts.append((_TOKENS + 2 * position, column.tobytes()))
            parts.append((_TOKENS + 2 * position + 1, Distinct.encode(known)))
            numbers = np.array(self._numbers[position], NUMBERS)
            if not np.isnan(numbers).all():
                parts.append((_NUMBERS + position, numbers.tobytes()))
        changes: list[Change] = []
        for part, body in parts:
            key = PLACE.pack(stream_id, self.block, part)
            changes.append((Space.COLUMNS, key, seal(key, body)))
        return changes

    def _place(self, offset: int, geometry: Geometry) -> None:
        if not self._bounds:
            self._bounds = [array("d", [math.nan]) * COLUMN_BLOCK_RECORDS for _ in range(4)]
        south, west, north, east = self._bounds
        south[offset] = geometry.min_lat
        west[offset] = geometry.min_lon
        north[offset] = geometry.max_lat
        east[offset] = geometry.max_lon


def _outward(row: array[float], way: float) -> bytes:
    """In half the precision, and never on the inner side of what was exact."""
    rounded = np.nextafter(np.frombuffer(row).astype(BOUNDS), np.float32(way))
    return bytes(rounded.astype(BOUNDS, copy=False).tobytes())


class Block:
    """A stored block. Raises Damaged from any method whose value does not match its seal."""

    def __init__(self, view: View, stream_id: int, block: int) -> None:
        self._view = view
        self._stream_id = stream_id
        self._block = block
        self.asked = 0  # tokens that a question was put to
        body = self._part(_SUMMARY)
        try:
            self.summary = None if body is None else _summaries.decode(body)
        except msgspec.MsgspecError as error:
            raise Damaged(str(error)) from error

    def candidates(self, sieve: Sieve) -> np.ndarray[Any, Any]:
        """Seqs, ascending, of the records that can pass."""
        assert self.summary is not None, "a block that is not there has no candidates"
        mask: np.ndarray[Any, Any] = np.ones(COLUMN_BLOCK_RECORDS, np.bool_)
        for position, wanted in sorted(sieve.tokens, key=_cheap_first):
            if position >= self.summary.positions:
                return np.zeros(0, np.int64)
            if isinstance(wanted, str):
                mask &= self.hashes(position) == np.uint32(hash_of(wanted))
            elif isinstance(wanted, Within):
                self._compare(position, wanted, mask)
            else:
                self._ask(position, wanted, mask)
        if sieve.bounds is not None:
            if not self.summary.placed:
                return np.zeros(0, np.int64)
            mask &= self._touching(sieve.bounds)
        seqs: np.ndarray[Any, Any] = np.flatnonzero(mask) + first_of(self._block)
        return seqs

    def hashes(self, position: int) -> np.ndarray[Any, Any]:
        hashes: np.ndarray[Any, Any] = self._array(_TOKENS + 2 * position, HASHES, 1)[0]
        return hashes

    def distinct(self, position: int) -> Distinct:
        """The distinct tokens of a column."""
        body = self._part(_TOKENS + 2 * position + 1)
        if body is None:
            raise Damaged("the tokens of a column are missing")
        return Distinct(body)

    def numbers(self, position: int, distinct: Distinct) -> np.ndarray[Any, Any]:
        """What the distinct tokens of a column are as numbers."""
        assert self.summary is not None, "a block that is not there has no numbers"
        count = len(distinct.hashes)
        if not self.summary.numbered:
            return np.fromiter((number_of(distinct.token(place)) for place in range(count)), NUMBERS, count)
        body = self._part(_NUMBERS + position)
        if body is None:
            return np.full(count, np.nan, NUMBERS)
        if len(body) != count * NUMBERS.itemsize:
            raise Damaged("a column has more numbers than tokens, or fewer")
        return np.frombuffer(body, NUMBERS)

    def _compare(self, position: int, wanted: Within, mask: np.ndarray[Any, Any]) -> None:
        distinct = self.distinct(position)
        held = wanted.hold(self.numbers(position, distinct))
        mask &= np.isin(self.hashes(position), distinct.hashes[held])

    def _ask(self, position: int, wanted: Callable[[str], bool], mask: np.ndarray[Any, Any]) -> None:
        """Ask about each distinct token that is left, once."""
        distinct = self.distinct(position)
        hashes = self.hashes(position)
        left = np.flatnonzero(np.isin(distinct.hashes, hashes[mask])).tolist()
        self.asked += len(left)
        mask &= np.isin(hashes, distinct.hashes[[place for place in left if wanted(distinct.token(place))]])

    def _touching(self, bounds: tuple[float, float, float, float]) -> np.ndarray[Any, Any]:
        min_lat, min_lon, max_lat, max_lon = bounds
        south, west, north, east = self._array(_BOUNDS, BOUNDS, 4)
        touching: np.ndarray[Any, Any] = (south <= max_lat) & (north >= min_lat) & (west <= max_lon) & (east >= min_lon)
        return touching

    def _array(self, part: int, kind: np.dtype[Any], rows: int) -> np.ndarray[Any, Any]:
        body = self._part(part)
        if body is None or len(body) != rows * COLUMN_BLOCK_RECORDS * kind.itemsize:
            raise Damaged("a column is missing or has another length")
        array: np.ndarray[Any, Any] = np.frombuffer(body, kind).reshape(rows, COLUMN_BLOCK_RECORDS)
        return array

    def _part(self, part: int) -> Buffer | None:
        key = PLACE.pack(self._stream_id, self._block, part)
        value = self._view.get(Space.COLUMNS, key)
        return None if value is None else unseal(key, value)


def _cheap_first(item: tuple[int, Question]) -> int:
    _, wanted = item
    return 0 if isinstance(wanted, str) else 1 if isinstance(wanted, Within) else 2
