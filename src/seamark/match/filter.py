"""A filter: what one watcher wants to see. A value: immutable, hashable, equal to any filter that says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from seamark.log.columns import Question, Sieve, Within
from seamark.log.record import Geometry, Record
from seamark.match.constraint import Constraint, Kind, Op, read_token
from seamark.match.shape import Bounds
from seamark.match.spatial import Point, Polygon
from seamark.match.subject import Pattern, covers
from seamark.match.view import View

Area: TypeAlias = Polygon | Point


class Filter:
    """All parts must hold.

    `subject`        pattern over the record's subject, None for any (and for none at all)
    `constraints`    conditions on the values at token positions
    `area`           a polygon that the record's polygon must touch, or a point it must strictly contain
    `exclude_nodes`  writers whose records are left out; a record without a writer is never left out
    """

    __slots__ = ("_hash", "area", "constraints", "exclude_nodes", "subject")

    def __init__(
        self,
        *,
        subject: Pattern | None = None,
        constraints: Iterable[tuple[int, Constraint]] = (),
        area: Area | None = None,
        exclude_nodes: Iterable[str] = (),
    ) -> None:
        self.subject: Final = subject
        # Sorted and distinct, so that the order they came in makes no difference.
        self.constraints: Final = tuple(sorted(set(constraints), key=_constraint_order))
        self.area: Final = area
        self.exclude_nodes: Final = frozenset(exclude_nodes)
        self._hash: Final = hash((self.subject, self.constraints, self.area, self.exclude_nodes))

    @property
    def everything(self) -> bool:
        """No condition at all: callers need not ask."""
        return self.subject is None and not self.constraints and self.area is None and not self.exclude_nodes

    def matches(self, record: Record) -> bool:
        """Whether the watcher wants this record."""
        if self.exclude_nodes and record.node in self.exclude_nodes:
            return False
        if self.subject is not None and not covers(self.subject, record.subject):
            return False
        if not self.constraints and self.area is None:
            return True
        return self._holds_values(View(record))

    __call__ = matches

    def sieve(self) -> Sieve | None:
        """See `Skims`: what every record that matches has in its subject and bounds."""
        tokens: list[tuple[int, Question]] = []
        for position, token in enumerate(self.subject or ()):
            if token is not None:
                tokens.append((position, token))
        tokens += [(position, _asking(constraint)) for position, constraint in self.constraints]
        bounds = None if self.area is None else self.area.bounds
        return Sieve(tuple(tokens), bounds) if tokens or bounds is not None else None

    def holds(self, view: View) -> bool:
        """`matches` for a record that other filters have looked at too."""
        if self.exclude_nodes and view.record.node in self.exclude_nodes:
            return False
        if self.subject is not None and not covers(self.subject, view.subject):
            return False
        return self._holds_values(view)

    def compile(self) -> Callable[[Record], bool]:
        """The cheapest function that answers `matches`."""
        return _accept if self.everything else self.matches

    def _holds_values(self, view: View) -> bool:
        for position, constraint in self.constraints:
            value = view.value(position, constraint.kind)
            if value is None or not constraint.holds(value):
                return False
        area = self.area
        if area is None:
            return True
        geometry = view.record.geometry
        if geometry is None or not overlaps(area.bounds, geometry):
            return False
        shape = view.shape
        if shape is None:
            return False
        if isinstance(area, Point):
            return shape.contains(area.lat, area.lon)
        return area.shape.intersects(shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Filter) or self._hash != other._hash:
            return False
        return (
            self.subject == other.subject
            and self.constraints == other.constraints
            and self.area == other.area
            and self.exclude_nodes == other.exclude_nodes
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        parts = f"subject={self.subject!r}, constraints={self.constraints!r}"
        return f"Filter({parts}, area={self.area!r}, exclude_nodes={sorted(self.exclude_nodes)!r})"


def overlaps(bounds: Bounds, geometry: Geometry) -> bool:
    """Whether a box touches the bounds stored with a record, edges included."""
    min_lat, min_lon, max_lat, max_lon = bounds
    return (
        min_lat <= geometry.max_lat
        and max_lat >= geometry.min_lat
        and min_lon <= geometry.max_lon
        and max_lon >= geometry.min_lon
    )


def _asking(constraint: Constraint) -> Question:
    if constraint.kind is not Kind.TEXT:
        # Rounding keeps the order, so no number of the interval is rounded out of it.
        among = () if constraint.op is not Op.IN else tuple(map(float, constraint.operands))
        return Within(float(constraint.low), float(constraint.high), among)

    def holds(token: str) -> bool:
        value = read_token(constraint.kind, token)
        return value is not None and constraint.holds(value)

    return holds


def _accept(_record: Record) -> bool:
    return True


def _constraint_order(item: tuple[int, Constraint]) -> tuple[int, str, str, tuple[str, ...]]:
    position, constraint = item
    return position, constraint.kind, constraint.op, tuple(map(repr, constraint.operands))


EVERYTHING = Filter()
