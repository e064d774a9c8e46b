"""Contract: news. Everything that becomes visible or durable is announced once, in order; and a reader that goes from
history to live neither loses nor repeats a record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from seamark.errors import HeadConflict
from seamark.log.protocol import Append, Log, News, Selector
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.testing.contract.base import (
    DISK,
    EVERY_CLASS,
    FSYNC,
    PATIENCE_SECONDS,
    ContractBase,
    eventually,
    settled,
    write,
)


@dataclass(slots=True)
class Gazette:
    """A listener that writes down, per stream, what was announced as visible and what as durable."""

    visible: dict[str, list[int]] = field(default_factory=dict)
    synced: dict[str, list[int]] = field(default_factory=dict)
    news: list[News] = field(default_factory=list)

    def listen(self, batch: Sequence[News]) -> None:
        for news in batch:
            self.news.append(news)
            if news.visible and not news.dropped:
                _extend(self.visible.setdefault(news.stream, []), news, news.marks.head)
            if news.synced and not news.dropped:
                _extend(self.synced.setdefault(news.stream, []), news, news.marks.synced)


def _extend(seqs: list[int], news: News, mark: int) -> None:
    """News without records (the writer is elsewhere) means everything up to the mark."""
    if news.records is None:
        seqs += range(seqs[-1] + 1 if seqs else 1, mark + 1)
    else:
        seqs += [record.seq for record in news.records]


@dataclass(slots=True)
class Follower:
    """A reader as the streaming room builds it: news is kept from the start, history is read to its end, then news is
    taken over from the cursor on."""

    log: Log
    stream: str
    synced: bool = False
    seen: list[Record] = field(default_factory=list)
    cursor: Cursor = field(default_factory=Cursor)
    arrived: list[News] = field(default_factory=list)
    ring: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self, batch: Sequence[News]) -> None:
        self.arrived += [news for news in batch if news.stream == self.stream]
        self.ring.set()

    async def follow(self, last: int) -> None:
        stop = self.log.wakeup.subscribe(self.listen)
        try:
            await self._catch_up()
            while self.cursor.seq < last:
                await asyncio.wait_for(self.ring.wait(), PATIENCE_SECONDS)
                self.ring.clear()
                arrived, self.arrived = self.arrived, []
                for news in arrived:
                    await self._take(news)
        finally:
            stop()

    async def _catch_up(self) -> None:
        while True:
            page = await self.log.read(self.stream, self.cursor, records_max=5, synced=self.synced)
            assert page.gap is None
            self.seen += page.records
            self.cursor = page.cursor
            if self.cursor.seq >= (page.marks.synced if self.synced else page.marks.head):
                return

    async def _take(self, news: News) -> None:
        if not (news.synced if self.synced else news.visible):
            return
        if news.records is None:
            await self._catch_up()
            return
        for record in news.records:
            if record.seq > self.cursor.seq:
                assert record.seq == self.cursor.seq + 1, "a record was never announced"
                self.seen.append(record)
                self.cursor = Cursor(record.seq, news.instance)


class NewsContract(ContractBase):
    """`Log.wakeup`, and the hand-over from history to live."""

    @EVERY_CLASS
    async def test_each_record_is_announced_once_in_order(self, log: Log, durability: str) -> None:
        settings = StreamSettings(durability=durability)  # type: ignore[arg-type]
        gazette = Gazette()
        log.wakeup.subscribe(gazette.listen)

        async def writer(stream: str) -> None:
            for n in range(15):
                await write(log, stream, *(f"{n}.{i}" for i in range(n % 3 + 1)), create=settings)

        await asyncio.gather(*(writer(stream) for stream in ("a", "b") for _ in range(4)))
        everything = list(range(1, 121))

        async def told() -> bool:
            return all(len(told.get(s, [])) >= 120 for told in (gazette.visible, gazette.synced) for s in ("a", "b"))

        await eventually(told)
        await settled(log, "a")
        assert gazette.visible == gazette.synced == {"a": everything, "b": everything}

    @EVERY_CLASS
    async def test_news_carries_the_truth(self, log: Log, durability: str) -> None:
        gazette = Gazette()
        log.wakeup.subscribe(gazette.listen)
        receipt = await write(log, "s", "a", "b", create=StreamSettings(durability=durability))  # type: ignore[arg-type]
        await write(log, "s", "c")

        async def told() -> bool:
            return gazette.synced.get("s", []) == [1, 2, 3] == gazette.visible.get("s")

        await eventually(told)
        records = (await log.read("s", Cursor())).records
        for news in gazette.news:
            assert (news.stream, news.instance, news.dropped) == ("s", receipt.instance, False)
            assert news.marks.synced <= news.marks.head
            if news.records is not None:
                assert all(record == records[record.seq - 1] for record in news.records)
                if news.synced:
                    assert all(record.seq <= news.marks.synced for record in news.records)
        heads = [news.marks.head for news in gazette.news]
        assert heads == sorted(heads)

    async def test_fsync_records_are_visible_and_durable_at_once(self, log: Log) -> None:
        gazette = Gazette()
        log.wakeup.subscribe(gazette.listen)
        await asyncio.gather(*(write(log, "s", f"{n}") for n in range(20)))

        async def told() -> bool:
            return len(gazette.visible.get("s", [])) == 20

        await eventually(told)
        assert all(news.visible and news.synced for news in gazette.news if news.records or news.records is None)

    async def test_refusals_and_repeats_are_no_news(self, log: Log) -> None:
        gazette = Gazette()
        log.wakeup.subscribe(gazette.listen)
        await write(log, "s", "a", key="k")
        await write(log, "s", "a", key="k")
        with pytest.raises(HeadConflict):
            await log.append(Append(stream="s", drafts=[Draft(b"x")], expect_head=7))
        await log.delete("s", Selector(before=1))
        await write(log, "other", "b")

        async def told() -> bool:
            return gazette.visible.get("other") == [1] == gazette.synced.get("other")

        await eventually(told)
        assert gazette.visible["s"] == gazette.synced["s"] == [1]

    async def test_a_drop_is_news(self, log: Log) -> None:
        gazette = Gazette()
        log.wakeup.subscribe(gazette.listen)
        first = await write(log, "s", "a", "b")
        await log.drop("s")
        await log.drop("s")
        second = await write(log, "s", "c")

        async def told() -> bool:
            return any(news.instance == second.instance and news.visible for news in gazette.news)

        await eventually(told)
        (drop,) = [news for news in gazette.news if news.dropped]
        assert (drop.stream, drop.instance, drop.marks.head) == ("s", first.instance, 2)
        lives = [news.instance for news in gazette.news]
        assert lives == sorted(lives, key=[first.instance, second.instance].index), "one life ends before the next"
        assert gazette.news[lives.count(first.instance) - 1] is drop

    async def test_listeners_are_told_until_they_stop(self, log: Log) -> None:
        first, second = Gazette(), Gazette()
        stop = log.wakeup.subscribe(first.listen)
        log.wakeup.subscribe(second.listen)
        await write(log, "s", "a")

        async def both_told() -> bool:
            return first.visible == second.visible == {"s": [1]}

        await eventually(both_told)
        stop()
        await write(log, "s", "b")

        async def told() -> bool:
            return second.visible == {"s": [1, 2]}

        await eventually(told)
        assert first.visible == {"s": [1]}

    async def test_a_failing_listener_harms_nobody(self, log: Log) -> None:
        def fail(batch: Sequence[News]) -> None:
            raise RuntimeError(f"a listener broke on {len(batch)} news")

        gazette = Gazette()
        log.wakeup.subscribe(fail)
        log.wakeup.subscribe(gazette.listen)
        for n in range(3):
            await write(log, "s", f"{n}")

        async def told() -> bool:
            return gazette.visible.get("s") == [1, 2, 3]

        await eventually(told)

    async def test_history_to_live_neither_loses_nor_repeats(self, log: Log) -> None:
        for stream, settings in (("fsync", FSYNC), ("disk", DISK)):
            await write(log, stream, *(f"{n}" for n in range(20)), create=settings)

        async def writer(stream: str, name: str) -> None:
            for n in range(30):
                await log.append(Append(stream=stream, drafts=[Draft(f"{name}{n}".encode())] * (n % 2 + 1)))
                await asyncio.sleep(0)

        last = 20 + 3 * 45
        followers: list[Follower] = []
        following: list[asyncio.Task[None]] = []
        writing = [asyncio.ensure_future(writer(s, name)) for s in ("fsync", "disk") for name in "xyz"]
        while len(followers) < 40 and not all(task.done() for task in writing):
            for stream in ("fsync", "disk"):
                for synced in (False, True):
                    followers.append(Follower(log, stream, synced))
                    following.append(asyncio.ensure_future(followers[-1].follow(last)))
            await asyncio.sleep(0.001)
        try:
            await asyncio.gather(*writing, *following)
        finally:
            for task in (*writing, *following):
                task.cancel()
        stored = {stream: (await log.read(stream, Cursor(), records_max=1_000)).records for stream in ("fsync", "disk")}
        assert [len(records) for records in stored.values()] == [last, last]
        assert all(follower.seen == stored[follower.stream] for follower in followers)
