"""A view: one record as filters look at it. Each value is parsed at most once, however many filters ask."""

from __future__ import annotations

from seamark.log.record import Record
from seamark.match.constraint import Kind, Value, read_token
from seamark.match.shape import Shape
from seamark.match.spatial import POLYGONS


class View:
    """Lives for one match and is not shared."""

    __slots__ = ("_looked", "_shape", "_values", "record", "subject")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.subject = record.subject
        self._values: dict[tuple[int, Kind | None], Value | None] = {}
        self._shape: Shape | None = None
        self._looked = False

    def value(self, position: int, kind: Kind | None) -> Value | None:
        """What the token at a position stands for; kind None is the token itself. None when there is no such value."""
        subject = self.subject
        if subject is None or position >= len(subject):
            return None
        if kind is None:
            return subject[position]
        at = (position, kind)
        try:
            return self._values[at]
        except KeyError:
            value = self._values[at] = read_token(kind, subject[position])
            return value

    @property
    def shape(self) -> Shape | None:
        """The record's own shape, None when only its bounds or nothing are known."""
        if not self._looked:
            self._looked = True
            geometry = self.record.geometry
            if geometry is not None and geometry.text is not None:
                polygon = POLYGONS.find(geometry.text)
                self._shape = None if polygon is None else polygon.shape
        return self._shape
