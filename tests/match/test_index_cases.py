"""Cases of the index worth a name: exact integers, sharing, coming and going, hostile sets."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import pytest

from seamark.log.record import Geometry, Record
from seamark.match.constraint import INT_MAX, INT_MIN, Constraint, Kind, Op
from seamark.match.filter import EVERYTHING, Filter
from seamark.match.index import FilterIndex
from seamark.match.plan import Tuning
from seamark.match.shape import PREPARE_MIN
from seamark.match.spatial import Polygon, geometry_of, parse_point, parse_polygon

SMALL = Tuning(linear_max=1, tail_max=1, tree_min=2, expand_max=4, facets_max=2, groups_max=2)


def is_empty(index: FilterIndex[Any]) -> bool:
    return len(index) == 0 and not index._entries and not index._homes and not index._facets


def record_at(*subject: str, node: str | None = None, geometry: Geometry | None = None) -> Record:
    return Record(1, 0, b"", node=node, subject=subject, geometry=geometry)


def number(op: Op, *operands: int) -> Constraint:
    return Constraint(Kind.INT, op, operands)


@pytest.mark.parametrize("tuning", [Tuning(), SMALL])
def test_integers_beyond_2_to_53_are_exact_in_columns(tuning: Tuning) -> None:
    index: FilterIndex[tuple[str, int]] = FilterIndex(tuning=tuning)
    edges = [2**53 + step for step in range(-20, 21)] + [INT_MAX, INT_MAX - 1, INT_MIN, INT_MIN + 1]
    for edge in edges:
        for op in (Op.GTE, Op.LTE, Op.GT, Op.LT, Op.EQ):
            index.add(Filter(subject=("x", None), constraints=[(1, number(op, edge))]), (op.value, edge))
    for value in edges:
        answer = Counter(index.match(record_at("x", str(value))))
        assert answer == Counter(
            (op, edge)
            for edge in edges
            for op, yes in [
                ("gte", value >= edge),
                ("lte", value <= edge),
                ("gt", value > edge),
                ("lt", value < edge),
                ("eq", value == edge),
            ]
            if yes
        )


def test_equal_filters_share_an_entry_and_answer_for_each_token() -> None:
    index: FilterIndex[str] = FilterIndex(tuning=SMALL)
    between = [(1, number(Op.BETWEEN, 1, 9))]
    for token in ("one", "two", "three"):
        index.add(Filter(subject=("x", None), constraints=list(between)), token)
    for low in range(1, 9):
        index.add(Filter(subject=("x", None), constraints=[(1, number(Op.GT, low))]), f"gt{low}")
    index.add(Filter(subject=("x", None), constraints=between), "two")  # again: no change
    assert len(index) == 11
    assert len(index._entries) == 9
    assert sorted(index.match(record_at("x", "2"))) == ["gt1", "one", "three", "two"]
    index.remove(Filter(subject=("x", None), constraints=between), "two")
    assert sorted(index.match(record_at("x", "1"))) == ["one", "three"]
    index.remove(Filter(subject=("x", None), constraints=between), "one")
    assert index.match(record_at("x", "1")) == ["three"]


def test_removing_what_is_not_there_is_an_error_and_changes_nothing() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add(EVERYTHING, "one")
    with pytest.raises(KeyError):
        index.remove(EVERYTHING, "two")
    with pytest.raises(KeyError):
        index.remove(Filter(subject=("a",)), "one")
    assert index.match(record_at("a")) == ["one"]
    assert len(index) == 1


def test_tokens_may_be_any_hashable_thing() -> None:
    index: FilterIndex[tuple[int, ...]] = FilterIndex(tuning=SMALL)
    for low in range(20):
        index.add(Filter(constraints=[(0, number(Op.GTE, low))]), (low, low))
    assert sorted(index.match(record_at("2"))) == [(0, 0), (1, 1), (2, 2)]


def test_the_index_does_not_keep_what_was_removed() -> None:
    """Come and go for long: as much is held at the end as when nobody had come and gone."""
    index: FilterIndex[int] = FilterIndex()
    for turn in range(5_000):
        box = f"{turn % 50},0,{turn % 50},5,{turn % 50 + 1},5,{turn % 50},0"
        wanted = Filter(subject=("x", None), area=parse_polygon(box), exclude_nodes=[f"n{turn}"])
        index.add(wanted, turn)
        index.add(Filter(subject=("x", None), constraints=[(1, number(Op.GT, turn))]), turn)
        if turn >= 20:
            old = turn - 20
            box = f"{old % 50},0,{old % 50},5,{old % 50 + 1},5,{old % 50},0"
            index.remove(Filter(subject=("x", None), area=parse_polygon(box), exclude_nodes=[f"n{old}"]), old)
            index.remove(Filter(subject=("x", None), constraints=[(1, number(Op.GT, old))]), old)
    assert len(index) == 40
    (facet,) = index._facets[2].values()
    (bucket,) = facet.buckets.values()
    groups = list(bucket._groups.values())
    assert groups
    assert max(group._size for group in groups) <= 2 * Tuning().tail_max + 60
    assert sum(map(len, groups)) + len(bucket._loose) == 40


def test_many_shapes_of_filter_need_few_look_ups() -> None:
    tuning = Tuning()
    index: FilterIndex[int] = FilterIndex(tuning=tuning)
    shapes = list(product([None, "v"], repeat=9))
    for token, shape in enumerate(shapes):
        index.add(Filter(subject=shape), token)
    assert len(index._facets[9]) <= tuning.facets_max + 9
    assert sorted(index.match(record_at(*["v"] * 9))) == list(range(len(shapes)))
    some = ["v", "w"] * 4 + ["v"]
    answer = [
        token for token, shape in enumerate(shapes) if all(w in (None, t) for w, t in zip(shape, some, strict=True))
    ]
    assert sorted(index.match(record_at(*some))) == answer


def test_an_in_constraint_is_spread_over_buckets_only_while_it_is_small() -> None:
    index: FilterIndex[str] = FilterIndex()
    small = Filter(subject=("x", None), constraints=[(1, number(Op.IN, *range(10)))])
    large = Filter(subject=("x", None), constraints=[(1, number(Op.IN, *range(0, 2_000, 2)))])
    index.add(small, "small")
    index.add(large, "large")
    assert sum(len(facet.buckets) for facet in index._facets[2].values()) == 11
    assert sorted(index.match(record_at("x", "8"))) == ["large", "small"]
    assert index.match(record_at("x", "1998")) == ["large"]
    assert index.match(record_at("x", "1997")) == []
    index.remove(small, "small")
    index.remove(large, "large")
    assert is_empty(index)


def round_ring(vertices: int, radius: float, *, lat: float = 0) -> str:
    turns = [2 * math.pi * n / vertices for n in range(vertices)]
    points = [f"{lat + radius * math.sin(t):.6f},{radius * math.cos(t):.6f}" for t in turns]
    return ",".join([*points, points[0]])


def test_heavy_polygons_on_either_side() -> None:
    areas: list[Polygon] = [parse_polygon(round_ring(n, r)) for n, r in product((4, 60, 900), (5, 20, 40))]
    index: FilterIndex[int] = FilterIndex(tuning=SMALL)
    for token, area in enumerate(areas):
        index.add(Filter(area=area), token)
    index.add(Filter(area=parse_polygon("70,70,70,80,80,80,70,70")), -1)
    for vertices, radius in product((4, 100, 5_000), (1, 30)):
        record = record_at(geometry=geometry_of(round_ring(vertices, radius)))
        assert sorted(index.match(record)) == list(range(len(areas)))


@pytest.mark.parametrize("heavies", [0, 7])
def test_many_areas_about_one_record(heavies: int) -> None:
    """As many as a light record is prepared for, with and without some that are prepared themselves."""
    index: FilterIndex[int] = FilterIndex()
    filters = [
        Filter(area=parse_polygon(round_ring(900 if n < heavies else 8, 0.5 + n / 10, lat=n / 4)))
        for n in range(8 * PREPARE_MIN)
    ]
    for token, wanted in enumerate(filters):
        index.add(wanted, token)
    records = [record_at(geometry=geometry_of(round_ring(n, r, lat=8))) for n, r in product((4, 100), (0.1, 3, 12))]
    for gone in range(len(filters) // 2):
        for record in records:
            wanting = [token for token, wanted in enumerate(filters) if token >= gone and wanted.matches(record)]
            assert sorted(index.match(record)) == wanting
        index.remove(filters[gone], gone)
    assert 0 < len(index.match(records[0])) < len(index.match(records[2]))


def test_excluding_nodes_leaves_the_rest_as_it_is() -> None:
    index: FilterIndex[str] = FilterIndex()
    for n in range(100):
        index.add(Filter(subject=("x", None), exclude_nodes=[f"n{n}"]), f"not n{n}")
    index.add(Filter(subject=("x", None)), "all")
    assert len(index.match(record_at("x", "1"))) == 101
    answer = index.match(record_at("x", "1", node="n7"))
    assert len(answer) == 100
    assert "not n7" not in answer


def test_a_large_in_constraint_is_more_than_its_interval() -> None:
    index: FilterIndex[int] = FilterIndex(tuning=SMALL)
    for token in range(20):
        evens = range(2 * token, 2 * token + 200, 2)
        index.add(Filter(subject=("x", None), constraints=[(1, number(Op.IN, *evens))]), token)
    assert sorted(index.match(record_at("x", "100"))) == list(range(20))
    assert index.match(record_at("x", "101")) == []


@pytest.mark.parametrize("tuning", [Tuning(), SMALL])
def test_stored_bounds_count_whatever_the_shape_says(tuning: Tuning) -> None:
    index: FilterIndex[int] = FilterIndex(tuning=tuning)
    for token in range(20):
        index.add(Filter(area=parse_polygon(f"{token},0,{token},2,{token + 1},2,{token + 1},0,{token},0")), token)
        index.add(Filter(area=parse_point(f"{token}.5,1")), 100 + token)
    whole = "0,-1,0,3,21,3,21,-1,0,-1"
    assert len(index.match(record_at(geometry=geometry_of(whole)))) == 40
    narrow = Geometry(whole, 5.25, 0, 5.75, 2)
    assert sorted(index.match(record_at(geometry=narrow))) == [5, 105]
    assert index.match(record_at(geometry=Geometry(whole, 50, 50, 60, 60))) == []


def test_what_was_removed_from_a_tree_is_not_found() -> None:
    index: FilterIndex[int] = FilterIndex(tuning=Tuning(linear_max=1, tail_max=30, tree_min=4))
    polygons = [parse_polygon(f"{at},0,{at},2,{at + 1},2,{at},0") for at in range(40)]
    for token, area in enumerate(polygons):
        index.add(Filter(area=area), token)
        index.add(Filter(area=parse_point(f"{token}.5,1")), 100 + token)
    whole = record_at(geometry=geometry_of("0,-1,0,3,60,3,60,-1,0,-1"))
    assert len(index.match(whole)) == 80
    for token in range(0, 40, 2):
        index.remove(Filter(area=polygons[token]), token)
        index.remove(Filter(area=parse_point(f"{token}.5,1")), 100 + token)
    odd = list(range(1, 40, 2))
    assert sorted(index.match(whole)) == odd + [100 + token for token in odd]
    index.add(Filter(area=polygons[0]), 0)
    assert sorted(index.match(whole)) == [0, *odd, *(100 + token for token in odd)]


def test_excluded_nodes_hold_in_columns_too() -> None:
    index: FilterIndex[int] = FilterIndex(tuning=SMALL)
    for token in range(20):
        index.add(Filter(constraints=[(0, number(Op.GTE, token))], exclude_nodes=[f"n{token}"]), token)
    assert sorted(index.match(record_at("9", node="n3"))) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
