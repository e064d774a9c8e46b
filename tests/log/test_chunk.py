from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import Corrupt
from seamark.log import chunk as chunks
from seamark.log.chunk import Chunk
from seamark.log.engines.memory import MemoryStore
from seamark.log.record import Geometry, Record
from seamark.log.seal import Damaged
from seamark.log.store import PLACE, Space

texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=8)
geometries = st.none() | st.builds(Geometry, texts, *[st.floats(-90, 90)] * 4)
bodies = st.tuples(
    st.binary(max_size=40),
    texts,
    texts,
    st.none() | st.binary(max_size=9),
    st.none() | st.tuples(st.just("s")),
    geometries,
)


def record(seq: int, payload: bytes = b"x", ts: int = 0) -> Record:
    return Record(seq, ts or seq * 10, payload)


@given(st.lists(bodies, min_size=1, max_size=600), st.booleans())
def test_records_survive_packing_in_order_and_within_bounds(drawn: list[tuple[object, ...]], single: bool) -> None:
    records = [Record(5 + n, 100 + n, *body) for n, body in enumerate(drawn)]  # type: ignore[arg-type]
    packed = [Chunk(key, value) for key, value in chunks.pack(7, records, single=single)]
    assert [r for chunk in packed for r in chunk.records()] == records
    for chunk in packed:
        inside = chunk.records()
        assert chunk.count == len(inside) <= (1 if single else limits.CHUNK_RECORDS_MAX)
        assert (chunk.first, chunk.last) == (inside[0].seq, inside[-1].seq)
        assert (chunk.first_ts, chunk.last_ts) == (inside[0].ts, inside[-1].ts)
        assert chunk.bytes == sum(r.size for r in inside)
        assert chunk.bytes <= limits.CHUNK_BYTES_MAX or chunk.count == 1


def test_big_records_close_a_chunk_early() -> None:
    half = b"x" * (limits.CHUNK_BYTES_MAX // 2)
    records = [record(n, half + b"y" * (n == 3)) for n in range(1, 5)]
    assert [Chunk(*packed).count for packed in chunks.pack(1, records, single=False)] == [2, 1, 1]


@given(st.data())
def test_no_flipped_bit_is_ever_served(data: st.DataObject) -> None:
    key = PLACE.pack(3, 1)
    value = chunks.encode(key, [record(1), record(2, b"payload")], 8)
    value[data.draw(st.integers(0, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged):
        Chunk(key, value)


def test_damage_is_told_with_its_place() -> None:
    with pytest.raises(Corrupt) as caught:
        chunks.parse("t", PLACE.pack(3, 9), b"far too short")
    assert caught.value.fields == {"stream": "t", "seq": 9, "where": "chunk"}


def test_reading_from_the_middle_starts_with_the_chunk_that_holds_it() -> None:
    store = MemoryStore()
    for first in (1, 4, 9):
        batch = [record(first), record(first + 1), record(first + 2)]
        store.write([(Space.RECORDS, *packed) for packed in chunks.pack(1, batch, single=False)])
    store.write([(Space.RECORDS, *packed) for packed in chunks.pack(2, [record(1)], single=False)])

    def firsts(seq: int) -> list[int]:
        return [chunk.first for chunk in chunks.chunks_from("t", 1, store, seq)]

    assert firsts(1) == [1, 4, 9]
    assert firsts(3) == [1, 4, 9]
    assert firsts(4) == [4, 9]
    assert firsts(7) == [9]  # 7 and 8 are gone
    assert firsts(12) == []
