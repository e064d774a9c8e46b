"""A record that is about many places: found by polygons that touch one of them, and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.log.record import Record
from seamark.match.filter import Filter
from seamark.match.index import FilterIndex
from seamark.match.spatial import POLYGONS, geometry_of_cloud, parse_point, parse_polygon

Pair = tuple[int, int]
SQUARE = "0,0,0,10,10,10,10,0,0,0"


def record(text: str) -> Record:
    return Record(1, 1, b"null", geometry=geometry_of_cloud(text))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[[5,5]]", True),
        ("[[50,50],[5,5],[50,50]]", True),
        ("[[0,0]]", True),  # a vertex
        ("[[0,5]]", True),  # an edge
        ("[[10.0000001,5]]", False),
        ("[[-5,5],[15,5]]", False),  # on both sides: the boxes overlap, the points do not
    ],
)
def test_polygons_find_points(text: str, answer: bool) -> None:
    wanted = Filter(area=parse_polygon(SQUARE))
    index: FilterIndex[str] = FilterIndex()
    index.add(wanted, "a")
    for number in range(20):  # enough for columns
        index.add(Filter(area=parse_polygon(f"80,{number},80,{number + 1},81,{number},80,{number}")), f"far{number}")
    assert wanted.matches(record(text)) is answer
    assert list(index.match(record(text))) == (["a"] if answer else [])


PAIR = st.tuples(st.integers(-5, 5), st.integers(-5, 5))


@given(st.lists(PAIR, min_size=1, max_size=6), st.lists(st.tuples(PAIR, PAIR), min_size=1, max_size=12))
def test_rectangles_find_points_as_anybody_would(
    points: list[tuple[int, int]], corners: list[tuple[Pair, Pair]]
) -> None:
    index: FilterIndex[int] = FilterIndex()
    hits = set()
    for number, ((lat, lon), (height, width)) in enumerate(corners):
        top, right = lat + abs(height) + 1, lon + abs(width) + 1
        area = parse_polygon(f"{lat},{lon},{lat},{right},{top},{right},{top},{lon},{lat},{lon}")
        index.add(Filter(area=area), number)
        if any(lat <= place[0] <= top and lon <= place[1] <= right for place in points):
            hits.add(number)
    text = ",".join(f"[{lat},{lon}]" for lat, lon in points)
    assert set(index.match(record(f"[{text}]"))) == hits


def test_nothing_is_inside_points() -> None:
    assert not Filter(area=parse_point("5,5")).matches(record("[[5,5],[6,6]]"))


def test_a_cloud_is_read_again_from_its_text() -> None:
    geometry = geometry_of_cloud("[[1,2],[-3,4.5]]")
    assert (geometry.min_lat, geometry.min_lon, geometry.max_lat, geometry.max_lon) == (-3, 2, 1, 4.5)
    assert geometry.text is not None
    other = POLYGONS.find(geometry.text + " ")
    assert other is None or other.bounds == (-3, 2, 1, 4.5)
    kept = POLYGONS.find(geometry.text)
    assert kept is not None
    assert kept.bounds == (-3, 2, 1, 4.5)
    assert kept.shape is kept.shape


def test_a_polygon_in_json_pairs_is_read_again() -> None:
    found = POLYGONS.find("[[0,0],[0,10],[10,10],[10.0,0],[0,0]]")
    assert found == parse_polygon(SQUARE)
    assert POLYGONS.find("[[0,0],[0,10]]") is None
    assert POLYGONS.find("[]") is None
