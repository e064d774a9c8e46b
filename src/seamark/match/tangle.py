"""Rings that cross or touch themselves. They are legal on the wire: their inside is everything that they wind around (non-zero
winding), their boundary every segment.

To make plain polygons of such a ring takes time and memory with the square of its vertices, minutes for one that a client can
send. Nobody needs them: whether two areas touch is known from their boundaries, and where these do not meet, from one point
of each part: it is wound around, or it is not. Rings whose segments lie so close together that looking for crossings would take
long are asked in the same way.
"""

from __future__ import annotations

import struct
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from seamark import limits
from seamark.match.shape import PAIR_BYTES, PREPARE_MIN, Bools, Bounds, Floats, Shape

# Byte order mark, polygon, one ring, count of points. Rings are native doubles, as are numpy's.
_WKB_ORDER = int(sys.byteorder == "little")
_WKB_POLYGON = struct.Struct("=BIII")
_ERROR = (3 + 16 * 2.0**-53) * 2.0**-53
"""How far the sign of a 2x2 determinant may be wrong in doubles, relative to its terms (Shewchuk)."""
_TINY = 1e-290  # where terms lose digits at the lower end of what doubles can be


class Tangle(Shape):
    """`reach` is the boundary."""

    __slots__ = ("_ring",)
    tangled = True

    def __init__(self, ring: bytes, bounds: Bounds) -> None:
        self._ring: Floats = np.frombuffer(ring).reshape(-1, 2)
        first = self._ring[0]
        collapsed = bool((self._ring == first).all())
        boundary = shapely.points(first) if collapsed else shapely.linestrings(self._ring)
        super().__init__(boundary, bounds, vertices=len(self._ring) - 1)

    def samples(self) -> Floats:
        return self._ring[:1]

    def intersects(self, other: Shape) -> bool:
        if shapely.intersects(self.reach, other.reach) or self._winds_around_any(other.samples()):
            return True
        return isinstance(other, Tangle) and other._winds_around_any(self.samples())

    def meets(self, reaches: NDArray[Any]) -> Bools:
        if len(reaches) >= PREPARE_MIN:
            self.prepare()
        met: Bools = shapely.intersects(self.reach, reaches)
        apart = (~met & ~shapely.is_missing(reaches)).nonzero()[0]
        firsts = shapely.get_coordinates(shapely.get_point(shapely.get_exterior_ring(reaches[apart]), 0))
        for row, (lat, lon) in zip(apart.tolist(), firsts.tolist(), strict=True):
            met[row] = self._winds_around(lat, lon)
        return met

    def contains(self, lat: float, lon: float) -> bool:
        return self._winds_around(lat, lon) and not shapely.intersects_xy(self.reach, lat, lon)

    def contains_each(self, lats: Floats, lons: Floats) -> Bools:
        places = zip(lats.tolist(), lons.tolist(), strict=True)
        return np.fromiter((self.contains(lat, lon) for lat, lon in places), np.bool_, len(lats))

    def _winds_around_any(self, places: Floats) -> bool:
        return any(self._winds_around(lat, lon) for lat, lon in places.tolist())

    def _winds_around(self, lat: float, lon: float) -> bool:
        """How often the ring goes around a place that is not on it, and whether that is not zero times."""
        lats, lons = self._ring[:, 0], self._ring[:, 1]
        after = lons > lon
        crossings = (after[:-1] != after[1:]).nonzero()[0]
        begin_lat, begin_lon, end_lat, end_lon = (
            lats[crossings],
            lons[crossings],
            lats[crossings + 1],
            lons[crossings + 1],
        )
        one, two = (end_lat - begin_lat) * (lon - begin_lon), (lat - begin_lat) * (end_lon - begin_lon)
        side = np.sign(one - two)
        unsure = np.abs(one - two) <= _ERROR * (np.abs(one) + np.abs(two)) + _TINY
        for at in unsure.nonzero()[0].tolist():
            side[at] = _exact_side(*self._ring[crossings[at]], *self._ring[crossings[at] + 1], lat, lon)
        up = end_lon > begin_lon
        return int((up & (side > 0)).sum()) != int((~up & (side < 0)).sum())


def shape_of(ring: bytes, bounds: Bounds) -> Shape:
    """From a closed ring of (lat, lon) doubles and its bounds."""
    pairs = len(ring) // PAIR_BYTES
    if _is_crowded(ring, pairs - 1):
        return Tangle(ring, bounds)
    polygon = shapely.from_wkb(_WKB_POLYGON.pack(_WKB_ORDER, 3, 1, pairs) + ring)
    return Shape(polygon, bounds, vertices=pairs - 1) if polygon.is_valid else Tangle(ring, bounds)


def _is_crowded(ring: bytes, segments: int) -> bool:
    """Whether it would take long to look for crossings. The answer can as well be had without knowing that there are none."""
    all_pairs = segments * (segments - 1) // 2
    if all_pairs <= limits.RING_PAIRS_MAX:
        return False
    places = np.frombuffer(ring).reshape(-1, 2)
    lows, highs = np.minimum(places[:-1], places[1:]), np.maximum(places[:-1], places[1:])
    beside = []
    for axis in (0, 1):
        behind = segments - np.searchsorted(np.sort(lows[:, axis]), highs[:, axis], side="right")
        beside.append(all_pairs - int(behind.sum()))
    return min(beside) > limits.RING_PAIRS_MAX


def _exact_side(*numbers: float) -> int:
    """Of the line from the first place to the second, the side that the third is on; 0: it is on the line."""
    begin_lat, begin_lon, end_lat, end_lon, lat, lon = map(Fraction, numbers)
    found = (end_lat - begin_lat) * (lon - begin_lon) - (lat - begin_lat) * (end_lon - begin_lon)
    return (found > 0) - (found < 0)
