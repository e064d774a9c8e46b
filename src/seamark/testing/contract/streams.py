"""Contract: streams as things that are made, changed, listed, dropped and made again."""

from __future__ import annotations

import asyncio

import pytest

from seamark.errors import StreamNotFound
from seamark.log.protocol import Health, Log, Selector
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss, Watermarks
from seamark.testing.contract.base import EVERY_CLASS, FSYNC, ContractBase, write
from seamark.testing.reading import read_all


class StreamsContract(ContractBase):
    """`Log.configure`, `state`, `streams` and `drop`."""

    async def test_configure_creates_then_replaces(self, log: Log) -> None:
        settings = StreamSettings(
            durability=Durability.DISK, cap_records=5, cap_bytes=6, ttl_ms=7, discard=Discard.REJECT, dedupe_window_ms=8,
            extra=b"\xff\x00",
        )  # fmt: skip
        made = await log.configure("s", settings)
        assert made.created
        assert (made.state.name, made.state.settings, made.state.marks) == ("s", settings, Watermarks())
        assert (made.state.count, made.state.bytes, made.state.last_ts) == (0, 0, 0)
        same = await log.configure("s", settings)
        assert (same.created, same.state) == (False, made.state)
        changed = await log.configure("s", FSYNC)
        assert (changed.created, changed.state.settings) == (False, FSYNC)
        assert changed.state.instance == made.state.instance
        assert await log.state("s") == changed.state

    async def test_concurrent_creation_happens_once(self, log: Log) -> None:
        made = await asyncio.gather(*(log.configure("s", FSYNC) for _ in range(8)))
        assert sum(each.created for each in made) == 1
        assert len({each.state.instance for each in made}) == 1

    async def test_streams_are_listed_in_byte_order(self, log: Log) -> None:
        names = ["b", "a", "a/b", "a.b", "B", "é", "aa", "t:1", "t:10", "t:2", "\U0001f600", "\uffee"]
        for name in names:
            await write(log, name, "x")
        ordered = sorted(names, key=str.encode)
        assert [s.name for s in await log.streams()] == ordered
        assert [s.name for s in await log.streams(prefix="t:")] == ["t:1", "t:10", "t:2"]
        assert [s.name for s in await log.streams(prefix="t:", after="t:1", limit=1)] == ["t:10"]
        assert [s.name for s in await log.streams(prefix="none")] == []
        assert [s.name for s in await log.streams(after="a")] == ordered[ordered.index("a") + 1 :]
        pages, after = [], ""
        while page := await log.streams(after=after, limit=5):
            pages += [s.name for s in page]
            after = page[-1].name
        assert pages == ordered
        assert [await log.state(name) for name in ordered] == await log.streams()

    async def test_streams_do_not_touch_one_another(self, log: Log) -> None:
        await write(log, "a", "1", "2", "3", create=StreamSettings(cap_records=2))
        await write(log, "ab", "4")
        await write(log, "b", "5")
        await log.delete("ab", Selector(before=9))
        await log.drop("b")
        assert (await read_all(log, "a")).seqs == [2, 3]
        assert (await log.state("ab")).marks == Watermarks(head=1, synced=1, evict_floor=1, earliest=2)
        assert [s.name for s in await log.streams()] == ["a", "ab"]

    @EVERY_CLASS
    async def test_a_dropped_stream_is_gone_and_comes_back_new(self, log: Log, durability: Durability) -> None:
        settings = StreamSettings(durability=durability, cap_records=3)
        first = await write(log, "s", *"abcde", create=settings, key="k")
        dropped = await log.drop("s")
        assert (dropped.name, dropped.existed, dropped.head, dropped.instance) == ("s", True, 5, first.instance)
        for attempt in (log.state("s"), log.read("s", Cursor()), write(log, "s", "x", create=None)):
            with pytest.raises(StreamNotFound):
                await attempt
        assert await log.streams() == []
        again = await log.drop("s")
        assert (again.name, again.existed) == ("s", False)
        second = await write(log, "s", "z", create=FSYNC, key="k")
        assert (second.first, second.created, second.deduped) == (1, True, False)
        assert second.instance != first.instance
        assert (await log.state("s")).settings == FSYNC
        reading = await read_all(log, "s", Cursor(5, first.instance))
        assert (reading.gaps, reading.seqs) == ([Gap(1, 0, Loss.RECREATED)], [1])

    async def test_a_recreated_stream_is_told_although_its_head_has_passed_the_cursor(self, log: Log) -> None:
        first = await write(log, "s", "a", "b")
        await log.drop("s")
        await write(log, "s", *"cdef")
        reading = await read_all(log, "s", Cursor(2, first.instance))
        assert (reading.gaps, reading.seqs) == ([Gap(1, 0, Loss.RECREATED)], [1, 2, 3, 4])
        assert [r.payload for r in reading.records] == [b"c", b"d", b"e", b"f"]

    async def test_a_recreated_empty_stream_says_so(self, log: Log) -> None:
        """Worked examples 9 and 10 of spec/topics.md section 7, as the log tells them."""
        first = await write(log, "s", *"abcde")
        await log.drop("s")
        await log.configure("s", FSYNC)
        page = await log.read("s", Cursor(5, first.instance))
        assert (page.gap, page.resume, page.records) == (Gap(1, 0, Loss.RECREATED), 0, [])
        assert page.caught_up
        assert page.cursor.seq == 0
        assert (await log.read("s", Cursor(5))).gap == Gap(1, 0, Loss.RECREATED)

    async def test_many_generations_share_nothing(self, log: Log) -> None:
        instances = set()
        for turn in range(10):
            await write(log, "s", *(f"{turn}.{n}" for n in range(turn + 1)))
            reading = await read_all(log, "s")
            assert [r.payload.decode() for r in reading.records] == [f"{turn}.{n}" for n in range(turn + 1)]
            instances.add((await log.drop("s")).instance)
        assert len(instances) == 10

    async def test_a_healthy_engine_says_what_its_word_is_worth(self, log: Log) -> None:
        if isinstance(log, Health):
            health = log.health()
            assert health["writable"] is True
            assert health["durability"]
