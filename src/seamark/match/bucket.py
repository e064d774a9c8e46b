"""A bucket: the filters that have the same values at the components of a facet."""

from __future__ import annotations

from typing import Generic, TypeVar

from seamark.match.entry import Entry
from seamark.match.filter import Area
from seamark.match.group import Group, Signature
from seamark.match.plan import Slot, Tuning
from seamark.match.spatial import Polygon
from seamark.match.view import View

T = TypeVar("T")


class Bucket(Generic[T]):
    """A filter is in exactly one of three places.

    `_bare`    the key says it all: always a hit, unless the record's node is excluded
    `_loose`   asked one by one: a few that are not worth columns yet, and those that have nothing to put in a column
    `_groups`  in columns
    """

    __slots__ = ("_bare", "_excluding", "_groups", "_loose", "_tuning", "_waiting")

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._bare: dict[Entry[T], None] = {}
        self._excluding: dict[str, set[Entry[T]]] = {}
        self._loose: dict[Entry[T], None] = {}
        self._waiting = 0  # how many of the loose could be in columns
        self._groups: dict[Signature, Group[T]] = {}

    def __len__(self) -> int:
        return len(self._bare) + len(self._loose) + sum(map(len, self._groups.values()))

    def add(self, entry: Entry[T]) -> None:
        if entry.plan.bare:
            self._bare[entry] = None
            for node in entry.filter.exclude_nodes:
                self._excluding.setdefault(node, set()).add(entry)
        elif not _columnar(entry):
            self._loose[entry] = None
        elif self._groups:
            self._add_to_group(entry)
        else:
            self._loose[entry] = None
            self._waiting += 1
            if self._waiting > self._tuning.linear_max:
                self._move_to_groups()

    def refresh(self, entry: Entry[T]) -> None:
        """The entry's tokens have changed."""
        for group in self._groups.values():
            if entry in group:
                group.refresh(entry)
                return

    def remove(self, entry: Entry[T]) -> None:
        if entry in self._bare:
            del self._bare[entry]
            for node in entry.filter.exclude_nodes:
                others = self._excluding[node]
                others.remove(entry)
                if not others:
                    del self._excluding[node]
        elif entry in self._loose:
            del self._loose[entry]
            self._waiting -= _columnar(entry)
        else:
            signature, group = next(item for item in self._groups.items() if entry in item[1])
            group.remove(entry)
            if not group:
                del self._groups[signature]

    def collect(self, view: View, out: list[T]) -> None:
        """Append the tokens of all filters here that the record passes."""
        if self._bare:
            self._collect_bare(view, out)
        for entry in self._loose:
            if entry.filter.holds(view):
                out.extend(entry.tokens)
        for group in self._groups.values():
            group.collect(view, out)

    def _collect_bare(self, view: View, out: list[T]) -> None:
        node = view.record.node
        excluded = self._excluding.get(node) if node is not None and self._excluding else None
        for entry in self._bare:
            if excluded is None or entry not in excluded:
                out.extend(entry.tokens)

    def _move_to_groups(self) -> None:
        for entry in [entry for entry in self._loose if _columnar(entry)]:
            del self._loose[entry]
            self._add_to_group(entry)
        self._waiting = 0

    def _add_to_group(self, entry: Entry[T]) -> None:
        signature = self._signature(entry)
        group = self._groups.get(signature)
        if group is None:
            group = self._groups[signature] = Group(signature, self._tuning)
        group.add(entry)

    def _signature(self, entry: Entry[T]) -> Signature:
        plan = entry.plan
        slots: tuple[Slot, ...] = tuple(slot for slot, _, _ in plan.ranges)
        signature: Signature = slots, plan.area, plan.checked or plan.excludes
        if signature in self._groups or len(self._groups) < self._tuning.groups_max or len(slots) <= 1:
            return signature
        # Too many kinds of group: keep one slot in a column and ask the filter for the rest.
        singles: list[Signature] = [((slot,), plan.area, True) for slot in slots]
        return next((single for single in singles if single in self._groups), singles[0])


def _columnar(entry: Entry[T]) -> bool:
    """Whether columns can answer for it: a tangled ring is no polygon that they could hold."""
    area = entry.plan.area
    if area is None:
        return bool(entry.plan.ranges)
    return area is not Polygon or not _tangled(entry.filter.area)


def _tangled(area: Area | None) -> bool:
    return isinstance(area, Polygon) and area.shape.tangled
