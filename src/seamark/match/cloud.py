"""A point cloud: a record that is about many places and no area. Filters with a polygon find it by any of its points, on the
boundary too; nothing is inside it."""

from __future__ import annotations

import numpy as np
import shapely

from seamark.match.shape import PAIR_BYTES, Bools, Bounds, Floats, Shape


class Scatter(Shape):
    """The shape of a cloud."""

    __slots__ = ()

    def __init__(self, pairs: bytes, bounds: Bounds) -> None:
        self.bounds = bounds
        self.vertices = len(pairs) // PAIR_BYTES
        self.reach = shapely.multipoints(np.frombuffer(pairs).reshape(-1, 2))
        self.heavy = False  # a prepared polygon is quicker with many points than prepared points with a polygon

    def samples(self) -> Floats:
        found: Floats = shapely.get_coordinates(self.reach)
        return found

    def contains(self, lat: float, lon: float) -> bool:
        return False

    def contains_each(self, lats: Floats, lons: Floats) -> Bools:
        return np.zeros(len(lats), dtype=np.bool_)


class Cloud:
    """The points of one record, as (lat, lon) doubles."""

    __slots__ = ("_pairs", "_shape", "bounds")

    def __init__(self, pairs: bytes, bounds: Bounds) -> None:
        self._pairs = pairs
        self.bounds = bounds
        self._shape: Shape | None = None

    @property
    def shape(self) -> Shape:
        """Built on first use."""
        if self._shape is None:
            self._shape = Scatter(self._pairs, self.bounds)
        return self._shape
