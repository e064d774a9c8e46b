"""A shape: the geometry of one polygon, ready for planar predicates.

x is latitude and y is longitude: planar predicates do not mind, and a ring is well-known binary as it stands.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = tuple[float, float, float, float]
"""min_lat, min_lon, max_lat, max_lon"""

PAIR_BYTES = 16
HEAVY_VERTICES = 48  # from here on a shape is prepared at once, a record's as well as a filter's
PREPARE_MIN = 8  # filters that a lighter record is prepared for, while they are asked; else lighter ones never are, for the memory's sake


class Shape:
    """A polygon whose ring is known neither to cross nor to touch itself: `reach`, for the inclusive `intersects` and the strict
    `contains`. Others are subclasses; of those that are `tangled`, `reach` says only where their boundary is."""

    __slots__ = ("bounds", "heavy", "reach", "vertices")
    tangled: ClassVar[bool] = False

    def __init__(self, reach: Any, bounds: Bounds, *, vertices: int) -> None:
        self.reach = reach
        self.bounds = bounds
        self.vertices = vertices
        self.heavy = vertices >= HEAVY_VERTICES
        if self.heavy:
            self.prepare()

    def prepare(self) -> None:
        """Pay now for many predicates later."""
        shapely.prepare(self.reach)

    def samples(self) -> Floats:
        """At least one place of each of its parts."""
        found: Floats = shapely.get_coordinates(self.reach)[:1]
        return found

    def intersects(self, other: Shape) -> bool:
        """Boundary included: one shared vertex is enough."""
        if other.tangled:
            return other.intersects(self)
        return bool(shapely.intersects(self.reach, other.reach))

    def meets(self, reaches: NDArray[Any]) -> Bools:
        """`intersects` for many that are neither tangled nor prepared."""
        reach = self.reach
        if not self.heavy and (len(reaches) >= PREPARE_MIN or self.vertices >= HEAVY_VERTICES):
            reach = shapely.force_2d(reach)  # a copy, so that what it takes to be prepared is given back
            shapely.prepare(reach)
        result: Bools = shapely.intersects(reach, reaches)
        return result

    def contains(self, lat: float, lon: float) -> bool:
        """Strictly inside: a point on an edge or a vertex is not."""
        return bool(shapely.contains_xy(self.reach, lat, lon))

    def contains_each(self, lats: Floats, lons: Floats) -> Bools:
        """`contains` for many points."""
        self.prepare()
        inside: Bools = shapely.contains_xy(self.reach, lats, lons)
        return inside
