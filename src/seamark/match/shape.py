"""A shape: the geometry of one polygon, ready for planar predicates.

A ring that crosses or touches itself is legal on the wire. Its inside is then everything it winds around (non-zero
winding), its boundary is every segment of the ring, and no predicate ever raises for it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = tuple[float, float, float, float]
"""min_lat, min_lon, max_lat, max_lon"""

HEAVY_VERTICES = 48  # from here on testing a prepared filter beats testing a prepared record


class Shape:
    """Built from a closed ring of (lat, lon) doubles. x is longitude and y is latitude.

    `reach` is everything the polygon touches, for the inclusive `intersects`; `solid` is what it encloses, for the
    strict `contains`; `edge` is set only for rings that are not simple, where `solid` alone does not know every
    segment of the boundary.
    """

    __slots__ = ("bounds", "edge", "reach", "solid", "vertices")

    def __init__(self, ring: bytes) -> None:
        points = np.frombuffer(ring, dtype=np.float64).reshape(-1, 2)
        polygon = shapely.polygons(points[:, ::-1])
        low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        self.bounds: Bounds = (low[0], low[1], high[0], high[1])
        self.vertices = len(points) - 1
        self.edge: Any = None
        if shapely.is_valid(polygon):
            self.solid: Any = polygon
            self.reach: Any = polygon
        else:
            self._untangle(polygon, points)
        shapely.prepare(self.reach)

    def _untangle(self, polygon: Any, points: Floats) -> None:
        # The `structure` method winds around each ring in both directions, which makes non-zero winding for one ring.
        solid = shapely.make_valid(polygon, method="structure", keep_collapsed=False)
        collapsed = bool((points == points[0]).all())
        edge = shapely.points(points[0, ::-1]) if collapsed else shapely.linestrings(points[:, ::-1])
        self.solid, self.edge = solid, edge
        self.reach = shapely.union(solid, edge)
        shapely.prepare(solid)
        shapely.prepare(edge)

    @property
    def heavy(self) -> bool:
        return self.vertices >= HEAVY_VERTICES

    def intersects(self, other: Shape) -> bool:
        """Boundary included: one shared vertex is enough."""
        return bool(shapely.intersects(self.reach, other.reach))

    def contains(self, lat: float, lon: float) -> bool:
        """Strictly inside: a point on an edge or a vertex is not."""
        if not shapely.contains_xy(self.solid, lon, lat):
            return False
        return self.edge is None or not shapely.intersects_xy(self.edge, lon, lat)

    def contains_each(self, lats: Floats, lons: Floats) -> Bools:
        """`contains` for many points."""
        inside: Bools = shapely.contains_xy(self.solid, lons, lats)
        if self.edge is not None:
            inside &= ~shapely.intersects_xy(self.edge, lons, lats)
        return inside
