from __future__ import annotations

import itertools

import pytest

from seamark.log.record import Geometry, Record
from seamark.match.constraint import Constraint, Kind, Op
from seamark.match.filter import EVERYTHING, Area, Filter
from seamark.match.shape import Bounds
from seamark.match.spatial import geometry_of, parse_point, parse_polygon
from seamark.match.subject import Subject
from seamark.match.view import View

SQUARE = "0,0,0,10,10,10,10,0,0,0"
SMALL = "2,2,2,3,3,3,3,2,2,2"


def record(subject: Subject | None = None, *, geometry: Geometry | None = None, node: str | None = None) -> Record:
    return Record(1, 0, b"{}", node=node, subject=subject, geometry=geometry)


def test_everything_is_recognisable_and_free() -> None:
    assert EVERYTHING.everything
    assert Filter() == EVERYTHING
    accept = EVERYTHING.compile()
    assert accept is Filter().compile()
    assert accept(record())
    assert EVERYTHING.matches(record(("a",), node="n"))
    for other in (Filter(subject=()), Filter(exclude_nodes=["n"]), Filter(area=parse_point("1,1"))):
        assert not other.everything
        assert other != EVERYTHING


def test_equal_whatever_the_order() -> None:
    constraints = [
        (1, Constraint(Kind.INT, Op.GTE, (4,))),
        (1, Constraint(Kind.INT, Op.LTE, (9,))),
        (1, Constraint(Kind.FLOAT, Op.LTE, (9,))),
        (0, Constraint(Kind.TEXT, Op.IN, ("b", "a"))),
    ]
    filters = {
        Filter(subject=("x", None), constraints=order, exclude_nodes=nodes, area=parse_polygon(text))
        for order in itertools.permutations(constraints)
        for nodes in (["m", "n"], ["n", "m", "m"])
        for text in (SQUARE, f"({SQUARE})")
    }
    assert len(filters) == 1
    assert Filter(constraints=constraints * 2) == Filter(constraints=constraints)


def test_different_filters_differ() -> None:
    filters = [
        Filter(),
        Filter(subject=()),
        Filter(subject=("a",)),
        Filter(subject=(None,)),
        Filter(constraints=[(0, Constraint(Kind.INT, Op.EQ, (4,)))]),
        Filter(constraints=[(0, Constraint(Kind.FLOAT, Op.EQ, (4,)))]),
        Filter(constraints=[(1, Constraint(Kind.INT, Op.EQ, (4,)))]),
        Filter(area=parse_polygon(SQUARE)),
        Filter(area=parse_polygon(SMALL)),
        Filter(area=parse_point("0,0")),
        Filter(exclude_nodes=["a"]),
    ]
    assert len(set(filters)) == len(filters)
    assert len(set(map(repr, filters))) == len(filters)
    assert filters[0] != "something else"


@pytest.mark.parametrize(
    ("token", "answer"),
    [("5", True), ("+5", True), ("4", False), ("5.0", False), ("", False), ("*", False), ("five", False)],
)
def test_a_constraint_reads_the_token_back(token: str, answer: bool) -> None:
    wanted = Filter(subject=("x", None), constraints=[(1, Constraint(Kind.INT, Op.BETWEEN, (5, 9)))])
    assert wanted.matches(record(("x", token))) is answer
    assert not wanted.matches(record(("y", token)))


def test_a_missing_token_satisfies_nothing() -> None:
    wanted = Filter(constraints=[(1, Constraint(Kind.INT, Op.GTE, (0,)))])
    assert wanted.matches(record(("x", "5")))
    assert not wanted.matches(record(("5",)))
    assert not wanted.matches(record())


def test_text_is_compared_in_lower_case() -> None:
    wanted = Filter(constraints=[(0, Constraint(Kind.TEXT, Op.IN, ("OD", "dt")))])
    assert [wanted.matches(record((token,))) for token in ("od", "OD", "Dt", "x", "*", "")] == [True] * 3 + [False] * 3


def test_excluded_nodes() -> None:
    wanted = Filter(exclude_nodes=["a", "b"])
    assert [wanted.matches(record(node=node)) for node in ("a", "b", "c", None)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("area", "geometry", "answer"),
    [
        (parse_polygon(SQUARE), geometry_of(SMALL), True),
        (parse_polygon(SQUARE), None, False),
        (parse_polygon(SQUARE), Geometry(None, 2, 2, 3, 3), False),  # bounds alone never pass
        (parse_polygon(SQUARE), Geometry("nonsense", 2, 2, 3, 3), False),
        (parse_polygon(SQUARE), Geometry(SMALL, 20, 20, 30, 30), False),  # the stored bounds count too
        (parse_polygon(SQUARE), Geometry(SMALL, float("nan"), 2, 3, 3), False),
        (parse_point("2.5,2.5"), geometry_of(SMALL), True),
        (parse_point("2.5,2.5"), geometry_of(SQUARE), True),
        (parse_point("2,2.5"), geometry_of(SMALL), False),  # on an edge
        (parse_point("2.5,2.5"), Geometry(None, 2, 2, 3, 3), False),
        (parse_point("2.5,2.5"), Geometry(SMALL, 20, 20, 30, 30), False),
        (parse_point("2.5,2.5"), None, False),
    ],
)
def test_areas(area: Area, geometry: Geometry | None, answer: bool) -> None:
    wanted = Filter(area=area)
    assert wanted.matches(record(geometry=geometry)) is answer
    assert wanted.compile()(record(("a",), geometry=geometry)) is answer
    assert wanted.holds(View(record(geometry=geometry))) is answer


def test_bounds_are_tested_before_shapes() -> None:
    class Watched(View):
        __slots__ = ()

        @property
        def shape(self) -> None:
            raise AssertionError("the boxes do not touch")

    far: Bounds = (40, 40, 50, 50)
    assert not Filter(area=parse_polygon(SQUARE)).holds(Watched(record(geometry=Geometry(SMALL, *far))))


def test_all_parts_must_hold() -> None:
    wanted = Filter(
        subject=("x", None),
        constraints=[(1, Constraint(Kind.INT, Op.GT, (4,)))],
        area=parse_polygon(SQUARE),
        exclude_nodes=["n"],
    )
    good, near = geometry_of(SMALL), geometry_of(SMALL)
    assert wanted.matches(record(("x", "5"), geometry=good))
    assert wanted.matches(record(("x", "5"), geometry=near, node="m"))
    assert not wanted.matches(record(("x", "5"), geometry=good, node="n"))
    assert not wanted.matches(record(("x", "4"), geometry=good))
    assert not wanted.matches(record(("z", "5"), geometry=good))
    assert not wanted.matches(record(("x", "5")))
