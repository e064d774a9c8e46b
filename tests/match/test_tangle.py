"""Rings that cross themselves, against shapely's own way of untying them, which is slow and shares no code with ours."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

from seamark.match.cloud import Scatter
from seamark.match.shape import PREPARE_MIN, Shape
from seamark.match.spatial import parse_polygon
from seamark.match.tangle import Tangle, shape_of

Ring = list[tuple[int, int]]
PLACES = st.tuples(st.integers(-4, 4), st.integers(-4, 4))
RINGS = st.lists(PLACES, min_size=3, max_size=9).map(lambda places: [*places, places[0]])
STAR: Ring = [(0, 4), (-3, -3), (4, 1), (-4, 1), (3, -3), (0, 4)]
SQUARE: Ring = [(-1, -1), (-1, 1), (1, 1), (1, -1), (-1, -1)]


def made(ring: Ring) -> Shape:
    return parse_polygon(",".join(f"{lat},{lon}" for lat, lon in ring)).shape


def untied(ring: Ring) -> tuple[Any, Any]:
    """What a ring encloses, and its boundary."""
    solid = shapely.make_valid(shapely.polygons(ring), method="structure", keep_collapsed=False)
    boundary = shapely.points(ring[0]) if len(set(ring)) == 1 else shapely.linestrings(ring)
    return solid, boundary


def touch(one: Ring, other: Ring) -> bool:
    return any(shapely.intersects(left, right) for left in untied(one) for right in untied(other))


@given(RINGS, RINGS)
@example(STAR, SQUARE)
@example(STAR, STAR)
def test_areas_touch(one: Ring, other: Ring) -> None:
    expected = touch(one, other)
    assert made(one).intersects(made(other)) is expected
    assert made(other).intersects(made(one)) is expected


@given(RINGS, st.lists(PLACES, min_size=1, max_size=5))
@example(STAR, [(0, 0)])
def test_places_are_strictly_inside(ring: Ring, places: list[tuple[int, int]]) -> None:
    solid, boundary = untied(ring)
    shape = made(ring)
    lats, lons = (np.array([place[axis] for place in places], dtype=float) for axis in (0, 1))
    expected = [
        bool(shapely.contains_xy(solid, *place) and not shapely.intersects_xy(boundary, *place)) for place in places
    ]
    assert [shape.contains(*place) for place in places] == expected
    assert shape.contains_each(lats, lons).tolist() == expected


@given(RINGS, st.lists(PLACES, min_size=1, max_size=5))
@example(STAR, [(9, 9), (0, 0)])
def test_clouds_touch_where_a_place_does(ring: Ring, places: list[tuple[int, int]]) -> None:
    cloud = Scatter(np.array(places, dtype=float).tobytes(), (-9, -9, 9, 9))
    expected = any(shapely.intersects_xy(part, *place) for part in untied(ring) for place in places)
    assert made(ring).intersects(cloud) is expected
    assert cloud.intersects(made(ring)) is expected
    assert not cloud.contains(*places[0])
    assert not cloud.contains_each(np.zeros(2), np.zeros(2)).any()


@given(RINGS, st.lists(RINGS, min_size=1, max_size=4))
def test_many_at_once(ring: Ring, others: list[Ring]) -> None:
    shapes = [made(other) for other in others]
    simple = [shape for shape in shapes if not shape.tangled] * PREPARE_MIN
    reaches = np.array([*(shape.reach for shape in simple), None], dtype=object)
    expected = [made(ring).intersects(shape) for shape in simple]
    assert made(ring).meets(reaches).tolist() == [*expected, False]


@pytest.mark.parametrize(("towards", "inside"), [(math.inf, True), (None, False), (-math.inf, False)])
def test_a_place_beside_a_long_line_is_on_its_side(towards: float | None, inside: bool) -> None:
    """One step of a double away from it, where the sign of a determinant in doubles is chance."""
    ring = np.array([(0, 0), (80, 160), (80.0, 160.1), (0, 0), (1, 1), (0, 0)])
    shape = shape_of(ring.tobytes(), (0, 0, 80, 160.1))
    assert isinstance(shape, Tangle)
    for lat in (80 / 3, 80 / 7, 79.9, 0.1):
        lon = 2 * lat if towards is None else math.nextafter(2 * lat, towards)
        assert shape.contains(lat, lon) is inside


def test_thousands_of_crossings_are_no_work() -> None:
    """As polygons they are millions of pieces: making them stopped the server for minutes."""
    draw = random.Random(4)
    ring: Any = [(draw.uniform(-80, 80), draw.uniform(-170, 170)) for _ in range(9_000)]
    shape = shape_of(np.array([*ring, ring[0]]).tobytes(), (-80, -170, 80, 170))
    assert shape.tangled
    assert shape.intersects(made(SQUARE))
    assert shape.intersects(shape)
    assert not shape.contains(-85, 0)
    assert not shape.contains(*ring[7])


def saw(teeth: int) -> Ring | Any:
    """Valid, and every segment is beside every other."""
    step = 2e-3
    ring = []
    for tooth in range(teeth):
        ring += [(tooth * step, -tooth * step), (50 + (tooth + 0.5) * step, 50 - (tooth + 0.5) * step)]
    return [*ring, (teeth * step, -teeth * step), (-20, -20), (0.0, 0.0)]


def test_a_ring_that_would_take_long_to_look_through_is_not_looked_through() -> None:
    ring = saw(800)
    shape = made(ring)
    assert shape.tangled
    assert not made(saw(50)).tangled
    round_about = [(50 * math.sin(turn / 900), 50 * math.cos(turn / 900)) for turn in range(5_600)]
    assert not made([*round_about, round_about[0]]).tangled  # type: ignore[list-item]
    polygon = shapely.polygons(ring)
    draw = random.Random(9)
    for _ in range(60):
        lat, lon = draw.uniform(-21, 51), draw.uniform(-21, 51)
        small: Any = [(lat, lon), (lat, lon + 0.001), (lat + 0.001, lon), (lat, lon)]
        assert shape.contains(lat, lon) is bool(shapely.contains_xy(polygon, lat, lon))
        assert shape.intersects(made(small)) is bool(shapely.intersects(polygon, shapely.polygons(small)))
