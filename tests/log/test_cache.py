from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark import limits
from seamark.clock import ManualClock
from seamark.errors import Corrupt
from seamark.log import chunk as chunks
from seamark.log.cache import ReadCache
from seamark.log.chunk import Chunk
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Page, Selector
from seamark.log.record import Draft, Record
from seamark.log.seal import SEAL
from seamark.log.settings import StreamSettings
from seamark.log.store import PLACE, Space
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

KEPT = limits.READ_CACHE_ASKS_MIN
COUNT = limits.READ_CACHE_RECORDS_MIN


def packed(first: int, count: int = COUNT, payload: bytes = b"x") -> tuple[bytes, bytearray]:
    """One stored chunk."""
    records = [Record(seq, seq * 1_000, payload) for seq in range(first, first + count)]
    ((key, value),) = chunks.pack(1, records, single=False)
    return key, value


def ask(cache: ReadCache, key: bytes, value: bytes | bytearray, times: int = 1) -> Chunk:
    for _ in range(times):
        chunk = cache.parse("t", key, value)
        cache.held("t", chunk)
    return chunk


async def opened(*batches: int, payload: bytes = b"x") -> tuple[LocalLog, MemoryStore]:
    """A log whose stream "t" has a chunk for each batch."""
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.configure("t", StreamSettings())
    for count in batches:
        await log.append(Append(stream="t", drafts=[Draft(payload)] * count))
    return log, store


async def read(log: LocalLog, times: int = 1) -> Page:
    for _ in range(times):
        page = await log.read("t", Cursor())
    return page


def seqs(page: Page) -> list[int]:
    return [record.seq for record in page.records]


def test_a_chunk_is_kept_once_it_was_asked_for_often_enough() -> None:
    cache = ReadCache()
    key, value = packed(1)
    first = ask(cache, key, value, KEPT - 1)
    assert (len(cache), cache.bytes) == (0, 0)
    kept = ask(cache, key, value)
    assert kept is not first
    assert len(cache) == 1
    assert ask(cache, key, value) is kept
    assert cache.bytes > len(value)


def test_one_pass_through_a_history_leaves_nothing_and_small_chunks_never_stay() -> None:
    cache = ReadCache()
    for first in range(1, 1_000, COUNT):
        ask(cache, *packed(first), times=KEPT - 1)
    assert len(cache) == 0
    ask(cache, *packed(1, COUNT - 1), times=KEPT + 5)
    assert len(cache) == 0


def test_what_was_asked_for_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_CACHE_ASKED_MAX", 2)
    cache = ReadCache()
    ask(cache, *packed(1), times=KEPT - 1)
    for first in (101, 201):
        ask(cache, *packed(first))
    ask(cache, *packed(1))
    assert len(cache) == 0


def test_a_value_that_was_written_anew_is_not_answered_from_the_old_one() -> None:
    cache = ReadCache()
    key, value = packed(1)
    ask(cache, key, value, KEPT)
    _, other = packed(1, payload=b"other")
    assert ask(cache, key, other).records()[0].payload == b"other"
    assert (len(cache), cache.bytes) == (0, 0)
    assert ask(cache, key, value).records()[0].payload == b"x"


def test_a_chunk_that_came_another_way_takes_the_place_of_the_kept_one() -> None:
    cache = ReadCache()
    key, value = packed(1)
    ask(cache, key, value, KEPT)
    for _ in range(KEPT):
        cache.held("t", Chunk(key, value))
    assert len(cache) == 1
    before = cache.bytes
    ask(cache, key, value, 2)
    assert cache.bytes == before


def test_those_that_were_not_read_for_longest_make_room() -> None:
    big = b"x" * 1_000
    cache = ReadCache(4 * COUNT * 1_300)
    for first in (1, 101, 201):
        ask(cache, *packed(first, payload=big), times=KEPT)
    chunk = ask(cache, *packed(1, payload=big))
    for other in (301, 401):
        ask(cache, *packed(other, payload=big), times=KEPT)
    assert cache.bytes <= 4 * COUNT * 1_300
    assert len(cache) < 5
    assert ask(cache, *packed(1, payload=big)) is chunk


def test_what_is_kept_takes_about_as_much_memory_as_it_is_counted_for() -> None:
    values = [packed(first, 250, bytes(100)) for first in range(1, 10_000, 250)]
    cache = ReadCache()
    tracemalloc.start()
    try:
        for key, value in values:
            ask(cache, key, value, KEPT)
            held = cache.held("t", cache.parse("t", key, value))
            assert held is not None
            held.each("form", lambda record: b"<%b>" % record.payload)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == len(values)
    assert 0.8 < taken / cache.bytes < 1.2


def test_a_form_is_made_once_and_few_are_kept() -> None:
    cache = ReadCache()
    held = cache.held("t", ask(cache, *packed(1), times=KEPT))
    assert held is not None
    made: list[int] = []

    def make(record: Record) -> bytes:
        made.append(record.seq)
        return b"%d" % record.seq

    assert list(held.each("a", make)) == [b"%d" % seq for seq in range(1, COUNT + 1)]
    assert held.each("a", make) is held.each("a", make)
    assert len(made) == COUNT
    before = cache.bytes
    for number in range(50):
        held.each(number, make)
    assert cache.bytes <= before * limits.READ_CACHE_FORMS_MAX
    held.each("a", make)
    assert len(made) == 52 * COUNT


def test_a_form_that_is_larger_than_the_cache_is_given_and_not_kept() -> None:
    cache = ReadCache(100_000)
    held = cache.held("t", ask(cache, *packed(1), times=KEPT))
    assert held is not None
    assert len(held.each("a", lambda record: b"x" * 50_000)) == COUNT
    assert (len(cache), cache.bytes) == (0, 0)


async def test_a_page_is_rendered_from_what_was_made_before() -> None:
    log, _ = await opened(20, 3, 20)
    made: list[int] = []

    def make(record: Record) -> bytes:
        made.append(record.seq)
        return b"%d" % record.seq

    await read(log, KEPT)
    for start, most in ((0, 100), (0, 100), (5, 30), (19, 3), (21, 2), (30, 5), (43, 5)):
        page = await log.read("t", Cursor(start), records_max=most)
        assert page.each("form", make) == [b"%d" % seq for seq in range(start + 1, min(start + most, 43) + 1)]
    assert all(made.count(seq) == 1 for seq in (*range(1, 21), *range(24, 44)))
    assert made.count(22) > 1  # too few in its chunk to be kept
    await log.close()


async def test_a_removed_record_is_gone_for_those_who_read_it_before() -> None:
    log, _ = await opened(20, 20)
    assert len((await read(log, KEPT + 1)).records) == 40
    await log.delete("t", Selector(seqs=(7,)))
    page = await read(log)
    assert seqs(page) == [seq for seq in range(1, 41) if seq != 7]
    assert page.each("form", lambda record: b"%d" % record.seq) == [b"%d" % seq for seq in seqs(page)]
    await log.configure("t", StreamSettings(cap_records=25))
    assert seqs(await read(log, KEPT + 1)) == list(range(16, 41))
    await log.drop("t")
    await log.append(Append(stream="t", drafts=[Draft(b"again")] * 20, create=StreamSettings()))
    assert {record.payload for record in (await read(log, KEPT + 1)).records} == {b"again"}
    await log.close()


Change = Callable[[bytes], bytes | None]


@pytest.mark.parametrize("change", [lambda value: None, lambda value: b"?" + value[1:], lambda value: value[:4]])
async def test_a_kept_chunk_hides_no_damage_to_its_seal(change: Change) -> None:
    log, store = await opened(20, 20)
    await read(log, KEPT + 1)
    key, value = list(store.scan(Space.RECORDS, PLACE.pack(1, 0)))[1]
    store.write([(Space.RECORDS, key, change(bytes(value)))])
    assert seqs(await read(log)) == list(range(1, 21))
    with pytest.raises(Corrupt):
        await log.read("t", Cursor(20))
    await log.close()


async def test_a_kept_chunk_is_what_was_written_whatever_became_of_its_bytes() -> None:
    """Only its seal is looked at again: what was proven is right, and what is wrong is found by whoever reads it."""
    log, store = await opened(20)
    truth = (await read(log, KEPT + 1)).records
    ((key, value),) = store.scan(Space.RECORDS, PLACE.pack(1, 0))
    assert len(value) > SEAL.size
    store.write([(Space.RECORDS, key, bytes(value[:-1]) + b"?")])
    assert (await read(log)).records == truth
    with pytest.raises(Corrupt):
        await log.delete("t", Selector(before=5))
    await log.close()


sizes = st.lists(st.integers(1, 40), min_size=1, max_size=8)
looks = st.lists(
    st.tuples(
        st.integers(0, 200), st.integers(1, 100), st.integers(0, 500), st.sampled_from([None, 2, 3]), st.booleans()
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(sizes, st.lists(st.integers(1, 200), max_size=10), looks, st.integers(0, 20_000))
def test_pages_are_the_same_with_and_without(batches: list[int], gone: list[int], asked: list[Any], room: int) -> None:
    """Whatever is kept, a page is what a log that keeps nothing gives."""

    async def run() -> None:
        log, _ = await opened(*batches, payload=b"1234567890")
        kept, nothing = ReadCache(room), ReadCache(0)
        for number, (start, most, size, every, removes) in enumerate(asked):
            if removes and number < len(gone):
                await log.delete("t", Selector(seqs=(gone[number],)))
            accept = None if every is None else lambda record, every=every: record.seq % every == 0
            pages = []
            for cache in (kept, nothing):
                log._cache = cache
                pages.append(log.read_now("t", Cursor(start), records_max=most, bytes_max=size, accept=accept))
            ours, truth = pages
            assert (ours.records, ours.gap, ours.resume, ours.cursor) == (
                truth.records, truth.gap, truth.resume, truth.cursor,
            )  # fmt: skip
            assert (ours.marks, ours.scanned) == (truth.marks, truth.scanned)
            assert ours.each("form", lambda record: b"%d" % record.seq) == [b"%d" % seq for seq in seqs(truth)]
            assert kept.bytes <= room
            assert not truth.parts
        await log.close()

    asyncio.run(run())
