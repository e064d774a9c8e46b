"""A shape: the geometry of one polygon, ready for planar predicates.

A ring that crosses or touches itself is legal on the wire. Its inside is then everything it winds around (non-zero
winding), its boundary is every segment of the ring, and no predicate ever raises for it.
"""

from __future__ import annotations

import struct
import sys
from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = tuple[float, float, float, float]
"""min_lat, min_lon, max_lat, max_lon"""

PAIR_BYTES = 16
HEAVY_VERTICES = 48  # from here on a shape is prepared at once, a record's as well as a filter's
PREPARE_MIN = 32  # filters that a lighter record is prepared for; lighter filters never are, for the memory's sake

# Byte order mark, polygon, one ring, count of points. Rings are native doubles, as are numpy's.
_WKB_ORDER = int(sys.byteorder == "little")
_WKB_POLYGON = struct.Struct("=BIII")


class Shape:
    """Built from a closed ring of (lat, lon) doubles and its bounds.

    x is latitude and y is longitude: planar predicates do not mind, and the ring is well-known binary as it stands.
    `reach` is everything the polygon touches, for the inclusive `intersects`; `solid` is what it encloses, for the
    strict `contains`; `edge` is set only for rings that are not simple, where `solid` alone does not know every
    segment of the boundary.
    """

    __slots__ = ("bounds", "edge", "heavy", "reach", "solid", "vertices")

    def __init__(self, ring: bytes, bounds: Bounds) -> None:
        self.bounds = bounds
        self.vertices = len(ring) // PAIR_BYTES - 1
        self.edge: Any = None
        polygon = shapely.from_wkb(_WKB_POLYGON.pack(_WKB_ORDER, 3, 1, len(ring) // PAIR_BYTES) + ring)
        if polygon.is_valid:
            self.solid: Any = polygon
            self.reach: Any = polygon
        else:
            self._untangle(polygon, np.frombuffer(ring).reshape(-1, 2))
        self.heavy = self.vertices >= HEAVY_VERTICES
        if self.heavy:
            self.prepare()

    def prepare(self) -> None:
        """Pay now for many predicates later."""
        shapely.prepare(self.reach)
        shapely.prepare(self.solid)

    def _untangle(self, polygon: Any, points: Floats) -> None:
        # The `structure` method winds around each ring in both directions, which makes non-zero winding for one ring.
        solid = shapely.make_valid(polygon, method="structure", keep_collapsed=False)
        collapsed = bool((points == points[0]).all())
        edge = shapely.points(points[0]) if collapsed else shapely.linestrings(points)
        self.solid, self.edge = solid, edge
        # Not their union: making one rounds the crossings, and a shared vertex would no longer be shared.
        self.reach = shapely.geometrycollections([solid, edge])

    def intersects(self, other: Shape) -> bool:
        """Boundary included: one shared vertex is enough."""
        return bool(shapely.intersects(self.reach, other.reach))

    def meets(self, reaches: NDArray[Any]) -> Bools:
        """`intersects` for many that are not prepared."""
        if len(reaches) >= PREPARE_MIN or self.vertices >= HEAVY_VERTICES:
            shapely.prepare(self.reach)
        result: Bools = shapely.intersects(self.reach, reaches)
        return result

    def contains(self, lat: float, lon: float) -> bool:
        """Strictly inside: a point on an edge or a vertex is not."""
        if not shapely.contains_xy(self.solid, lat, lon):
            return False
        return self.edge is None or not shapely.intersects_xy(self.edge, lat, lon)

    def contains_each(self, lats: Floats, lons: Floats) -> Bools:
        """`contains` for many points."""
        shapely.prepare(self.solid)
        inside: Bools = shapely.contains_xy(self.solid, lats, lons)
        if self.edge is not None:
            inside &= ~shapely.intersects_xy(self.edge, lats, lons)
        return inside
