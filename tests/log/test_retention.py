"""Involuntary loss: the worked examples of the topics contract, and the edges between them."""

from __future__ import annotations

import pytest

from seamark.clock import ManualClock
from seamark.errors import StreamFull
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Page, Selector
from seamark.log.record import Draft
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss


async def write(log: LocalLog, count: int, payload: bytes = b"x") -> None:
    for _ in range(count):
        await log.append(Append(stream="t", drafts=[Draft(payload)]))


def seqs(page: Page) -> list[int]:
    return [record.seq for record in page.records]


async def diff(log: LocalLog, seq: int) -> tuple[Gap | None, list[int]]:
    page = await log.read("t", Cursor(seq), records_max=10_000)
    assert page.caught_up
    return page.gap, seqs(page)


def gap(first: int, last: int, loss: Loss) -> Gap:
    return Gap(first=first, last=last, loss=loss)


async def test_example_1_a_cap_loses_the_oldest(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=3))
    await write(log, 6)
    state = await log.state("t")
    assert (state.marks.head, state.marks.evict_floor, state.marks.earliest, state.count) == (6, 4, 4, 3)
    assert await diff(log, 0) == (gap(1, 3, Loss.CAP), [4, 5, 6])
    assert await diff(log, 2) == (gap(3, 3, Loss.CAP), [4, 5, 6])
    assert await diff(log, 3) == (None, [4, 5, 6])


async def test_example_2_a_deletion_is_silent(log: LocalLog) -> None:
    await log.configure("t", StreamSettings())
    await write(log, 5)
    deleted = await log.delete("t", Selector(before=3))
    assert (deleted.count, deleted.state.marks.earliest, deleted.state.marks.evict_floor) == (2, 3, 1)
    assert await diff(log, 0) == (None, [3, 4, 5])


async def test_example_4_a_deleted_stretch_that_the_floor_passes_counts_as_lost(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=4))
    await write(log, 4)
    await log.delete("t", Selector(before=3))
    await write(log, 6)
    state = await log.state("t")
    assert (state.marks.head, state.marks.evict_floor, state.marks.earliest) == (10, 7, 7)
    assert await diff(log, 0) == (gap(1, 6, Loss.CAP), [7, 8, 9, 10])


async def test_example_5_the_gap_ends_at_the_floor_and_not_at_the_first_live_record(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=3))
    await write(log, 6)
    await log.delete("t", Selector(before=6))
    assert (await log.state("t")).marks.earliest == 6
    assert await diff(log, 0) == (gap(1, 3, Loss.CAP), [6])
    assert await diff(log, 3) == (None, [6])


async def test_examples_6_and_7_age(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(ttl_ms=150))
    await write(log, 3)
    clock.advance(0.2)
    await write(log, 1)
    state = await log.state("t")
    assert (state.marks.earliest, state.count) == (4, 1)
    assert await diff(log, 0) == (gap(1, 3, Loss.TTL), [4])
    clock.advance(0.2)
    assert await diff(log, 0) == (gap(1, 4, Loss.TTL), [])
    state = await log.state("t")
    assert (state.marks.evict_floor, state.marks.earliest, state.count, state.bytes) == (5, 5, 0, 0)


async def test_example_8_two_reasons_are_mixed_where_both_reach(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(ttl_ms=1_000))
    await write(log, 4)
    clock.advance(2)
    await write(log, 6)
    assert (await log.state("t")).marks.evict_floor == 5
    await log.configure("t", StreamSettings(ttl_ms=1_000, cap_records=4))
    assert await diff(log, 0) == (gap(1, 6, Loss.MIXED), [7, 8, 9, 10])
    assert await diff(log, 4) == (gap(5, 6, Loss.CAP), [7, 8, 9, 10])


async def test_examples_9_and_10_a_recreated_stream(log: LocalLog) -> None:
    await log.configure("t", StreamSettings())
    await write(log, 5)
    await log.drop("t")
    await log.configure("t", StreamSettings())
    assert await diff(log, 5) == (gap(1, 0, Loss.RECREATED), [])
    await write(log, 1)
    assert await diff(log, 5) == (gap(1, 0, Loss.RECREATED), [1])


async def test_the_last_tick_of_a_lifetime_still_counts(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(ttl_ms=1_000))
    await write(log, 1)
    clock.advance(1)
    assert (await log.state("t")).count == 1
    clock.advance(1e-9)
    assert (await log.state("t")).count == 0


async def test_a_clock_that_steps_back_brings_nothing_back(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(ttl_ms=1_000))
    await write(log, 2)
    clock.advance(2)
    assert (await log.state("t")).count == 0
    clock.step(-3_600)
    await write(log, 1)
    assert await diff(log, 0) == (gap(1, 2, Loss.TTL), [3])
    await write(log, 2)
    page = await log.read("t", Cursor(2))
    times = [record.ts for record in page.records]
    assert times == sorted(times)


async def test_a_relaxed_bound_brings_nothing_back(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=2))
    await write(log, 5)
    await log.configure("t", StreamSettings())
    assert await diff(log, 0) == (gap(1, 3, Loss.CAP), [4, 5])


async def test_bytes_are_payload_and_meta(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_bytes=10))
    await log.append(Append(stream="t", drafts=[Draft(b"1234", meta=b"5"), Draft(b"12345", tag="uncounted")]))
    assert (await log.state("t")).bytes == 10
    await log.append(Append(stream="t", drafts=[Draft(b"", meta=b"1")]))
    assert await diff(log, 0) == (gap(1, 1, Loss.CAP), [2, 3])


async def test_an_append_beyond_its_own_cap_keeps_its_end(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=3))
    receipt = await log.append(Append(stream="t", drafts=[Draft(b"%d" % n) for n in range(10)]))
    assert (receipt.first, receipt.last) == (1, 10)
    assert await diff(log, 0) == (gap(1, 7, Loss.CAP), [8, 9, 10])
    assert (await log.state("t")).bytes == 3


async def test_many_chunks_are_lost_by_their_headers_and_counted_exactly(log: LocalLog, clock: ManualClock) -> None:
    for _ in range(5):
        drafts = [Draft(b"x" * (n % 7)) for n in range(1_000)]
        await log.append(Append(stream="t", drafts=drafts, create=StreamSettings()))
        clock.advance(1)
    state = (await log.configure("t", StreamSettings(cap_records=1_234))).state
    assert (state.count, state.marks.evict_floor) == (1_234, 3_767)
    await log.configure("t", StreamSettings(ttl_ms=1_500))
    assert await diff(log, 4_000) == (None, list(range(4_001, 5_001)))
    page = await log.read("t", Cursor(), records_max=10_000)
    assert page.gap == gap(1, 4_000, Loss.MIXED)
    state = await log.state("t")
    assert state.bytes == sum(record.size for record in page.records)
    assert state.count == len(page.records)


async def test_a_full_stream_that_rejects_counts_what_lives(log: LocalLog) -> None:
    await log.configure("t", StreamSettings(cap_records=3, cap_bytes=30, discard=Discard.REJECT))
    await write(log, 3)
    with pytest.raises(StreamFull) as caught:
        await write(log, 1)
    assert caught.value.fields["head"] == 3
    await log.delete("t", Selector(seqs=(2,)))
    await write(log, 1)
    assert await diff(log, 0) == (None, [1, 3, 4])
    with pytest.raises(StreamFull):
        await log.append(Append(stream="t", drafts=[Draft(b"x" * 28)]))


async def test_what_expired_makes_room_in_a_stream_that_rejects(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(cap_records=2, ttl_ms=1_000, discard=Discard.REJECT))
    await write(log, 2)
    clock.advance(2)
    await write(log, 2)
    assert await diff(log, 0) == (gap(1, 2, Loss.TTL), [3, 4])


async def test_age_goes_before_caps_when_both_tighten_at_once(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings())
    await write(log, 8)
    clock.advance(2)
    await log.configure("t", StreamSettings(ttl_ms=500, cap_records=3))
    assert await diff(log, 0) == (gap(1, 8, Loss.TTL), [])


async def test_the_sweep_expires_what_nobody_asks_for(log: LocalLog, clock: ManualClock) -> None:
    await log.configure("t", StreamSettings(ttl_ms=1_000))
    await write(log, 2)
    clock.advance(2)
    log.sweep()
    clock.step(-3_600)
    assert (await log.state("t")).count == 0


@pytest.mark.parametrize("durability", list(Durability))
async def test_every_class_is_bounded(log: LocalLog, clock: ManualClock, durability: Durability) -> None:
    await log.configure("t", StreamSettings(cap_records=3, ttl_ms=1_000, durability=durability))
    await write(log, 5)
    assert await diff(log, 0) == (gap(1, 2, Loss.CAP), [3, 4, 5])
    clock.advance(2)
    assert await diff(log, 5) == (None, [])
    assert (await log.state("t")).marks.evict_floor == 6


async def test_eviction_after_removal_in_the_same_chunk(log: LocalLog) -> None:
    await log.configure("t", StreamSettings())
    await log.append(Append(stream="t", drafts=[Draft(b"%d" % n) for n in range(6)]))
    await log.delete("t", Selector(seqs=(2, 5, 6)))
    await log.configure("t", StreamSettings(cap_records=1))
    assert await diff(log, 0) == (gap(1, 3, Loss.CAP), [4])
    await write(log, 1)
    assert await diff(log, 4) == (None, [7])
