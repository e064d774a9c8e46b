"""Reading a stream to its head page by page, checking on the way what every page promises."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from seamark import limits
from seamark.log.protocol import Log, Page
from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Gap, Loss


@dataclass(slots=True)
class Reading:
    """What a reader was told, from its cursor to the end."""

    cursor: Cursor
    gaps: list[Gap] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    pages: int = 0

    @property
    def seqs(self) -> list[int]:
        return [record.seq for record in self.records]


async def read_all(
    log: Log,
    name: str,
    cursor: Cursor | None = None,
    *,
    records_max: int = limits.PAGE_RECORDS_DEFAULT,
    bytes_max: int = limits.PAGE_BYTES_DEFAULT,
    synced: bool = False,
    accept: Callable[[Record], bool] | None = None,
) -> Reading:
    """Read until there is nothing more to examine."""
    reading = Reading(cursor or Cursor())
    while True:
        before = reading.cursor
        page = await log.read(name, before, records_max=records_max, bytes_max=bytes_max, synced=synced, accept=accept)
        check_page(page, before, records_max=records_max, bytes_max=bytes_max)
        reading.pages += 1
        reading.cursor = page.cursor
        reading.records += page.records
        if page.gap is not None:
            reading.gaps.append(page.gap)
        end = page.marks.synced if synced else page.marks.head
        if page.cursor.seq >= end:
            return reading
        assert page.cursor != before, f"a page of {name} went nowhere: {page}"


def check_page(page: Page, before: Cursor, *, records_max: int, bytes_max: int) -> None:
    """What holds for every page of every engine."""
    marks, gap = page.marks, page.gap
    assert 0 <= marks.synced <= marks.head, marks
    assert 1 <= marks.evict_floor <= marks.earliest <= marks.head + 1, marks
    assert page.resume == (before.seq if gap is None else gap.last), page
    if gap is not None and gap.loss is not Loss.RECREATED:
        assert before.seq < gap.first <= gap.last <= marks.head, page
    seqs = [record.seq for record in page.records]
    assert all(a < b for a, b in itertools.pairwise(seqs)), seqs
    assert all(page.resume < seq <= page.cursor.seq for seq in seqs), page
    assert page.cursor.seq <= marks.head, page
    assert page.cursor.instance is not None
    assert len(page.records) <= records_max
    assert len(page.records) <= 1 or sum(len(record.payload) for record in page.records) <= bytes_max
    assert page.scanned >= len(page.records)
    stamps = [record.ts for record in page.records]
    assert stamps == sorted(stamps), "time went back within a stream"
