"""Spatial fields: polygons and point clouds of notifications, and the `point` and `polygon` that watches ask with.

Coordinates are latitude first. A polygon may come as text or as JSON pairs, and is kept in the form in which it came: what is
delivered is what the producer wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from seamark import limits
from seamark.errors import BadField
from seamark.log.record import Geometry
from seamark.match.spatial import (
    Point,
    Polygon,
    geometry_of,
    geometry_of_cloud,
    parse_pairs,
    parse_point,
    parse_polygon,
)
from seamark.notify.fields import Field
from seamark.notify.scalars import ENCODER, scalar_text

POINT = "point"
POLYGON = "polygon"
POINT_CLOUD = "point_cloud"


class PolygonField(Field):
    """A closed ring."""

    handler = "PolygonHandler"
    spatial = True
    __slots__ = ()

    def read(self, text: str) -> str:
        parse_polygon(text, name=self.name)
        return text

    def read_other(self, value: object) -> str:
        return self.area(value).text

    def area(self, value: object) -> Polygon:
        """The polygon that a value stands for. Raises BadFilter or BadField."""
        if isinstance(value, list):
            return parse_pairs(_pairs_text(self.name, value), name=self.name)
        return parse_polygon(scalar_text(self.name, value), name=self.name)

    def geometry(self, value: object) -> Geometry:
        """What a notification carries for it."""
        if isinstance(value, list):
            return geometry_of(_pairs_text(self.name, value), name=self.name, pairs=True)
        return geometry_of(scalar_text(self.name, value), name=self.name)


class PointCloudField(Field):
    """Many points, as JSON pairs; order and repetitions are kept."""

    handler = "PointCloudHandler"
    spatial = True
    __slots__ = ("max_points",)

    def __init__(
        self,
        name: str,
        *,
        required: bool,
        description: str | None = None,
        max_points: int = limits.POINT_CLOUD_POINTS_MAX,
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.max_points = max_points

    def geometry(self, value: object) -> Geometry:
        if not isinstance(value, list):
            raise BadField(f"field '{self.name}' must be a JSON array of [lat,lon] points", field=self.name)
        if not value:
            raise self._no_cloud("must contain at least one point")
        if len(value) > self.max_points:
            raise self._no_cloud(f"contains {len(value)} points, maximum is {self.max_points}")
        for index, pair in enumerate(value):
            why = _fault_of_pair(pair)
            if why is not None:
                raise BadField(f"field '{self.name}' point {index} is invalid: {why}", field=self.name, details=why)
        pairs = [[float(lat), float(lon)] for lat, lon in value]
        text = ENCODER.encode(pairs)
        if len(text) > limits.POINT_CLOUD_BYTES_MAX:
            most = limits.POINT_CLOUD_BYTES_MAX
            raise self._no_cloud(f"canonical JSON is {len(text)} bytes, maximum is {most} bytes")
        return geometry_of_cloud(text.decode())

    def options(self) -> dict[str, object]:
        return {"max_points": self.max_points}

    def _no_cloud(self, why: str) -> BadField:
        return BadField(f"field '{self.name}' point cloud {why}", field=self.name)


def read_point(value: object) -> Point:
    """The point that a watch asks with. Raises BadFilter or BadField."""
    if isinstance(value, dict):
        raise BadField("Field 'point' constraint object is not supported", field=POINT)
    if _is_pair(value):
        text = ",".join(ENCODER.encode(number).decode() for number in value)
    elif isinstance(value, list):
        raise BadField("field 'point' must be a valid point: expected [lat,lon]", field=POINT)
    else:
        text = scalar_text(POINT, value)
    return parse_point(text)


def _pairs_text(name: str, value: list[object]) -> str:
    if not all(map(_is_pair, value)):
        raise BadField(f"field '{name}' must be a valid polygon: expected [[lat,lon],...]", field=name)
    return ENCODER.encode(value).decode()


def _is_pair(value: object) -> TypeGuard[Sequence[int | float]]:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: object) -> TypeGuard[int | float]:
    return type(value) is int or type(value) is float


def _fault_of_pair(pair: object) -> str | None:
    if not isinstance(pair, list) or len(pair) != 2:
        return "coordinate must be a two-element array [lat,lon]"
    for word, number, most in zip(("latitude", "longitude"), pair, (90, 180), strict=True):
        if not _is_number(number):
            return f"{word} must be a number"
        if not -most <= number <= most:
            return f"{word} {number} is outside the valid range [-{most}, {most}]"
    return None
