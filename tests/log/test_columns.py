from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.log.columns import Block, Builder, Sieve, Skims, Summary, Within, block_of, first_of, hash_of
from seamark.log.engines.memory import MemoryStore
from seamark.log.record import Geometry, Record
from seamark.log.seal import Damaged, seal
from seamark.log.store import Space
from seamark.match.constraint import INT_MAX, INT_MIN, Constraint, Kind, Op, read_token
from seamark.match.filter import Filter

TOKENS = st.sampled_from(["", "a", "b", "07", "7", "oslo"])
DEGREES = st.floats(-180, 180, allow_nan=False)


def record(seq: int, *subject: str, bounds: tuple[float, float, float, float] | None = None) -> Record:
    geometry = None if bounds is None else Geometry("text", *bounds)
    return Record(seq, 0, b"1", subject=subject or None, geometry=geometry)


def built(block: int, *records: Record, stream_id: int = 3) -> Block:
    builder = Builder(block)
    builder.add(records)
    store = MemoryStore()
    store.write(builder.changes(stream_id))
    return Block(store, stream_id, block)


def test_blocks_cover_every_seq_once() -> None:
    size = first_of(1) - first_of(0)
    assert [block_of(seq) for seq in (1, size, size + 1, 2 * size, 2 * size + 1)] == [0, 0, 1, 1, 2]
    assert first_of(block_of(5 * size)) <= 5 * size < first_of(block_of(5 * size) + 1)


def test_a_block_that_was_not_built_is_not_there() -> None:
    assert Block(MemoryStore(), 3, 0).summary is None


def test_tokens_are_found_by_text_and_by_question() -> None:
    first = first_of(2)
    block = built(2, record(first, "oslo", "1"), record(first + 1, "bonn", "9"), record(first + 7, "oslo", "9"))
    assert block.candidates(Sieve(((0, "oslo"),))).tolist() == [first, first + 7]
    assert block.candidates(Sieve(((0, "oslo"), (1, "9")))).tolist() == [first + 7]
    assert block.candidates(Sieve(((1, lambda token: int(token) > 5),))).tolist() == [first + 1, first + 7]
    assert block.candidates(Sieve(((2, "oslo"),))).tolist() == []
    assert block.candidates(Sieve(((0, "paris"),))).tolist() == []


def test_records_without_a_token_or_a_place_are_never_meant() -> None:
    block = built(0, record(1), record(2, "a"), record(3, "a", "b", bounds=(1, 2, 3, 4)))
    assert block.candidates(Sieve(((0, ""),))).tolist() == []
    assert block.candidates(Sieve(((1, "b"),))).tolist() == [3]
    assert block.candidates(Sieve(bounds=(-90, -180, 90, 180))).tolist() == [3]
    assert built(0, record(1, "a")).candidates(Sieve(bounds=(-90, -180, 90, 180))).tolist() == []


@given(st.tuples(DEGREES, DEGREES), st.tuples(DEGREES, DEGREES))
def test_bounds_that_touch_are_always_found(lats: tuple[float, float], lons: tuple[float, float]) -> None:
    south, north = sorted(lats)
    west, east = sorted(lons)
    block = built(0, record(1, bounds=(south, west, north, east)))
    for corner in ((south, west), (south, east), (north, west), (north, east)):
        assert block.candidates(Sieve(bounds=(*corner, *corner))).tolist() == [1]
    assert block.candidates(Sieve(bounds=(north + 1, west, north + 2, east))).tolist() == []


@given(st.lists(st.lists(TOKENS, max_size=3), min_size=1, max_size=20), st.integers(0, 2), TOKENS)
def test_nothing_that_has_the_token_is_missed(subjects: list[list[str]], position: int, wanted: str) -> None:
    block = built(0, *(record(seq, *subject) for seq, subject in enumerate(subjects, 1)))
    has = [seq for seq, subject in enumerate(subjects, 1) if subject[position : position + 1] == [wanted]]
    assert block.candidates(Sieve(((position, wanted),))).tolist() == has
    assert block.candidates(Sieve(((position, lambda token: token == wanted),))).tolist() == has


NUMBERS = st.sampled_from([0, 1, 7, 2**53, 2**53 + 1, INT_MAX, INT_MIN]) | st.integers(INT_MIN, INT_MAX)
NUMERALS = st.one_of(
    TOKENS,
    NUMBERS.map(str),
    NUMBERS.map("{:+020d}".format),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["nan", "inf", "1_0", " 7", "+", ".", "7.", "-0", "1e400", "٧"]),
)


@st.composite
def conditions(draw: st.DrawFn) -> Constraint:
    kind = draw(st.sampled_from([Kind.INT, Kind.FLOAT]))
    one = (
        NUMBERS if kind is Kind.INT else st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 7.0])
    )
    op = draw(st.sampled_from(list(Op)))
    count = {Op.IN: 3, Op.BETWEEN: 2}.get(op, 1)
    return Constraint(kind, op, tuple(sorted(draw(st.lists(one, min_size=count, max_size=count)))))


@given(st.lists(NUMERALS, min_size=1, max_size=12), conditions())
def test_no_number_that_is_meant_is_missed(tokens: list[str], condition: Constraint) -> None:
    sieve = Filter(constraints=[(0, condition)]).sieve()
    assert sieve is not None
    found = built(0, *(record(seq, token) for seq, token in enumerate(tokens, 1))).candidates(sieve).tolist()
    values = [read_token(condition.kind, token) for token in tokens]
    meant = [seq for seq, value in enumerate(values, 1) if value is not None and condition.holds(value)]
    assert set(meant) <= set(found)


def test_numbers_are_told_apart_from_others() -> None:
    block = built(0, *(record(seq, token) for seq, token in enumerate(["1", "007", "oslo", "7.5", "+8", "", "9"], 1)))
    assert block.candidates(Sieve(((0, Within(7, 8)),))).tolist() == [2, 4, 5]
    assert block.candidates(Sieve(((0, Within(1, 9, (1, 8, 20))),))).tolist() == [1, 5]
    assert block.candidates(Sieve(((0, Within(10, 20)),))).tolist() == []
    assert built(0, record(1, "oslo")).candidates(Sieve(((0, Within(-1e9, 1e9)),))).tolist() == []
    assert block.asked == 0


def test_a_block_without_numbers_is_asked_for_each_token() -> None:
    """As blocks were before numbers were kept."""
    builder = Builder(0)
    builder.add([record(1, "7"), record(2, "9"), record(3, "oslo")])
    changes = builder.changes(3)
    summary, *parts, numbers = changes
    key = summary[1]
    old = seal(key, msgspec.msgpack.encode(Summary(1, False))[:-1].replace(b"\x93", b"\x92", 1))
    store = MemoryStore()
    store.write([(Space.COLUMNS, key, old), *parts])
    assert len(parts) == 2
    assert numbers not in parts
    assert Block(store, 3, 0).candidates(Sieve(((0, Within(8, 10)),))).tolist() == [2]


def test_no_hash_stands_for_nothing() -> None:
    assert all(hash_of(token) for token in ("", "a", "*", "\N{SNOWMAN}"))


@pytest.mark.parametrize(
    "ruin",
    [
        lambda store, key: store.write([(Space.COLUMNS, key, b"x" * 70)]),
        lambda store, key: store.write([(Space.COLUMNS, key, b"")]),
    ],
)
def test_a_damaged_column_is_never_believed(ruin: Callable[[MemoryStore, bytes], None]) -> None:
    builder = Builder(0)
    builder.add([record(1, "a", "7", bounds=(1, 1, 2, 2))])
    changes = builder.changes(3)
    assert len(changes) == 7
    for _, key, _ in changes:
        store = MemoryStore()
        store.write(changes)
        ruin(store, key)
        sieve = Sieve(((0, "a"), (0, lambda token: token == "a"), (1, "7"), (1, Within(7, 7))), bounds=(1, 1, 2, 2))
        with pytest.raises(Damaged):
            Block(store, 3, 0).candidates(sieve)


def test_a_condition_says_whether_it_skims() -> None:
    class Condition:
        def sieve(self) -> Sieve | None:
            return None

    assert isinstance(Condition(), Skims)
    assert not isinstance(lambda record: True, Skims)


def test_columns_are_as_long_as_their_block() -> None:
    block = built(0, record(1, "a"))
    assert len(block.hashes(0)) == first_of(1) - first_of(0)
    assert np.count_nonzero(block.hashes(0)) == 1
