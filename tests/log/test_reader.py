from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.clock import ManualClock
from seamark.errors import BadInput, Corrupt
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Page, Selector
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.store import Space
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics


def seqs(page: Page) -> list[int]:
    return [record.seq for record in page.records]


async def fill(log: LocalLog, sizes: list[int], payload: bytes = b"x") -> None:
    await log.configure("t", StreamSettings())
    for size in sizes:
        await log.append(Append(stream="t", drafts=[Draft(payload)] * size))


async def test_pages_chain_without_hole_or_repeat(log: LocalLog) -> None:
    await fill(log, [300, 1, 1, 700, 5])
    for records_max in (1, 7, 256, 300, 2_000):
        seen: list[int] = []
        cursor = Cursor()
        while True:
            page = await log.read("t", cursor, records_max=records_max)
            assert page.resume == cursor.seq
            assert len(page.records) <= records_max
            seen += seqs(page)
            cursor = page.cursor
            if page.caught_up:
                break
        assert seen == list(range(1, 1_008))


async def test_a_byte_budget_gives_at_least_one_record(log: LocalLog) -> None:
    await fill(log, [10], b"x" * 100)
    assert seqs(await log.read("t", Cursor(), bytes_max=0)) == [1]
    assert seqs(await log.read("t", Cursor(), bytes_max=299)) == [1, 2]
    assert seqs(await log.read("t", Cursor(), bytes_max=300)) == [1, 2, 3]


async def test_rejected_and_deleted_records_move_the_cursor(log: LocalLog) -> None:
    await fill(log, [20])
    await log.delete("t", Selector(seqs=(19, 20)))
    page = await log.read("t", Cursor(), records_max=2, accept=lambda record: record.seq % 5 == 0)
    assert (seqs(page), page.cursor.seq, page.scanned) == ([5, 10], 10, 10)
    page = await log.read("t", page.cursor, accept=lambda record: False)
    assert (seqs(page), page.cursor.seq, page.scanned, page.caught_up) == ([], 20, 8, True)


async def test_a_filter_that_rejects_everything_is_read_to_the_end_or_in_turns(log: LocalLog) -> None:
    await log.configure("t", StreamSettings())
    total = limits.SCAN_RECORDS_MAX + 3_000
    for _ in range(0, total, 1_000):
        await log.append(Append(stream="t", drafts=[Draft(b"")] * 1_000))
    page = await log.read("t", Cursor(), accept=lambda record: False)
    assert (page.scanned, page.caught_up) == (total, True)
    page = log.read_now("t", Cursor(), accept=lambda record: False)
    assert limits.SCAN_RECORDS_MAX <= page.scanned < total
    assert not page.caught_up
    rest = log.read_now("t", page.cursor, accept=lambda record: False)
    assert page.scanned + rest.scanned == total
    assert rest.caught_up


async def test_interior_losses_are_told_one_per_page_where_they_are(log: LocalLog) -> None:
    await fill(log, [3])
    await log.lose("t", 5, Loss.SOURCE)
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 2))
    await log.lose("t", 9, Loss.SOURCE)
    pages: list[tuple[Gap | None, list[int]]] = []
    cursor = Cursor()
    while True:
        page = await log.read("t", cursor)
        pages.append((page.gap, seqs(page)))
        cursor = page.cursor
        if page.caught_up:
            break
    assert pages == [
        (None, [1, 2, 3]),
        (Gap(first=4, last=5, loss=Loss.SOURCE), [6, 7]),
        (Gap(first=8, last=9, loss=Loss.SOURCE), []),
    ]
    assert (await log.read("t", Cursor(4))).gap == Gap(first=5, last=5, loss=Loss.SOURCE)
    assert (await log.read("t", Cursor(9))).gap is None
    state = await log.configure("t", StreamSettings(cap_records=1))
    assert (state.state.marks.evict_floor, state.state.marks.earliest) == (7, 7)
    assert (await log.read("t", Cursor())).gap == Gap(first=1, last=6, loss=Loss.CAP)


async def test_what_is_declared_lost_is_never_given_again(log: LocalLog) -> None:
    await fill(log, [1])
    with pytest.raises(BadInput):
        await log.lose("t", 1, Loss.SOURCE)
    await log.lose("t", 4, Loss.SOURCE)
    assert (await log.append(Append(stream="t", drafts=[Draft(b"x")]))).first == 5


async def test_more_losses_than_can_be_kept_apart_take_the_oldest_records_with_them(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOST_RANGES_MAX", 2)
    await log.configure("t", StreamSettings())
    for upto in (2, 4, 6):
        await log.append(Append(stream="t", drafts=[Draft(b"x")]))
        await log.lose("t", upto, Loss.SOURCE)
    page = await log.read("t", Cursor())
    assert (page.gap, seqs(page)) == (Gap(first=1, last=2, loss=Loss.SOURCE), [3])
    assert (await log.state("t")).count == 2


async def test_a_cursor_of_another_instance_or_beyond_the_head_starts_over(log: LocalLog) -> None:
    await fill(log, [5])
    await log.delete("t", Selector(before=3))
    for cursor in (Cursor(6), Cursor(2, "another instance"), Cursor(0, "another instance")):
        page = await log.read("t", cursor)
        assert page.gap == Gap(first=1, last=2, loss=Loss.RECREATED)
        assert (page.resume, seqs(page)) == (2, [3, 4, 5])
    instance = (await log.state("t")).instance
    assert (await log.read("t", Cursor(5, instance))).gap is None


async def test_a_page_must_be_able_to_hold_something(log: LocalLog) -> None:
    await fill(log, [1])
    with pytest.raises(BadInput):
        await log.read("t", Cursor(), records_max=0)
    with pytest.raises(BadInput):
        await log.read("t", Cursor(), bytes_max=-1)
    with pytest.raises(BadInput):
        await log.read("t", Cursor(-1))


@given(st.lists(st.integers(1, 40), max_size=30), st.sets(st.integers(1, 60)), st.integers(0, 600))
def test_time_to_seq_agrees_with_a_scan(steps: list[int], deleted: set[int], asked: int) -> None:
    async def run() -> None:
        clock = ManualClock(now_ns=0)
        log = LocalLog(MemoryStore(), clock, Metrics())
        await log.configure("t", StreamSettings())
        for step in steps:
            clock.advance(step * 1e-9)
            await log.append(Append(stream="t", drafts=[Draft(b"")] * (step % 3 + 1)))
        await log.delete("t", Selector(seqs=tuple(deleted)))
        records = (await log.read("t", Cursor())).records
        head = (await log.state("t")).marks.head
        expected = next((record.seq for record in records if record.ts >= asked), head + 1)
        assert await log.seq_at("t", asked) == expected
        await log.close()

    asyncio.run(run())


async def test_a_damaged_chunk_is_never_served_and_hides_nothing_else() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await fill(log, [2, 2, 2])
    await log.append(Append(stream="other", drafts=[Draft(b"fine")], create=StreamSettings()))
    key, value = list(store.scan(Space.RECORDS, b"\0\0\0\1"))[1]
    store.write([(Space.RECORDS, key, bytes(value[:-1]) + b"?")])
    page = await log.read("t", Cursor())
    assert (seqs(page), page.cursor.seq, page.caught_up) == ([1, 2], 2, False)
    with pytest.raises(Corrupt) as caught:
        await log.read("t", page.cursor)
    assert caught.value.fields == {"stream": "t", "seq": 3, "where": "chunk"}
    assert seqs(await log.read("t", Cursor(4))) == [5, 6]
    assert seqs(await log.read("other", Cursor())) == [1]
    assert (await log.append(Append(stream="t", drafts=[Draft(b"more")]))).first == 7
    await log.close()


async def test_a_chunk_that_vanished_is_noticed() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await fill(log, [2, 2, 2])
    keys = [key for key, _ in store.scan(Space.RECORDS, b"\0\0\0\1")]
    store.write([(Space.RECORDS, keys[1], None)])
    assert seqs(await log.read("t", Cursor())) == [1, 2]
    with pytest.raises(Corrupt):
        await log.read("t", Cursor(2))
    store.write([(Space.RECORDS, keys[2], None)])
    with pytest.raises(Corrupt):
        await log.read("t", Cursor(4))
    await log.close()


async def test_a_chunk_that_vanished_before_a_loss_is_noticed() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await fill(log, [2])
    await log.lose("t", 9, Loss.SOURCE)
    await log.append(Append(stream="t", drafts=[Draft(b"x")]))
    (first, _), _ = store.scan(Space.RECORDS, b"\0\0\0\1")
    store.write([(Space.RECORDS, first, None)])
    with pytest.raises(Corrupt):
        await log.read("t", Cursor())
    page = await log.read("t", Cursor(2))
    assert (page.gap, seqs(page)) == (Gap(first=3, last=9, loss=Loss.SOURCE), [10])
    await log.close()
