from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadFilter
from seamark.log.record import Geometry
from seamark.match.shape import HEAVY_VERTICES
from seamark.match.spatial import Point, Polygon, Polygons, geometry_of, geometry_of_value, parse_point, parse_polygon

SQUARE = "0,0,0,10,10,10,10,0,0,0"
STAR = "0,10,-8,-6,10,3,-10,3,8,-6,0,10"  # a pentagram: its middle is wound around twice
BOW_TIE = "0,0,10,10,10,0,0,10,0,0"
SPIKE = "0,0,0,4,4,4,4,2,9,2,4,2,4,0,0,0"  # a square with a line sticking out
FLAT = "0,0,5,5,10,10,0,0"
DOT = "5,5,5,5,5,5,5,5"
EIGHT = "0,0,0,4,4,4,4,8,8,8,8,4,4,4,4,0,0,0"  # two squares that touch in a vertex


@pytest.mark.parametrize(
    "text",
    [SQUARE, f"({SQUARE})", f"  ( {SQUARE} ) ", " 0 , 0,0, 10 ,10,10,10,\t0,0,0", "+0,-0,0e0,1e1,10.,10.0,10,0,.0,0"],
)
def test_one_polygon_however_written(text: str) -> None:
    polygon = parse_polygon(text)
    assert polygon == parse_polygon(SQUARE)
    assert hash(polygon) == hash(parse_polygon(SQUARE))
    assert polygon.text == text
    assert polygon.bounds == (0, 0, 10, 10)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("()", "empty between the parentheses"),
        ("(  )", "empty between the parentheses"),
        ("(0,0,0,1,1,1,0,0", r"missing the closing '\)'"),
        ("0,0,0,1,1,1,0,0)", r"missing the opening '\('"),
        ("(0,0,(0,1),1,1,0,0)", "a parenthesis inside"),
        ("0,0,(0,1),1,1,0,0", "a parenthesis inside"),
        ("((0,0,0,1,1,1,0,0))", "a parenthesis inside"),
        ("0,0,0,1,1,1,0", "odd count"),
        ("0", "odd count"),
        ("0,0,x,1,1,1,0,0", "'x' is not a number"),
        ("0,0,,1,1,1,0,0", "'' is not a number"),
        ("0,0,0,1,1,1,0,0,", "'' is not a number"),
        ("0,0,1_0,1,1,1,0,0", "is not a number"),
        ("0,0,nan,1,1,1,0,0", "'nan' is not a number"),
        ("0,0,inf,1,1,1,0,0", "'inf' is not a number"),
        ("0,0,0x1,1,1,1,0,0", "is not a number"),
        ("0,0,٤,1,1,1,0,0", "is not a number"),
        ("0,0,1e400,1,1,1,0,0", "latitude is outside"),
        ("0,0,90.1,1,1,1,0,0", "latitude is outside"),
        ("0,0,0,-180.1,1,1,0,0", "longitude is outside"),
        ("0,0,1,1,0,0", "at least 4 coordinate pairs, got 3"),
        ("0,0,0,1,1,1,1,0", "not closed"),
        ("0,0,0,1,1,1,0,0.0000001", "not closed"),
    ],
)
def test_each_bad_polygon_is_told_apart(text: str, why: str) -> None:
    with pytest.raises(BadFilter, match=why) as caught:
        parse_polygon(text)
    assert "field 'polygon' must be a valid polygon" in caught.value.message
    assert caught.value.fields == {"field": "polygon"}


def test_the_whole_globe_is_in_range() -> None:
    assert parse_polygon("-90,-180,-90,180,90,180,90,-180,-90,-180").bounds == (-90, -180, 90, 180)


def test_vertices_are_bounded() -> None:
    pairs = limits.POLYGON_VERTICES_MAX + 1
    with pytest.raises(BadFilter, match="more than"):
        parse_polygon(",".join(["1,1"] * pairs))


def test_a_long_bad_text_is_refused_in_linear_time() -> None:
    with pytest.raises(BadFilter, match="not a number"):
        parse_polygon("1" * 200_000 + "x")
    with pytest.raises(BadFilter, match="not a number"):
        parse_polygon("1 " * 100_000)


@pytest.mark.parametrize("text", ["5,6", "(5,6)", " ( 5 , 6 ) ", "5.0,+6"])
def test_points(text: str) -> None:
    point = parse_point(text)
    assert (point.lat, point.lon, point.text) == (5, 6, text)
    assert point == parse_point("5,6")
    assert hash(point) == hash(parse_point("5,6"))
    assert point != parse_polygon(SQUARE)


@pytest.mark.parametrize(
    "text", ["", "5", "5,6,7", "5;6", "(5,6", "5,6)", "91,0", "0,181", "nan,0", "0,inf", "()", "a,b"]
)
def test_bad_points(text: str) -> None:
    with pytest.raises(BadFilter, match="field 'point' must be a valid point"):
        parse_point(text)


def test_latitude_comes_first() -> None:
    tall = parse_polygon("0,0,0,1,80,1,80,0,0,0")
    assert tall.bounds == (0, 0, 80, 1)
    assert tall.shape.contains(70, 0.5)
    assert not tall.shape.contains(0.5, 70)
    assert geometry_of(tall.text) == Geometry(tall.text, 0, 0, 80, 1)


TOUCHING: list[tuple[str, str, bool]] = [
    (SQUARE, SQUARE, True),
    (SQUARE, "10,0,10,10,20,10,20,0,10,0", True),  # shared edge
    (SQUARE, "10,10,10,20,20,20,20,10,10,10", True),  # shared vertex
    (SQUARE, "10,5,20,4,20,6,10,5", True),  # vertex on edge
    (SQUARE, "2,2,2,3,3,3,3,2,2,2", True),  # inside
    (SQUARE, "-5,-5,-5,15,15,15,15,-5,-5,-5", True),  # around
    (SQUARE, "10.0000001,0,11,0,11,5,10.0000001,0", False),
    ("0,0,0,10,10,10,10,9,1,9,1,0,0,0", "2,1,2,8,9,8,9,1,2,1", False),  # boxes overlap, areas do not
    (SQUARE, "0,170,0,180,10,180,10,170,0,170", False),
    ("0,170,0,180,10,180,10,170,0,170", "0,-180,0,-170,10,-170,10,-180,0,-180", False),  # no antimeridian
    (STAR, "-1,-1,-1,1,1,1,1,-1,-1,-1", True),  # wholly in the middle: non-zero winding
    (STAR, "8,8,8,9,9,9,8,8", False),  # between two tips
    (BOW_TIE, "5,4,5.1,3,4.9,3,5,4", False),  # the open side of the bow tie
    (BOW_TIE, "5,5,4,5,4,5.1,5,5", True),  # its crossing
    (SPIKE, "7,2,8,3,8,2.5,7,2", True),  # the line that sticks out is boundary
    (SPIKE, "7,2.1,8,3,8,2.5,7,2.1", False),
    (FLAT, "3,3,3,4,4,4,3,3", True),
    (FLAT, "3,4,3,5,4,5,3,4", False),
    (DOT, SQUARE, True),
    (DOT, "5,5,6,6,6,5,5,5", True),
    (DOT, "5.1,5,6,6,6,5,5.1,5", False),
    (EIGHT, "4,4,4,3.5,4.5,3.5,4,4", True),
    (EIGHT, "5,2,6,2,6,3,5,2", False),
]


@pytest.mark.parametrize(("one", "other", "answer"), TOUCHING)
def test_intersects_includes_the_boundary(one: str, other: str, answer: bool) -> None:
    first, second = parse_polygon(one).shape, parse_polygon(other).shape
    assert first.intersects(second) is answer
    assert second.intersects(first) is answer
    first.prepare()
    assert first.intersects(second) is answer
    second.prepare()
    assert second.intersects(first) is answer


INSIDE: list[tuple[str, float, float, bool]] = [
    (SQUARE, 5, 5, True),
    (SQUARE, 0, 5, False),  # edge
    (SQUARE, 0, 0, False),  # vertex
    (SQUARE, 10, 10, False),
    (SQUARE, 10.0000001, 5, False),
    (SQUARE, 1e-12, 1e-12, True),
    (STAR, 0, 0, True),
    (STAR, 0, 3, False),  # on a segment of the ring, though inside all around
    (STAR, 0, 6, True),  # in a tip
    (STAR, 8, 8, False),
    (BOW_TIE, 5, 2, False),
    (BOW_TIE, 5, 5, False),  # the crossing
    (SPIKE, 7, 2, False),
    (SPIKE, 2, 2, True),
    (FLAT, 5, 5, False),
    (FLAT, 3, 3, False),
    (DOT, 5, 5, False),
    (EIGHT, 4, 4, False),
    (EIGHT, 2, 2, True),
    (EIGHT, 6, 6, True),
]


@pytest.mark.parametrize(("text", "lat", "lon", "answer"), INSIDE)
def test_contains_is_strict(text: str, lat: float, lon: float, answer: bool) -> None:
    shape = parse_polygon(text).shape
    assert shape.contains(lat, lon) is answer
    shape.prepare()
    assert shape.contains(lat, lon) is answer


def test_heavy_is_about_vertices() -> None:
    many = ",".join(f"{n / 100},0" for n in range(HEAVY_VERTICES)) + ",0,50,0,0"
    assert parse_polygon(many).shape.heavy
    assert not parse_polygon(SQUARE).shape.heavy


@given(st.lists(st.integers(-3, 3), min_size=6, max_size=16).filter(lambda numbers: len(numbers) % 2 == 0))
def test_no_ring_ever_raises(numbers: list[int]) -> None:
    shape = parse_polygon(",".join(map(str, [*numbers, *numbers[:2]]))).shape
    square = parse_polygon("-1,-1,-1,1,1,1,1,-1,-1,-1").shape
    assert shape.intersects(square) is square.intersects(shape)
    assert shape.intersects(shape)
    for vertex in zip(numbers[0::2], numbers[1::2], strict=True):
        assert not shape.contains(*vertex)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (SQUARE, (0, 0, 10, 10)),
        ({"type": "Polygon", "coordinates": [[[0, 0], [0, 50], [10.5, 50], [0, 0]]]}, (0, 0, 10.5, 50)),
        ({"type": "Polygon", "coordinates": [[[0, 0], [0, 50], [10, 50]]]}, (0, 0, 10, 50)),  # closed for them
        ({"type": "Polygon", "coordinates": [[[0, 170], [0, 50], [10, 50]], "holes"]}, (0, 50, 10, 170)),  # lat first
        ({"type": "Polygon", "coordinates": [[[0, 0], [0, 50]]]}, None),
        ({"type": "Polygon", "coordinates": [[[170, 0], [0, 50], [10, 50]]]}, None),
        ({"type": "Polygon", "coordinates": [[[0, 0, 7], [0, 50, 7], [10, 50, 7]]]}, None),
        ({"type": "Polygon", "coordinates": [[[True, 0], [0, 50], [10, 50]]]}, None),
        ({"type": "Polygon", "coordinates": [[["0", 0], [0, 50], [10, 50]]]}, None),
        ({"type": "Polygon", "coordinates": [[[10**400, 0], [0, 50], [10, 50]]]}, None),
        ({"type": "Polygon", "coordinates": []}, None),
        ({"type": "Point", "coordinates": [0, 0]}, None),
        ({}, None),
        (None, None),
        (4, None),
        ("nonsense", None),
    ],
)
def test_geometry_from_a_payload(value: object, bounds: tuple[float, float, float, float] | None) -> None:
    geometry = geometry_of_value(value)
    if bounds is None:
        assert geometry is None
        return
    assert geometry is not None
    assert geometry.text is not None
    assert (geometry.min_lat, geometry.min_lon, geometry.max_lat, geometry.max_lon) == bounds
    assert parse_polygon(geometry.text).bounds == bounds


def test_a_payload_ring_is_bounded() -> None:
    ring: list[Any] = [[0, 0], [1, 1]] * limits.POLYGON_VERTICES_MAX
    assert geometry_of_value({"type": "Polygon", "coordinates": [ring]}) is None


def test_polygons_are_kept_within_bounds() -> None:
    polygons = Polygons(bytes_max=3 * len(SQUARE))
    first = polygons.find(SQUARE)
    assert polygons.find(SQUARE) is first
    assert polygons.find("nonsense") is None
    assert len(polygons) == 2
    for step in range(1, 9):
        assert polygons.find(SQUARE.replace("10", f"1{step}")) is not None
        assert len(polygons) <= 4
    assert polygons.find(SQUARE) is not first
    assert polygons.find(SQUARE + " " * 4 * len(SQUARE)) == first  # too big to keep
    assert polygons.find(SQUARE) == first


def test_texts_are_shown() -> None:
    assert repr(Polygon(SQUARE, b"", (0, 0, 0, 0))) == f"Polygon({SQUARE!r})"
    assert repr(Point("5,6", 5, 6)) == "Point('5,6')"
