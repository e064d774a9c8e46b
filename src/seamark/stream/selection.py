"""Which groups want which records: match-all groups get the run as it is, the others are found through the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.log.record import Record
from seamark.match.index import FilterIndex

if TYPE_CHECKING:
    from seamark.stream.group import Group


class Selection:
    """The groups of one channel, by what they want. The index is made when the first filter comes."""

    __slots__ = ("_all", "_filtered", "_index")

    def __init__(self) -> None:
        self._all: dict[Group, None] = {}
        self._index: FilterIndex[Group] | None = None
        self._filtered = 0

    def add(self, group: Group) -> None:
        if group.key.filter is None:
            self._all[group] = None
            return
        if self._index is None:
            self._index = FilterIndex()
        self._index.add(group.key.filter, group)
        self._filtered += 1

    def remove(self, group: Group) -> None:
        if group.key.filter is None:
            del self._all[group]
            return
        assert self._index is not None, "a filtered group came in through the index"
        self._index.remove(group.key.filter, group)
        self._filtered -= 1
        if not self._filtered:
            self._index = None

    def choose(self, records: Sequence[Record]) -> list[tuple[Group, Sequence[Record]]]:
        chosen: list[tuple[Group, Sequence[Record]]] = [(group, records) for group in self._all] if records else []
        if self._index is None:
            return chosen
        match = self._index.match
        hits: dict[Group, list[Record]] = {}
        for record in records:
            for group in match(record):
                wanted = hits.get(group)
                if wanted is None:
                    hits[group] = [record]
                else:
                    wanted.append(record)
        chosen.extend(hits.items())
        return chosen
