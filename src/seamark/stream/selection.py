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

    def choose(self, records: Sequence[Record]) -> dict[Group, Sequence[Record]]:
        """What each group is to get, in order; groups that want nothing of the run are left out.

        Thousands of groups may want one record each, so nothing is made per group while it can be shared: every
        object made here is also one for the garbage collector to look at.
        """
        chosen: dict[Group, Sequence[Record]] = dict.fromkeys(self._all, records) if records else {}
        if self._index is None:
            return chosen
        match = self._index.match
        if len(records) == 1:
            chosen.update(dict.fromkeys(match(records[0]), records))
            return chosen
        several: dict[Group, list[Record]] = {}
        for record in records:
            alone = (record,)
            for group in match(record):
                if group not in chosen:
                    chosen[group] = alone
                elif group in several:
                    several[group].append(record)
                else:
                    chosen[group] = several[group] = [*chosen[group], record]
        return chosen
