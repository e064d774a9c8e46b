"""A group: filters of one bucket that ask about the same values, held in columns and answered together."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import shapely
from numpy.typing import NDArray

from seamark.log.record import Geometry
from seamark.match.constraint import INT_MAX, INT_MIN, Kind
from seamark.match.entry import Entry
from seamark.match.filter import Area
from seamark.match.plan import Slot, Tuning
from seamark.match.shape import HEAVY_VERTICES, Bools, Floats, Shape
from seamark.match.spatial import Point, Polygon
from seamark.match.view import View

T = TypeVar("T")
Rows: TypeAlias = NDArray[np.intp]
Signature: TypeAlias = tuple[tuple[Slot, ...], type[Area] | None, bool]
"""Slots with an interval, kind of area, and whether a hit must be asked again."""

ROWS_FIRST = 16  # a group starts with room for as many


class Group(Generic[T]):
    """Rows that are free or dead hold intervals and boxes that nothing can satisfy, so no scan has to know of them."""

    _tree: Any  # spatial tree over the first `_treed` rows, None while there is none

    def __init__(self, signature: Signature, tuning: Tuning) -> None:
        self._slots, self._area, self._checked = signature
        self._tuning = tuning
        self._rows: dict[Entry[T], int] = {}
        self._clear(ROWS_FIRST)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, entry: Entry[T]) -> bool:
        return entry in self._rows

    def add(self, entry: Entry[T]) -> None:
        if self._size == len(self._answers):
            self._grow(self._size + self._size // 2)
        row = self._size
        self._size += 1
        self._rows[entry] = row
        self._entries.append(entry)
        self._write_ranges(row, entry)
        self._write_area(row, entry)
        self.refresh(entry)

    def refresh(self, entry: Entry[T]) -> None:
        """The entry's tokens have changed."""
        row = self._rows[entry]
        many = len(entry.tokens) != 1
        self._many_count += int(many) - int(self._many[row])
        self._many[row] = many
        self._answers[row] = None if many else next(iter(entry.tokens))

    def remove(self, entry: Entry[T]) -> None:
        row = self._rows.pop(entry)
        self._entries[row] = None
        self._many_count -= int(self._many[row])
        self._many[row] = False
        self._answers[row] = None
        for (_, kind), low, high in zip(self._slots, self._lows, self._highs, strict=True):
            low[row], high[row] = _nothing(kind)
        if self._area is not None:
            for column in self._box:
                column[row] = math.nan
        if self._area is Polygon:
            self._shapes[row] = None
            self._heavies -= int(self._vertices[row] >= HEAVY_VERTICES)
        dead = self._size - len(self._rows)
        if dead > self._tuning.tail_max and dead > len(self._rows):
            self._compact()

    def collect(self, view: View, out: list[T]) -> None:
        """Append the tokens of all filters here that the record passes."""
        mask: Bools | None = None
        for position, kind, low, high in self._scans:
            value = view.value(position, kind)
            if value is None:
                return
            above: Bools = low <= value
            above &= high >= value
            mask = above if mask is None else mask & above
        if self._area is None:
            assert mask is not None
            rows = mask.nonzero()[0]
        else:
            found = self._within(view, mask)
            if found is None:
                return
            rows = found
        if rows.size:
            self._emit(rows, view, out)

    # -- answers

    def _emit(self, rows: Rows, view: View, out: list[T]) -> None:
        if self._checked:
            for row in rows.tolist():
                entry = self._entries[row]
                assert entry is not None
                if entry.filter.holds(view):
                    out.extend(entry.tokens)
            return
        if self._many_count:
            many = self._many[rows]
            for row in rows[many].tolist():
                entry = self._entries[row]
                assert entry is not None
                out.extend(entry.tokens)
            rows = rows[~many]
        out.extend(self._answers[rows].tolist())

    # -- space

    def _within(self, view: View, mask: Bools | None) -> Rows | None:
        """Rows of the mask whose area agrees with the record's geometry."""
        geometry = view.record.geometry
        if geometry is None or geometry.text is None:
            return None
        if self._size >= self._tuning.tree_min and self._size - self._treed > max(
            self._tuning.tail_max, self._treed // 4
        ):
            self._plant()
        rows = self._scan(geometry, 0, mask) if self._tree is None else self._search(view, geometry, mask)
        if not rows.size:
            return rows
        shape = view.shape
        return None if shape is None else rows[self._meets(shape, rows)]

    def _scan(self, geometry: Geometry, first: int, mask: Bools | None) -> Rows:
        """Rows from `first` on whose box touches the bounds stored with the record."""
        min_lat, min_lon, max_lat, max_lon = [column[first:] for column in self._box] if first else self._box
        touching: Bools = min_lat <= geometry.max_lat
        touching &= max_lat >= geometry.min_lat
        touching &= min_lon <= geometry.max_lon
        touching &= max_lon >= geometry.min_lon
        if mask is not None:
            touching &= mask[first:]
        return touching.nonzero()[0] + first if first else touching.nonzero()[0]

    def _search(self, view: View, geometry: Geometry, mask: Bools | None) -> Rows:
        shape = view.shape
        bounds = (geometry.min_lat, geometry.min_lon, geometry.max_lat, geometry.max_lon)
        if shape is None or shape.bounds != bounds:
            return self._scan(geometry, 0, mask)  # the tree would answer for other bounds than the stored ones
        # As an array of one, because the tree takes three times as long to make one of a shape.
        self._asked[0] = shape.reach
        rows: Rows = self._tree.query(self._asked)[1]
        # Those removed since the tree was made have no shape and no place any more, and pass no predicate.
        if mask is not None:
            rows = rows[mask[rows]]
        if self._treed == self._size:
            return rows
        return np.concatenate((rows, self._scan(geometry, self._treed, mask)))

    def _meets(self, shape: Shape, rows: Rows) -> Bools:
        if self._area is Point:
            return shape.contains_each(self._box[0][rows], self._box[1][rows])
        reaches = self._shapes[rows]
        if not self._heavies or shape.tangled:
            return shape.meets(reaches)
        # The prepared form of the side with more vertices pays most.
        heavier = self._vertices[rows] >= max(HEAVY_VERTICES, shape.vertices)
        met = np.empty(len(rows), dtype=np.bool_)
        met[heavier] = shapely.intersects(reaches[heavier], shape.reach)
        met[~heavier] = shape.meets(reaches[~heavier])
        return met

    def _plant(self) -> None:
        """Make a tree of all rows there are; rows added later are scanned until they are a quarter."""
        shapes: Any = self._shapes[: self._size]
        if self._area is Point:
            lats, lons = self._box[0][: self._size], self._box[1][: self._size]
            shapes = np.where(np.isnan(lats), None, shapely.points(lats, lons))
        self._tree = shapely.STRtree(shapes)
        self._treed = self._size

    # -- columns

    def _write_ranges(self, row: int, entry: Entry[T]) -> None:
        ranges = {slot: (low, high) for slot, low, high in entry.plan.ranges}
        for slot, lows, highs in zip(self._slots, self._lows, self._highs, strict=True):
            lows[row], highs[row] = ranges[slot]

    def _write_area(self, row: int, entry: Entry[T]) -> None:
        area = entry.filter.area
        if self._area is None or area is None:
            return
        for column, bound in zip(self._box, area.bounds, strict=True):
            column[row] = bound
        if isinstance(area, Polygon):
            shape = area.shape
            self._shapes[row] = shape.reach
            self._vertices[row] = shape.vertices
            self._heavies += shape.heavy

    def _clear(self, capacity: int) -> None:
        self._size = 0
        self._entries: list[Entry[T] | None] = []
        self._answers: NDArray[Any] = np.empty(0, dtype=object)
        self._many: Bools = np.empty(0, dtype=np.bool_)
        self._many_count = 0
        self._lows: list[NDArray[Any]] = [np.empty(0, _dtype(kind)) for _, kind in self._slots]
        self._highs: list[NDArray[Any]] = [np.empty(0, _dtype(kind)) for _, kind in self._slots]
        self._box: list[Floats] = [np.empty(0) for _ in range(4 if self._area is not None else 0)]
        self._shapes: NDArray[Any] = np.empty(0, dtype=object)
        self._vertices: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._heavies = 0  # how many of the shapes are prepared
        self._tree = None
        self._treed = 0
        self._asked: NDArray[Any] = np.empty(1, dtype=object)
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        self._answers = _wider(self._answers, capacity, None)
        self._many = _wider(self._many, capacity, False)
        for index, (_, kind) in enumerate(self._slots):
            low, high = _nothing(kind)
            self._lows[index] = _wider(self._lows[index], capacity, low)
            self._highs[index] = _wider(self._highs[index], capacity, high)
        self._scans = [(*slot, low, high) for slot, low, high in zip(self._slots, self._lows, self._highs, strict=True)]
        self._box = [_wider(column, capacity, math.nan) for column in self._box]
        if self._area is Polygon:
            self._shapes = _wider(self._shapes, capacity, None)
            self._vertices = _wider(self._vertices, capacity, 0)

    def _compact(self) -> None:
        """Write the living anew. Rare: as many were removed before as are left."""
        living = list(self._rows)
        self._rows.clear()
        self._clear(max(ROWS_FIRST, len(living) + len(living) // 2))
        for entry in living:
            self.add(entry)


def _wider(column: NDArray[Any], capacity: int, fill: object) -> NDArray[Any]:
    wider = np.full(capacity, fill, dtype=column.dtype)
    wider[: len(column)] = column
    return wider


def _dtype(kind: Kind) -> type[np.int64] | type[np.float64]:
    # Never floats for integers: beyond 2**53 they would compare equal to their neighbours.
    return np.int64 if kind is Kind.INT else np.float64


def _nothing(kind: Kind) -> tuple[float, float]:
    """An interval without values."""
    return (INT_MAX, INT_MIN) if kind is Kind.INT else (math.inf, -math.inf)
