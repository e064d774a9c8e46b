"""Polygons, point clouds and points, as text and as JSON."""

from __future__ import annotations

import re
from typing import Any

import pytest

from seamark.errors import BadField, BadFilter, SeamarkError
from seamark.log.record import Geometry
from seamark.notify.places import PointCloudField, PolygonField, read_point

SQUARE = "0,0,0,10,10,10,10,0,0,0"
PAIRS = [[0, 0], [0, 10], [10, 10], [10.0, 0], [0, 0]]
POLYGON = PolygonField("polygon", required=True)
CLOUD = PointCloudField("point_cloud", required=True, max_points=3)


@pytest.mark.parametrize("text", [SQUARE, f"({SQUARE})", f" ( {SQUARE} ) ", SQUARE.replace(",", " , ")])
def test_a_polygon_is_kept_as_typed(text: str) -> None:
    assert POLYGON.read(text) == text
    assert POLYGON.geometry(text) == Geometry(text, 0, 0, 10, 10)


def test_a_polygon_in_json() -> None:
    text = "[[0,0],[0,10],[10,10],[10.0,0],[0,0]]"
    assert POLYGON.read_other(PAIRS) == text
    assert POLYGON.geometry(PAIRS) == Geometry(text, 0, 0, 10, 10)
    assert POLYGON.area(PAIRS) == POLYGON.area(SQUARE)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("(50.0,10.0,52.0,10.0,52.0,12.0,50.0,12.0,50.0,10.0", "missing the closing"),
        ("50.0,10.0,52.0,10.0,52.0,12.0,50.0,12.0,50.0,10.0)", "missing the opening"),
        ("", "it is empty"),
        ("()", "empty between the parentheses"),
        ("(0,0,(1,1),2,2,0,0)", "parenthesis inside"),
        ("0,0,1", "odd count"),
        ("0,0,x,1,2,2,0,0", "'x' is not a number"),
        ("91,0,0,1,1,1,91,0", "latitude is outside"),
        ("0,181,0,1,1,1,0,181", "longitude is outside"),
        ("0,0,1,1,0,0", "at least 4 coordinate pairs"),
        ("0,0,0,1,1,1,1,0", "not closed"),
        ("[[0,0],[0,10],[10,10],[0,0]]", "is not a number"),  # pairs are JSON, not text
        ([], "it is empty"),
        ([[0, 0], [0, 1], [1, 1]], "at least 4 coordinate pairs"),
        ([[0, 0], [0, 1], [1, 1], [1, 0]], "not closed"),
        ([[91, 0], [0, 1], [1, 1], [91, 0]], "latitude is outside"),
        ([0, 0, 0, 1, 1, 1, 0, 0], "expected [[lat,lon],...]"),
        ([[0, 0, 0]], "expected [[lat,lon],...]"),
        ([["0", 0]], "expected [[lat,lon],...]"),
        ([[True, 0]], "expected [[lat,lon],...]"),
        ([[]], "expected [[lat,lon],...]"),
        (5, "odd count"),
        (True, "'true' is not a number"),
    ],
)
def test_bad_polygons(value: Any, why: str) -> None:
    for use in (POLYGON.area, POLYGON.geometry, POLYGON.read if isinstance(value, str) else POLYGON.read_other):
        with pytest.raises(SeamarkError, match=re.escape(why)) as caught:
            use(value)
        # Tests of the contract pin these words.
        assert "field 'polygon' must be a valid polygon" in caught.value.message


@pytest.mark.parametrize(("value", "why"), [(None, "cannot be null"), ({}, "constraint object is not supported")])
def test_no_polygons_at_all(value: object, why: str) -> None:
    with pytest.raises(BadField, match=why):
        POLYGON.geometry(value)
    with pytest.raises(BadField, match="does not support constraint filters"):
        POLYGON.constraint({"eq": SQUARE})


def test_clouds() -> None:
    geometry = CLOUD.geometry([[52.5200, 13], [-1, 2.5], [52.52, 13]])
    assert geometry == Geometry("points:[[52.52,13.0],[-1.0,2.5],[52.52,13.0]]", -1, 2.5, 52.52, 13)
    assert CLOUD.geometry([[90, -180]]).text == "points:[[90.0,-180.0]]"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1,2", "must be a JSON array of [lat,lon] points"),
        (None, "must be a JSON array of [lat,lon] points"),
        ({}, "must be a JSON array of [lat,lon] points"),
        ([], "must contain at least one point"),
        ([[0, 0]] * 4, "contains 4 points, maximum is 3"),
        ([[0, 0], [1]], "point 1 is invalid: coordinate must be a two-element array"),
        ([[0, 0, 0]], "point 0 is invalid: coordinate must be a two-element array"),
        ([0, 0], "point 0 is invalid: coordinate must be a two-element array"),
        ([["1", 2]], "latitude must be a number"),
        ([[1, True]], "longitude must be a number"),
        ([[1, None]], "longitude must be a number"),
        ([[91.0, 0]], "latitude 91.0 is outside the valid range [-90, 90]"),
        ([[0, -181]], "longitude -181 is outside the valid range [-180, 180]"),
    ],
)
def test_bad_clouds(value: object, why: str) -> None:
    with pytest.raises(BadField, match=re.escape(why)) as caught:
        CLOUD.geometry(value)
    assert "field 'point_cloud'" in caught.value.message


def test_a_cloud_of_too_many_bytes() -> None:
    big = PointCloudField("point_cloud", required=True)
    point = [-89.12345678901234, -179.12345678901235]
    assert big.geometry([point] * 1_000)
    with pytest.raises(BadField, match="canonical JSON is 205001 bytes, maximum is 61440 bytes"):
        big.geometry([point] * 5_000)


@pytest.mark.parametrize("value", ["5,6", "(5,6)", " ( 5 , 6 ) ", "5.0,+6", [5, 6], [5.0, 6e0]])
def test_points(value: object) -> None:
    point = read_point(value)
    assert (point.lat, point.lon) == (5, 6)


@pytest.mark.parametrize(
    "value",
    ["", "5", "5,6,7", "(5,6", "91,0", "0,181", "nan,0", "0,inf", [5], [5, 6, 7], [91, 0], ["5", 6], [], None, {"eq": "5,6"}, 5, True],
)  # fmt: skip
def test_bad_points(value: object) -> None:
    with pytest.raises((BadField, BadFilter)):
        read_point(value)
