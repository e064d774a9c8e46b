"""The index answers what asking each filter answers, and both answer what the contract says.

The truth in here shares no code with the room: tokens are read with Fractions, polygons have whole-number vertices and
are compared with exact integer arithmetic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.log.record import Geometry, Record
from seamark.match.constraint import INT_MAX, INT_MIN, Constraint, Kind, Op
from seamark.match.filter import Filter
from seamark.match.index import FilterIndex
from seamark.match.plan import Tuning
from seamark.match.spatial import Point, geometry_of, parse_point, parse_polygon

Vertex = tuple[int, int]
Ring = list[Vertex]

SMALL = Tuning(linear_max=1, tail_max=1, tree_min=2, expand_max=4, facets_max=2, groups_max=2)
TUNINGS = [Tuning(), SMALL, Tuning(linear_max=0, tail_max=0, tree_min=1, expand_max=1, facets_max=0, groups_max=0)]


# -- the truth


def ring_of(text: str) -> Ring:
    numbers = [int(part) for part in text.split(",")]
    return list(zip(numbers[0::2], numbers[1::2], strict=True))


def side(a: Vertex, b: Vertex, p: Vertex) -> int:
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def on_segment(a: Vertex, b: Vertex, p: Vertex) -> bool:
    inside = min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
    return inside and side(a, b, p) == 0


def segments_touch(a: Vertex, b: Vertex, c: Vertex, d: Vertex) -> bool:
    crossing = side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
    ends = on_segment(a, b, c) or on_segment(a, b, d) or on_segment(c, d, a) or on_segment(c, d, b)
    return crossing or ends


def strictly_inside(ring: Ring, p: Vertex) -> bool:
    if any(on_segment(a, b, p) for a, b in pairwise(ring)):
        return False
    winding = 0
    for a, b in pairwise(ring):
        if a[1] <= p[1] < b[1] and side(a, b, p) > 0:
            winding += 1
        elif b[1] <= p[1] < a[1] and side(a, b, p) < 0:
            winding -= 1
    return winding != 0


def rings_touch(one: Ring, other: Ring) -> bool:
    if any(segments_touch(*s, *t) for s, t in product(pairwise(one), pairwise(other))):
        return True
    return strictly_inside(one, other[0]) or strictly_inside(other, one[0])


def value_of(kind: Kind, token: str) -> Any:
    if kind is Kind.TEXT:
        return None if token in ("", "*") else token.lower()
    pattern = r"[+-]?[0-9]+" if kind is Kind.INT else r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    if re.fullmatch(pattern, token) is None:
        return None
    if kind is Kind.INT:
        return int(token) if -(2**63) <= int(token) < 2**63 else None
    number = float(token)
    return None if math.isinf(number) else Fraction(number)


def satisfied(constraint: Constraint, token: str) -> bool:
    value = value_of(constraint.kind, token)
    if value is None:
        return False
    operands = [Fraction(o) if isinstance(o, float) else o for o in constraint.operands]
    first: Any = operands[0]
    last: Any = operands[-1]
    match constraint.op:
        case Op.EQ | Op.IN:
            return value in operands
        case Op.GT:
            return bool(value > first)
        case Op.GTE:
            return bool(value >= first)
        case Op.LT:
            return bool(value < first)
        case Op.LTE:
            return bool(value <= first)
        case Op.BETWEEN:
            return bool(first <= value <= last)


def wants(wanted: Filter, record: Record) -> bool:
    subject = record.subject
    if wanted.subject is not None and (
        subject is None
        or len(subject) != len(wanted.subject)
        or any(want not in (None, token) for want, token in zip(wanted.subject, subject, strict=True))
    ):
        return False
    for position, constraint in wanted.constraints:
        if subject is None or position >= len(subject) or not satisfied(constraint, subject[position]):
            return False
    if record.node is not None and record.node in wanted.exclude_nodes:
        return False
    geometry = record.geometry
    if wanted.area is None:
        return True
    if geometry is None or geometry.text is None or geometry.text == "nonsense":
        return False
    lats, lons = (geometry.min_lat, geometry.max_lat), (geometry.min_lon, geometry.max_lon)
    area = wanted.area
    if isinstance(area, Point):
        boxed = lats[0] <= area.lat <= lats[1] and lons[0] <= area.lon <= lons[1]
        return boxed and strictly_inside(ring_of(geometry.text), (int(area.lat), int(area.lon)))
    boxed = (
        area.bounds[0] <= lats[1]
        and area.bounds[2] >= lats[0]
        and area.bounds[1] <= lons[1]
        and area.bounds[3] >= lons[0]
    )
    return boxed and rings_touch(ring_of(geometry.text), ring_of(area.text))


# -- random filters and records

TOKENS = st.sampled_from(
    ["a", "A", "b", "4", "+4", "04", "4.0", "4e0", "5", "-0", "0", "", "*", "nan", "1e400", "inf", "x.y"]
)
EXTREMES = st.sampled_from(
    [str(n) for n in (INT_MIN, INT_MIN - 1, INT_MAX, INT_MAX + 1, 2**53, 2**53 + 1, -(2**53) - 1)]
)
SUBJECTS = st.none() | st.lists(TOKENS | EXTREMES, max_size=3).map(tuple)
PATTERNS = st.none() | st.lists(st.none() | TOKENS, max_size=3).map(tuple)
NODES = st.sampled_from(["m", "n", "o"])
INTS = st.integers(-1, 6) | st.sampled_from([INT_MIN, INT_MAX, 2**53, 2**53 + 1, -(2**53) - 1])
FLOATS = st.sampled_from([-0.0, 0.0, 4.0, math.nextafter(4.0, 5.0), 5.5, 9007199254740992.0, 1.7976931348623157e308])
WORDS = st.sampled_from(["a", "B", "4", "x.y"])


def _rings(numbers: list[int]) -> str:
    return ",".join(map(str, [*numbers, *numbers[:2]]))


RINGS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=6).map(
    lambda vertices: _rings([number for vertex in vertices for number in vertex])
)
POINTS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda at: parse_point(f"{at[0]},{at[1]}"))


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    kind = draw(st.sampled_from(list(Kind)))
    op = draw(st.sampled_from([Op.EQ, Op.IN] if kind is Kind.TEXT else list(Op)))
    values: st.SearchStrategy[Any] = {Kind.INT: INTS, Kind.FLOAT: FLOATS, Kind.TEXT: WORDS}[kind]
    least, most = {Op.IN: (1, 6), Op.BETWEEN: (2, 2)}.get(op, (1, 1))
    operands = draw(st.lists(values, min_size=least, max_size=most))
    return Constraint(kind, op, tuple(sorted(operands)))


FILTERS = st.builds(
    Filter,
    subject=PATTERNS,
    constraints=st.lists(st.tuples(st.integers(0, 3), constraints()), max_size=3),
    area=st.none() | RINGS.map(parse_polygon) | POINTS,
    exclude_nodes=st.just(()) | st.lists(NODES, max_size=2),
)
GEOMETRIES = st.one_of(
    st.none(),
    RINGS.map(geometry_of),
    RINGS.map(geometry_of),
    RINGS.map(lambda text: Geometry(None, *parse_polygon(text).bounds)),
    st.just(Geometry("nonsense", 0, 0, 6, 6)),
    st.tuples(RINGS, RINGS).map(lambda two: Geometry(two[0], *parse_polygon(two[1]).bounds)),  # stored bounds that lie
)
RECORDS = st.builds(
    Record,
    seq=st.just(1),
    ts=st.just(0),
    payload=st.just(b"{}"),
    node=st.none() | NODES,
    subject=SUBJECTS,
    geometry=GEOMETRIES,
)


def expected(pairs: Iterable[tuple[Filter, int]], record: Record) -> Counter[int]:
    return Counter(token for wanted, token in pairs if wants(wanted, record))


@settings(max_examples=300)
@given(FILTERS, RECORDS)
def test_a_filter_says_what_the_contract_says(wanted: Filter, record: Record) -> None:
    assert wanted.matches(record) is wants(wanted, record)
    assert wanted.compile()(record) is wants(wanted, record)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TUNINGS), st.lists(FILTERS, max_size=24), st.data())
def test_the_index_says_the_same_through_any_adds_and_removes(
    tuning: Tuning, filters: list[Filter], data: st.DataObject
) -> None:
    index: FilterIndex[int] = FilterIndex(tuning=tuning)
    pairs: set[tuple[Filter, int]] = set()
    for step in data.draw(st.lists(st.integers(0, 9), max_size=40)):
        if filters and step < 6:
            pair = data.draw(st.sampled_from(filters)), data.draw(st.integers(0, 3))
            index.add(*pair)
            pairs.add(pair)
        elif pairs and step < 8:
            pair = data.draw(st.sampled_from(sorted(pairs, key=repr)))
            index.remove(*pair)
            pairs.remove(pair)
        else:
            record = data.draw(RECORDS)
            assert Counter(index.match(record)) == expected(pairs, record)
        assert len(index) == len(pairs)
    record = data.draw(RECORDS)
    assert Counter(index.match(record)) == expected(pairs, record)
    for pair in pairs:
        index.remove(*pair)
    assert index.match(record) == []
    assert is_empty(index)


def is_empty(index: FilterIndex[Any]) -> bool:
    return len(index) == 0 and not index._entries and not index._homes and not index._facets


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(TUNINGS), st.lists(FILTERS, min_size=60, max_size=120), st.lists(RECORDS, min_size=5, max_size=5)
)
def test_crowded_buckets(tuning: Tuning, filters: list[Filter], records: list[Record]) -> None:
    """All in one length and under one literal, so that buckets are big enough for every kind of column."""
    crowd = [
        Filter(
            subject=("a", None), constraints=wanted.constraints, area=wanted.area, exclude_nodes=wanted.exclude_nodes
        )
        for wanted in filters
    ]
    index: FilterIndex[int] = FilterIndex(tuning=tuning)
    for token, wanted in enumerate(crowd):
        index.add(wanted, token)
    pairs = list(zip(crowd, range(len(crowd)), strict=True))
    for record, word in product(records, ("4", "0", "b")):
        at = Record(1, 0, b"", node=record.node, subject=("a", word), geometry=record.geometry)
        assert Counter(index.match(at)) == expected(pairs, at)
    for wanted, token in pairs[::2]:
        index.remove(wanted, token)
    for record in records:
        at = Record(1, 0, b"", node=record.node, subject=("a", "4"), geometry=record.geometry)
        assert Counter(index.match(at)) == expected(pairs[1::2], at)
