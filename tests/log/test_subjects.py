"""latest_per_subject: replacement is silent, and the index is exactly what lives."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.log.engines.memory import MemoryStore
from seamark.log.keys import subject_key
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Selector
from seamark.log.record import Draft
from seamark.log.settings import Discard, StreamSettings
from seamark.log.store import PLACE, Space
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics
from seamark.testing.model import StreamModel

subjects = st.sampled_from([None, ("a",), ("b",), ("a", "b")])
batches = st.lists(st.lists(subjects, min_size=1, max_size=6), min_size=1, max_size=6)


async def check(log: LocalLog, store: MemoryStore, expected: list[int]) -> None:
    page = await log.read("t", Cursor(), records_max=1_000)
    assert [record.seq for record in page.records] == expected
    assert (await log.state("t")).count == len(expected)
    indexed = [key for key, _ in store.scan(Space.SUBJECTS, b"\0\0\0\1")]
    assert sorted(indexed) == sorted(subject_key(1, r.subject, r.seq) for r in page.records if r.subject is not None)


@given(batches, st.integers(1, 3))
def test_the_newest_of_each_subject_stay(drawn: list[list[tuple[str, ...] | None]], keep: int) -> None:
    async def run() -> None:
        store = MemoryStore()
        log = LocalLog(store, ManualClock(), Metrics())
        await log.configure("t", StreamSettings(latest_per_subject=keep))
        seq, mine, bare = 0, defaultdict[tuple[str, ...], list[int]](list), list[int]()
        for batch in drawn:
            await log.append(Append(stream="t", drafts=[Draft(b"x", subject=subject) for subject in batch]))
            for subject in batch:
                seq += 1
                (bare if subject is None else mine[subject]).append(seq)
            expected = sorted(bare + [s for seqs in mine.values() for s in seqs[-keep:]])
            await check(log, store, expected)
        assert (await log.read("t", Cursor())).gap is None
        await log.close()

    asyncio.run(run())


@given(batches, st.integers(1, 3), st.integers(0, 3))
def test_changing_the_setting_is_as_if_it_had_always_been(
    drawn: list[list[tuple[str, ...] | None]], keep: int, before: int
) -> None:
    async def run() -> None:
        store = MemoryStore()
        log = LocalLog(store, ManualClock(), Metrics())
        await log.configure("t", StreamSettings(latest_per_subject=before))
        for batch in drawn:
            await log.append(Append(stream="t", drafts=[Draft(b"x", subject=subject) for subject in batch]))
        records = (await log.read("t", Cursor())).records
        await log.configure("t", StreamSettings(latest_per_subject=keep))
        mine: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for record in records:
            if record.subject is not None:
                mine[record.subject].append(record.seq)
        expected = [r.seq for r in records if r.subject is None or r.seq in mine[r.subject][-keep:]]
        await check(log, store, expected)
        await log.configure("t", StreamSettings())
        assert list(store.scan(Space.SUBJECTS, b"\0\0\0\1")) == []
        await log.close()

    asyncio.run(run())


async def test_replacement_and_bounds_meet_in_one_commit() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.configure("t", StreamSettings(latest_per_subject=1, cap_records=2))
    for subject in "abcb":
        await log.append(Append(stream="t", drafts=[Draft(b"x", subject=(subject,))]))
    await check(log, store, [3, 4])
    assert (await log.read("t", Cursor())).gap == Gap(first=1, last=1, loss=Loss.CAP)
    await log.append(Append(stream="t", drafts=[Draft(b"x", subject=(s,)) for s in "abcab"]))
    await check(log, store, [8, 9])
    await log.delete("t", Selector(subject=("a",)))
    await check(log, store, [9])
    await log.close()


@given(
    st.lists(st.lists(st.lists(subjects, min_size=1, max_size=4), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 2),
    st.integers(1, 5),
    st.sampled_from(Discard),
)
def test_what_shares_a_commit_is_replaced_before_it_is_capped(
    groups: list[list[list[tuple[str, ...] | None]]], keep: int, cap: int, discard: Discard
) -> None:
    async def run() -> None:
        store, clock = MemoryStore(), ManualClock()
        log = LocalLog(store, clock, Metrics())
        wanted = StreamSettings(latest_per_subject=keep, cap_records=cap, discard=discard)
        await log.configure("t", wanted)
        model = StreamModel(wanted)
        for group in groups:
            writers = [([Draft(b"x", subject=subject) for subject in batch], None) for batch in group]
            appends = [log.append(Append(stream="t", drafts=drafts)) for drafts, _ in writers]
            answers = await asyncio.gather(*appends, return_exceptions=True)
            outcomes = model.append_together(writers, clock.now_ns())
            assert [getattr(answer, "first", None) for answer in answers] == [
                getattr(outcome, "first", None) for outcome in outcomes
            ]
            await check(log, store, [record.seq for record in model.records])
            page = await log.read("t", Cursor())
            assert ([page.gap] if page.gap else []) == model.read(Cursor(), instance="").gaps
        await log.close()

    asyncio.run(run())


async def test_a_replaced_record_does_not_hold_back_its_chunk() -> None:
    """One commit replaces the last record of a chunk and evicts the rest: nothing committed lives, nothing stays stored."""
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"x"), Draft(b"x", subject=("a",))], create=StreamSettings()))
    await log.configure("t", StreamSettings(latest_per_subject=1, cap_records=2))
    await log.append(Append(stream="t", drafts=[Draft(b"x", subject=("a",)), Draft(b"x")]))
    await check(log, store, [3, 4])
    assert [key for key, _ in store.scan(Space.RECORDS, PLACE.pack(1, 0))] == [PLACE.pack(1, 3), PLACE.pack(1, 4)]
    await log.close()
