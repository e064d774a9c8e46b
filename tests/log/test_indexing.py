"""Selective reads of an indexed stream: the same answer as without columns, from a small part of the records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.errors import Corrupt
from seamark.limits import COLUMN_BLOCK_RECORDS
from seamark.log import columns
from seamark.log.engines.embedded import LmdbStore, open_embedded
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Page, Selector
from seamark.log.record import Draft, Geometry, Record
from seamark.log.seal import seal
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import ID, Change, Space
from seamark.log.verify import Report, verify
from seamark.log.watermarks import Cursor
from seamark.match.constraint import Constraint, Kind, Op
from seamark.match.filter import Filter
from seamark.match.spatial import parse_polygon
from seamark.telemetry.metrics import Metrics

INDEXED = StreamSettings(indexed=True)
TOTAL = 2 * COLUMN_BLOCK_RECORDS + 700
BATCH = 4_000
AREA = "10,10,10,11,11,11,11,10,10,10"


def draft(number: int) -> Draft:
    """Number 1 becomes seq 1, and so on: a token that few have, one that many have, and a place now and then."""
    geometry = Geometry(AREA, 10, 10, 11, 11) if number % 5_000 == 0 else None
    return Draft(b"%d" % number, subject=(f"rare{number // 500}", str(number % 10)), geometry=geometry)


async def fill(log: LocalLog, name: str, settings: StreamSettings = INDEXED, total: int = TOTAL) -> None:
    await log.configure(name, settings)
    for first in range(1, total + 1, BATCH):
        drafts = [draft(number) for number in range(first, min(first + BATCH, total + 1))]
        await log.append(Append(stream=name, drafts=drafts))


async def all_of(log: LocalLog, name: str, wanted: Filter, after: int = 0) -> tuple[list[int], int]:
    """Every seq that a reader gets, and how many records were looked at for it."""
    seqs: list[int] = []
    cursor, scanned = Cursor(after), 0
    while True:
        page = await log.read(name, cursor, accept=wanted)
        seqs += [record.seq for record in page.records]
        scanned += page.scanned
        cursor = page.cursor
        if page.caught_up:
            return seqs, scanned


def blocks(store: MemoryStore) -> set[int]:
    return {columns.PLACE.unpack(key)[1] for key, _ in store.scan(Space.COLUMNS, ID.pack(1))}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def log(store: MemoryStore, clock: ManualClock) -> LocalLog:
    return LocalLog(store, clock, Metrics())


RARE = Filter(subject=("rare33", None))


async def test_a_selective_read_looks_at_few_records(log: LocalLog) -> None:
    await fill(log, "t")
    before = await all_of(log, "t", RARE)
    log.sweep()
    after = await all_of(log, "t", RARE)
    assert before == (list(range(16_500, 17_000)), TOTAL)
    assert after[0] == before[0]
    assert after[1] < 2_000


async def test_every_resume_point_gives_the_rest(log: LocalLog) -> None:
    await fill(log, "t")
    log.sweep()
    for at in (0, 16_384, 16_499, 16_500, 16_600, 16_999, 17_000, TOTAL - 1, TOTAL):
        assert (await all_of(log, "t", RARE, at))[0] == list(range(max(at + 1, 16_500), 17_000))


async def test_only_whole_blocks_of_indexed_streams_have_columns(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t", StreamSettings())
    log.sweep()
    assert blocks(store) == set()
    await log.configure("t", INDEXED)
    log.sweep()
    assert blocks(store) == {0, 1}


async def test_columns_follow_the_head(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t", total=COLUMN_BLOCK_RECORDS - 1)
    log.sweep()
    assert blocks(store) == set()
    await log.append(Append(stream="t", drafts=[draft(COLUMN_BLOCK_RECORDS)]))
    log.sweep()
    assert blocks(store) == {0}


async def test_removed_records_are_passed_over(log: LocalLog) -> None:
    await fill(log, "t")
    await log.delete("t", Selector(seqs=tuple(range(16_500, 16_600))))
    log.sweep()
    await log.delete("t", Selector(seqs=tuple(range(16_600, 16_700))))
    assert (await all_of(log, "t", RARE))[0] == list(range(16_700, 17_000))


async def test_columns_go_with_what_they_speak_of(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t")
    log.sweep()
    await log.configure("t", StreamSettings(indexed=True, cap_records=1_000))
    log.sweep()
    assert blocks(store) == {1}
    await log.drop("t")
    log.sweep()
    assert blocks(store) == set()


async def test_a_dropped_stream_leaves_no_block_half_built(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t")
    assert log._sweeper.sweep()
    await log.drop("t")
    log.sweep()
    await fill(log, "t", total=100)
    log.sweep()
    assert (await all_of(log, "t", Filter(subject=(None, "7"))))[0] == list(range(7, 100, 10))


async def test_a_damaged_column_costs_only_time(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t")
    log.sweep()
    store.write([(Space.COLUMNS, key, bytes(len(value))) for key, value in store.scan(Space.COLUMNS, ID.pack(1))])
    assert await all_of(log, "t", RARE) == (list(range(16_500, 17_000)), TOTAL)


async def test_a_missing_record_is_still_told(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t")
    log.sweep()
    gone = [key for key, _ in store.scan(Space.RECORDS, ID.pack(1)) if 16_300 < int.from_bytes(key[4:]) < 16_900]
    store.write([(Space.RECORDS, key, None) for key in gone])
    with pytest.raises(Corrupt):
        await all_of(log, "t", RARE)


async def test_a_block_that_cannot_be_read_has_no_columns(log: LocalLog, store: MemoryStore) -> None:
    await fill(log, "t")
    key, value = next(iter(store.scan(Space.RECORDS, ID.pack(1))))
    store.write([(Space.RECORDS, key, bytes(len(value)))])
    log.sweep()
    assert blocks(store) == {1}
    with pytest.raises(Corrupt):
        await all_of(log, "t", RARE)
    assert (await all_of(log, "t", RARE, 4_000))[0] == list(range(16_500, 17_000))


async def test_an_ephemeral_stream_keeps_its_columns_in_memory(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path / "store", clock, Metrics())
    await fill(log, "t", StreamSettings(indexed=True, durability=Durability.EPHEMERAL))
    log.sweep()
    assert (await all_of(log, "t", RARE))[1] < 2_000
    await log.configure("t", INDEXED)
    assert (await all_of(log, "t", RARE))[1] < 2_000
    await log.close()


async def test_columns_outlive_the_process(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path / "store", clock, Metrics())
    await fill(log, "t")
    log.sweep()
    await log.close()
    log = open_embedded(tmp_path / "store", clock, Metrics())
    found, scanned = await all_of(log, "t", RARE)
    assert (found, scanned < 2_000) == (list(range(16_500, 17_000)), True)
    await log.close()


async def test_verify_holds_columns_against_their_records(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "store"
    log = open_embedded(path, clock, Metrics())
    await fill(log, "t")
    log.sweep()
    await log.close()
    assert verify(path).findings == []
    builder = columns.Builder(1)
    builder.add([Record(seq, 0, b"1", subject=("wrong", "0")) for seq in range(columns.first_of(1), TOTAL)][:20])
    assert [finding.seq for finding in written(path, clock, builder.changes(1)).findings][:20] == list(
        range(columns.first_of(1), columns.first_of(1) + 20)
    )
    builder = columns.Builder(0)
    builder.add([Record(1, 0, b"1", subject=("none", "1000000"))])
    other = [change for change in builder.changes(1) if change[1][-2:] == b"\x80\x01"]  # numbers of the second token
    assert len(other) == 1
    assert "a column is damaged" in str(written(path, clock, other).findings)
    key = columns.PLACE.pack(1, 0, 2)
    assert "a column is damaged" in str(written(path, clock, [(Space.COLUMNS, key, b"x" * 30)]).findings)
    key = columns.PLACE.pack(77, 0, 0)
    assert "a stream 77 that does not exist" in str(
        written(path, clock, [(Space.COLUMNS, key, seal(key, b""))]).findings
    )


def written(path: Path, clock: ManualClock, changes: list[Change]) -> Report:
    store = LmdbStore(path, clock)
    store.write(changes)
    store.close()
    return verify(path)


TOKEN = st.sampled_from(["rare3", "rare33", "0", "7", "none"])
CONSTRAINTS = st.builds(
    lambda op, value: Constraint(Kind.INT, op, (value,)), st.sampled_from([Op.EQ, Op.GTE, Op.LT]), st.integers(-1, 11)
)
FILTERS = st.builds(
    lambda first, second, constraint, placed: Filter(
        subject=(first, second),
        constraints=[] if constraint is None else [(1, constraint)],
        area=parse_polygon(AREA) if placed else None,
    ),
    st.none() | TOKEN,
    st.none() | TOKEN,
    st.none() | CONSTRAINTS,
    st.booleans(),
)


@pytest.mark.slow
def test_any_filter_gets_the_same_with_and_without_columns() -> None:
    async def prepared() -> tuple[LocalLog, LocalLog]:
        logs = []
        for stream in (INDEXED, StreamSettings()):
            log = LocalLog(MemoryStore(), ManualClock(), Metrics())
            await fill(log, "t", stream)
            await log.delete("t", Selector(seqs=tuple(range(5_000, 20_000, 7))))
            log.sweep()
            logs.append(log)
        return logs[0], logs[1]

    with asyncio.Runner() as runner:
        indexed, plain = runner.run(prepared())

        @settings(max_examples=40, deadline=None)
        @given(FILTERS, st.integers(0, TOTAL))
        def same(wanted: Filter, after: int) -> None:
            with_columns = runner.run(all_of(indexed, "t", wanted, after))[0]
            assert with_columns == runner.run(all_of(plain, "t", wanted, after))[0]

        same()


def test_a_page_ends_where_it_is_full() -> None:
    async def first_page() -> Page:
        log = LocalLog(MemoryStore(), ManualClock(), Metrics())
        await fill(log, "t")
        log.sweep()
        return await log.read("t", Cursor(), records_max=3, accept=RARE)

    page = asyncio.run(first_page())
    assert [record.seq for record in page.records] == [16_500, 16_501, 16_502]
    assert page.cursor.seq == 16_502
