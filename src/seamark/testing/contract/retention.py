"""Contract: retention. Losses are bounded, exact, stated and for good; replacement is silent; refusal loses nothing."""

from __future__ import annotations

import pytest

from seamark.errors import StreamFull
from seamark.log.protocol import Append, Log
from seamark.log.record import Draft
from seamark.log.settings import Discard, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.contract.base import FSYNC, ContractBase, needs, write
from seamark.testing.examples import EXAMPLES, Delete, Example, Set, Wait, Write, gaps_of
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig


async def play(rig: LogRig, name: str, example: Example) -> None:
    """Do to a real stream what an example says."""
    log = rig.log
    await log.configure(name, example.settings)
    for step in example.steps:
        match step:
            case Write(drafts):
                await log.append(Append(stream=name, drafts=drafts))
            case Wait(ms):
                rig.clock.advance(ms / 1_000)
            case Set(settings):
                await log.configure(name, settings)
            case Delete(selector, count):
                assert (await log.delete(name, selector)).count == count


async def check_example(log: Log, name: str, example: Example) -> None:
    """Compare a real stream with what an example says, page by page."""
    state = await log.state(name)
    marks = state.marks
    assert (marks.head, marks.evict_floor, marks.earliest) == (example.head, example.evict_floor, example.earliest)
    assert state.count == example.count
    for seq, told in example.told.items():
        for records_max in (1, 256):
            reading = await read_all(log, name, Cursor(seq), records_max=records_max)
            assert (reading.gaps, reading.seqs) == (gaps_of(told), told[1])
            assert reading.cursor == Cursor(example.head, state.instance)


class RetentionContract(ContractBase):
    """Caps, age, refusal and replacement."""

    @pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
    async def test_worked_examples(self, rig: LogRig, example: Example) -> None:
        needs(rig.follows_clock, "follows_clock")
        await play(rig, "s", example)
        await check_example(rig.log, "s", example)

    @pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
    async def test_worked_examples_outlive_the_process(self, rig: LogRig, example: Example) -> None:
        needs(rig.follows_clock and rig.keeps_records, "follows_clock and keeps_records")
        await play(rig, "s", example)
        await check_example(await rig.reopen(), "s", example)

    async def test_one_page_states_at_most_one_gap_before_its_records(self, log: Log) -> None:
        await write(log, "s", *"abcdef", create=StreamSettings(cap_records=2))
        page = await log.read("s", Cursor(1), records_max=1)
        assert (page.gap, page.resume, [r.seq for r in page.records]) == (Gap(2, 4, Loss.CAP), 4, [5])
        after = await log.read("s", page.cursor)
        assert (after.gap, [r.seq for r in after.records]) == (None, [6])

    async def test_caps_hold_after_every_append(self, log: Log) -> None:
        settings = StreamSettings(cap_records=5, cap_bytes=40)
        floor = 1
        for n in range(60):
            await log.append(Append(stream="s", drafts=[Draft(b"x" * (n % 17))] * (n % 3 + 1), create=settings))
            state = await log.state("s")
            assert state.count <= 5
            assert state.bytes <= 40
            assert floor <= state.marks.evict_floor <= state.marks.earliest
            floor = state.marks.evict_floor
            reading = await read_all(log, "s")
            assert reading.gaps == ([Gap(1, floor - 1, Loss.CAP)] if floor > 1 else [])
            assert reading.seqs == list(range(floor, state.marks.head + 1))
            assert (state.count, state.bytes) == (len(reading.records), sum(r.size for r in reading.records))

    async def test_a_clock_stepping_back_brings_nothing_back(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log, clock = rig.log, rig.clock
        await write(log, "s", "a", "b", create=StreamSettings(ttl_ms=1_000))
        clock.advance(1.5)
        assert (await log.state("s")).marks.evict_floor == 3
        clock.step(-10)
        assert (await read_all(log, "s")).gaps == [Gap(1, 2, Loss.TTL)]
        await write(log, "s", "c")
        assert (await read_all(log, "s")).seqs == [3]

    async def test_age_counts_from_the_stamp(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log, clock = rig.log, rig.clock
        for text in "abc":
            await write(log, "s", text, create=StreamSettings(ttl_ms=1_000))
            clock.advance(0.5)
        assert (await read_all(log, "s")).seqs == [2, 3]
        clock.advance(0.5)
        assert (await read_all(log, "s", Cursor(1))).gaps == [Gap(2, 2, Loss.TTL)]
        assert [state.count for state in await log.streams()] == [1]

    # -- refusal

    async def test_a_full_stream_that_rejects_loses_nothing(self, log: Log) -> None:
        settings = StreamSettings(cap_records=3, cap_bytes=100, discard=Discard.REJECT)
        await write(log, "s", "a", "b", create=settings)
        with pytest.raises(StreamFull) as caught:
            await write(log, "s", "c", "d")
        assert caught.value.fields == {
            "stream": "s", "cap_records": 3, "cap_bytes": 100, "head": 2, "earliest": 1,
        }  # fmt: skip
        await write(log, "s", "c")
        with pytest.raises(StreamFull):
            await write(log, "s", "d")
        reading = await read_all(log, "s")
        assert (reading.gaps, reading.seqs) == ([], [1, 2, 3])

    async def test_bytes_are_admitted_by_what_is_live(self, log: Log) -> None:
        settings = StreamSettings(cap_bytes=10, discard=Discard.REJECT)
        await write(log, "s", "x" * 6, create=settings)
        with pytest.raises(StreamFull):
            await write(log, "s", "x" * 5)
        await write(log, "s", "x" * 4)
        with pytest.raises(StreamFull):
            await log.append(Append(stream="s", drafts=[Draft(b"", meta=b"m")]))
        await write(log, "s", "")
        assert (await log.state("s")).bytes == 10

    async def test_expiry_makes_room(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log = rig.log
        await write(log, "s", "a", create=StreamSettings(cap_records=1, ttl_ms=1_000, discard=Discard.REJECT))
        rig.clock.advance(1.0)
        with pytest.raises(StreamFull):
            await write(log, "s", "b")
        rig.clock.advance(0.001)
        assert (await write(log, "s", "b")).first == 2
        reading = await read_all(log, "s")
        assert (reading.gaps, reading.seqs) == ([Gap(1, 1, Loss.TTL)], [2])

    # -- replacement

    async def test_the_newest_of_each_subject_stay(self, log: Log) -> None:
        settings = StreamSettings(latest_per_subject=2)
        newest: dict[tuple[str, ...], list[int]] = {}
        for n in range(40):
            subject = ("s", str(n * n % 7), *(["more"] * (n % 2)))
            await log.append(Append(stream="s", drafts=[Draft(b"%d" % n, subject=subject)], create=settings))
            newest.setdefault(subject, []).append(n + 1)
            reading = await read_all(log, "s")
            assert reading.gaps == []
            assert reading.seqs == sorted(seq for seqs in newest.values() for seq in seqs[-2:])
        marks = (await log.state("s")).marks
        assert (marks.evict_floor, marks.earliest) == (1, reading.seqs[0])

    async def test_records_without_a_subject_are_not_replaced(self, log: Log) -> None:
        await write(log, "s", "a", "b", create=StreamSettings(latest_per_subject=1))
        await log.append(Append(stream="s", drafts=[Draft(b"c", subject=()), Draft(b"d", subject=())]))
        assert (await read_all(log, "s")).seqs == [1, 2, 4]

    async def test_a_bound_can_be_lifted(self, log: Log) -> None:
        await write(log, "s", *"abc", create=StreamSettings(cap_records=1))
        await log.configure("s", FSYNC)
        await write(log, "s", *"def")
        reading = await read_all(log, "s")
        assert (reading.gaps, reading.seqs) == ([Gap(1, 2, Loss.CAP)], [3, 4, 5, 6])
