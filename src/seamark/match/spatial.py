"""Polygons and points as they come over the wire: `lat,lon,lat,lon,...`, latitude first.

What a record carries is one of three texts: a polygon so written, with or without parentheses; a polygon as compact JSON pairs
`[[lat,lon],...]`; or a point cloud, which is such pairs behind a mark.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from threading import Lock

from seamark import limits
from seamark.errors import BadFilter
from seamark.log.record import Geometry
from seamark.match.cloud import Cloud
from seamark.match.shape import Bounds, Shape
from seamark.match.tangle import shape_of

PAIRS_MIN = 4  # three vertices and the first one again
CLOUD_MARK = "points:"

_NUMBER = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_ONE_NUMBER = re.compile(rf"\s*+{_NUMBER}\s*+")
_NUMBERS = re.compile(rf"\s*+{_NUMBER}\s*+(?:,\s*+{_NUMBER}\s*+)*+")


class Polygon:
    """A closed ring. Two polygons are equal when they have the same vertices in the same order, however written."""

    __slots__ = ("_hash", "_shape", "bounds", "ring", "text")

    def __init__(self, text: str, ring: bytes, bounds: Bounds) -> None:
        self.text = text
        self.ring = ring
        self.bounds = bounds
        self._hash = hash(ring)
        self._shape: Shape | None = None

    @property
    def shape(self) -> Shape:
        """Built on first use."""
        if self._shape is None:
            self._shape = shape_of(self.ring, self.bounds)
        return self._shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polygon) and self.ring == other.ring

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Polygon({self.text!r})"


class Point:
    """One place."""

    __slots__ = ("lat", "lon", "text")

    def __init__(self, text: str, lat: float, lon: float) -> None:
        self.text = text
        self.lat = lat
        self.lon = lon

    @property
    def bounds(self) -> Bounds:
        return (self.lat, self.lon, self.lat, self.lon)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.lat == other.lat and self.lon == other.lon

    def __hash__(self) -> int:
        return hash((self.lat, self.lon))

    def __repr__(self) -> str:
        return f"Point({self.text!r})"


def parse_polygon(text: str, *, name: str = "polygon") -> Polygon:
    """Raises BadFilter, which says exactly what is wrong with the text."""
    return Polygon(text, *_ring(_numbers(_unwrap(text, name), name, "polygon"), name))


def parse_pairs(text: str, *, name: str = "polygon") -> Polygon:
    """A polygon from compact JSON pairs, made by us from what a client sent."""
    if text == "[]":
        raise _bad(name, "polygon", "it is empty")
    return Polygon(text, *_ring(_numbers_of_pairs(text, name), name))


def parse_point(text: str, *, name: str = "point") -> Point:
    inner = text.strip()
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    numbers = _numbers(inner, name, "point")
    if len(numbers) != 2:
        raise _bad(name, "point", f"it needs exactly two numbers, got {len(numbers)}")
    _bounds(numbers, name, "point")
    return Point(text, numbers[0] + 0.0, numbers[1] + 0.0)


def geometry_of(text: str, *, name: str = "polygon", pairs: bool = False) -> Geometry:
    """What a record carries for a polygon: the producer's own text, and its bounds. `pairs`: the text is JSON."""
    polygon = parse_pairs(text, name=name) if pairs else parse_polygon(text, name=name)
    POLYGONS.keep(text, polygon)
    return Geometry(text, *polygon.bounds)


def geometry_of_cloud(text: str) -> Geometry:
    """The same for a point cloud, as compact JSON pairs."""
    cloud = _cloud_of(text)
    marked = CLOUD_MARK + text
    POLYGONS.keep(marked, cloud)
    return Geometry(marked, *cloud.bounds)


def geometry_of_value(value: object) -> Geometry | None:
    """The geometry of a payload's `spatial_geometry`: a polygon text, or a GeoJSON-like polygon whose pairs are
    [lat, lon] (sic), of which the outer ring counts and is closed if need be. None for anything else."""
    text = value if isinstance(value, str) else _text_of_coordinates(value)
    if text is None:
        return None
    try:
        return geometry_of(text)
    except BadFilter:
        return None


class Polygons:
    """The polygons of the geometries seen last, bounded by the bytes of their texts; oldest out first."""

    __slots__ = ("_bytes", "_bytes_max", "_lock", "_polygons")

    def __init__(self, *, bytes_max: int = limits.MATCH_SHAPE_CACHE_BYTES) -> None:
        # A plain dict steps over all that it has lost before it comes to its oldest.
        self._polygons: OrderedDict[str, Polygon | Cloud | None] = OrderedDict()
        self._bytes = 0
        self._bytes_max = bytes_max
        self._lock = Lock()  # history may be read in a thread; hits take no lock

    def __len__(self) -> int:
        return len(self._polygons)

    def find(self, text: str) -> Polygon | Cloud | None:
        """The polygon or the cloud of a stored text, None when it is none."""
        try:
            return self._polygons[text]
        except KeyError:
            pass
        try:
            polygon = _parse_stored(text)
        except BadFilter:
            polygon = None
        self.keep(text, polygon)
        return polygon

    def keep(self, text: str, polygon: Polygon | Cloud | None) -> None:
        """Remember what a text means: whoever checks a record before it is stored saves the matching from parsing it
        again."""
        with self._lock:
            # Another thread may have been here first.
            if text in self._polygons or len(text) > self._bytes_max:
                return
            self._bytes += len(text)
            while self._bytes > self._bytes_max:
                oldest, _ = self._polygons.popitem(last=False)
                self._bytes -= len(oldest)
            self._polygons[text] = polygon


POLYGONS = Polygons()


def _parse_stored(text: str) -> Polygon | Cloud:
    if text.startswith("["):
        return parse_pairs(text)
    if text.startswith(CLOUD_MARK):
        return _cloud_of(text.removeprefix(CLOUD_MARK))
    return parse_polygon(text)


def _cloud_of(text: str) -> Cloud:
    numbers = [number + 0.0 for number in _numbers_of_pairs(text, "point_cloud")]
    return Cloud(array("d", numbers).tobytes(), _bounds(numbers, "point_cloud", "point cloud"))


def _numbers_of_pairs(text: str, name: str) -> list[float]:
    return _numbers(text[2:-2].replace("],[", ","), name, "polygon")


def _ring(numbers: list[float], name: str) -> tuple[bytes, Bounds]:
    if len(numbers) % 2:
        raise _bad(name, "polygon", f"it has an odd count of numbers ({len(numbers)})")
    pairs = len(numbers) // 2
    if pairs > limits.POLYGON_VERTICES_MAX:
        raise _bad(name, "polygon", f"it has more than {limits.POLYGON_VERTICES_MAX} vertices")
    bounds = _bounds(numbers, name, "polygon")
    if pairs < PAIRS_MIN:
        raise _bad(name, "polygon", f"it needs at least {PAIRS_MIN} coordinate pairs, got {pairs}")
    if numbers[:2] != numbers[-2:]:
        raise _bad(name, "polygon", "it is not closed: the first and the last pair must be equal")
    if 0.0 in numbers:
        numbers = [number + 0.0 for number in numbers]  # turns -0.0 into 0.0, so that equal rings have equal bytes
    return array("d", numbers).tobytes(), bounds


def _unwrap(text: str, name: str) -> str:
    inner = text.strip()
    if not inner:
        raise _bad(name, "polygon", "it is empty")
    opened, closed = inner.startswith("("), inner.endswith(")")
    if opened and not closed:
        raise _bad(name, "polygon", "it is missing the closing ')'")
    if closed and not opened:
        raise _bad(name, "polygon", "it is missing the opening '('")
    if opened:
        inner = inner[1:-1].strip()
        if not inner:
            raise _bad(name, "polygon", "it is empty between the parentheses")
    if "(" in inner or ")" in inner:
        raise _bad(name, "polygon", "it has a parenthesis inside")
    return inner


def _numbers(inner: str, name: str, noun: str) -> list[float]:
    if _NUMBERS.fullmatch(inner) is not None:
        return list(map(float, inner.split(",")))
    for part in inner.split(","):
        if _ONE_NUMBER.fullmatch(part) is None:
            raise _bad(name, noun, f"{part.strip()[:40]!r} is not a number")
    raise AssertionError("one of the parts is not a number")


def _bounds(numbers: list[float], name: str, noun: str) -> Bounds:
    # An overflow to infinity fails here too.
    lats, lons = numbers[0::2], numbers[1::2]
    min_lat, min_lon, max_lat, max_lon = min(lats), min(lons), max(lats), max(lons)
    if min_lat < -90 or max_lat > 90:
        raise _bad(name, noun, "a latitude is outside -90..90")
    if min_lon < -180 or max_lon > 180:
        raise _bad(name, noun, "a longitude is outside -180..180")
    return min_lat, min_lon, max_lat, max_lon


def _bad(name: str, noun: str, why: str) -> BadFilter:
    return BadFilter(f"field '{name}' must be a valid {noun}: {why}", field=name)


def _text_of_coordinates(value: object) -> str | None:
    if not isinstance(value, dict) or value.get("type") != "Polygon":
        return None
    rings = value.get("coordinates")
    if not isinstance(rings, list) or not rings or not isinstance(rings[0], list):
        return None
    numbers: list[float] = []
    for pair in rings[0][: limits.POLYGON_VERTICES_MAX + 1]:
        if not isinstance(pair, list) or len(pair) != 2 or not all(map(_is_coordinate, pair)):
            return None
        numbers += map(float, pair)
    if len(numbers) >= 6 and numbers[:2] != numbers[-2:]:
        numbers += numbers[:2]
    return ",".join(map(repr, numbers))


def _is_coordinate(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and -180 <= number <= 180
