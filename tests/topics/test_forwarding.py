"""Forwarding: what comes to a dest, in which order, and what becomes of it when things stand in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import pytest_asyncio

from seamark import limits
from seamark.clock import ManualClock
from seamark.errors import Corrupt
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Selector, Shelf, TagMatch
from seamark.log.record import Draft
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics
from seamark.testing.contract.base import eventually
from seamark.testing.naive import NaiveLog
from seamark.topics.feed import Feed
from seamark.topics.model import stream_of
from seamark.topics.router_rows import PLACES, ROUTERS, load
from tests.log.test_refusals import MoodyStore
from tests.topics.routed import KeptStore, Routed, routed


@pytest_asyncio.fixture
async def life() -> AsyncIterator[Routed]:
    async with routed() as life:
        yield life


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


async def delete(life: Routed, topic: str, **selector: Any) -> None:
    await life.log.delete(stream_of(topic), Selector(**selector))


# -- what comes through


async def test_copies_are_in_order_and_whole(life: Routed) -> None:
    await life.write("a", "before")
    await life.route("r", "a", "b")
    many = numbers(1, 2 * limits.ROUTER_BATCH_RECORDS + 5)
    await life.write("a", *many)
    await life.write("a", "last", node="n", tag="t", meta=b'{ "m": 1 }')
    records = await life.records("b")
    assert [record.payload.decode() for record in records] == [*many, "last"]
    assert [record.seq for record in records] == [*range(1, len(many) + 2)]
    assert (records[-1].node, records[-1].tag, records[-1].meta) == ("n", "t", b'{ "m": 1 }')
    assert life.forwarded("r") == len(many) + 1


async def test_nobody_has_to_read_for_copies_to_be_made(life: Routed) -> None:
    await life.route("1", "a", "b")
    await life.route("2", "b", "c")
    await life.write("a", "x")

    async def came() -> bool:
        return (await life.log.state(stream_of("c"))).count == 1

    await eventually(came)


async def test_a_filter_lets_some_through_and_the_others_are_passed(life: Routed) -> None:
    await life.route("r", "a", "b", filter=TagMatch("x", prefix=True))
    for text, tag in [("1", "xa"), ("2", "y"), ("3", None), ("4", "x"), ("5", "z")]:
        await life.write("a", text, tag=tag)
    assert await life.texts("b") == ["1", "4"]
    assert life.forwarded("r") == 2
    assert life.forwarding.feed("r").place.source.seq == 5


async def test_what_is_deleted_before_its_turn_is_passed_silently(life: Routed) -> None:
    await life.route("r", "a", "b")
    async with life.forwarding.held(["r"]):
        await life.write("a", *numbers(1, 6))
        await delete(life, "a", seqs=(2, 5))
    reading = await life.read("b")
    assert ([record.payload for record in reading.records], reading.gaps) == ([b"1", b"3", b"4", b"6"], [])
    await delete(life, "a", before=7)
    assert len(await life.texts("b")) == 4, "a deletion is not forwarded"


async def test_several_routers_and_direct_writes_share_a_dest(life: Routed) -> None:
    await life.route("tagged", "a", "b", filter=TagMatch("x"))
    await life.route("all", "a", "b", preserve_tag=False)
    await life.write("a", "1", tag="x")
    await life.records("b")
    await life.write("b", "direct")
    records = await life.records("b")
    assert [record.payload for record in records] == [b"1", b"1", b"direct"]
    assert {record.tag for record in records} == {"x", None}


@pytest.mark.parametrize("durability", ["ephemeral", "memory", "disk", "fsync"])
async def test_copies_have_the_class_of_the_dest(life: Routed, durability: str) -> None:
    await life.configure("b", durability=durability)
    await life.route("r", "a", "b")
    await life.write("a", "x")
    assert await life.texts("b") == ["x"]
    assert (await life.log.state(stream_of("b"))).settings.durability == durability


async def test_a_changed_router_goes_on_from_its_place(life: Routed) -> None:
    await life.route("r", "a", "b", filter=TagMatch("x"))
    await life.write("a", "1", tag="x")
    await life.write("a", "2", tag="y")
    await life.read("b")
    assert not await life.route("r", "a", "b", filter=TagMatch("y"))
    await life.write("a", "3", tag="x")
    await life.write("a", "4", tag="y")
    assert await life.texts("b") == ["1", "4"]
    assert life.forwarded("r") == 2


# -- chains and circles


async def test_a_long_chain_is_read_to_its_end(life: Routed) -> None:
    for number in range(40):
        await life.route(f"r{number}", f"t{number}", f"t{number + 1}")
    await life.write("t0", "x")
    assert life.forwarding.owes("t40")
    assert await life.texts("t40") == ["x"]
    assert not life.forwarding.owes("t40")
    assert not life.forwarding.owes("t0")


async def test_two_mirrored_topics_end_before_long_and_keep_the_writer(life: Routed) -> None:
    await life.route("there", "a", "b", allow_cycle=True)
    await life.route("back", "b", "a", allow_cycle=True)
    await life.write("a", "x", node="na")
    await life.write("b", "y", node="nb")
    for _ in range(20):
        await life.read("a")
        await life.read("b")
    assert not life.forwarding.owes("a")
    assert not life.forwarding.owes("b")
    for topic, own, other in (("a", "na", "nb"), ("b", "nb", "na")):
        records = await life.records(topic)
        assert 2 <= len(records) <= 16
        assert {record.node for record in records} == {own, other}, "whoever reads without its own records sees no echo"


async def test_a_circle_closed_by_one_permission_ends_as_well(life: Routed) -> None:
    await life.route("1", "a", "b")
    await life.route("2", "b", "c")
    await life.route("3", "c", "a", allow_cycle=True)
    await life.write("a", "x")
    for _ in range(40):
        for topic in "abc":
            await life.read(topic)
    assert [len(await life.texts(topic)) for topic in "abc"] == [9, 9, 9]


# -- what stands in the way


@pytest.mark.parametrize("cap", [{"cap_records": 3}, {"cap_bytes": 3}])
async def test_a_full_dest_stops_its_router_until_there_is_room(life: Routed, cap: dict[str, int]) -> None:
    await life.configure("b", discard="reject", **cap)
    await life.route("r", "a", "b")
    await life.write("a", *numbers(1, 8))
    assert await life.texts("b") == ["1", "2", "3"]
    assert life.forwarded("r") == 3
    await delete(life, "b", before=3)
    reading = await life.read("b")
    assert ([record.payload for record in reading.records], reading.gaps) == ([b"3", b"4", b"5"], [])
    await delete(life, "b", before=100)
    assert await life.texts("b") == ["6", "7", "8"]


async def test_a_full_dest_is_tried_again_by_itself(life: Routed) -> None:
    await life.configure("b", discard="reject", cap_records=1)
    await life.route("r", "a", "b")
    await life.write("a", "1", "2")
    assert await life.texts("b") == ["1"]
    await delete(life, "b", before=2)

    async def came() -> bool:
        return (await life.log.state(stream_of("b"))).marks.head == 2

    await eventually(came)


async def test_room_that_is_made_by_request_is_used_at_once(life: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.topics.forwarding._PAUSE_SECONDS", 3_600)
    monkeypatch.setattr(limits, "ROUTER_RETRY_SECONDS_MAX", 3_600)
    await life.configure("b", discard="reject", cap_records=1)
    await life.route("r", "a", "b")
    await life.write("a", "1", "2")
    assert await life.texts("b") == ["1"]
    await delete(life, "b", before=2)
    life.forwarding.room_made(stream_of("b"))

    async def came() -> bool:
        return (await life.log.state(stream_of("b"))).marks.head == 2

    await eventually(came)


async def test_a_record_that_never_fits_holds_up_what_follows(life: Routed) -> None:
    await life.configure("b", discard="reject", cap_bytes=4)
    await life.route("r", "a", "b")
    await life.write("a", "1")
    await life.write("a", "too large", "2")
    assert await life.texts("b") == ["1"]
    await life.configure("b", discard="reject", cap_bytes=40)
    assert await life.texts("b") == ["1", "too large", "2"]


async def test_one_router_that_waits_holds_up_no_other(life: Routed) -> None:
    await life.configure("full", discard="reject", cap_records=1)
    for number in range(limits.ROUTERS_AT_WORK_MAX + 1):
        await life.route(f"stuck{number}", "a", "full")
    await life.route("free", "a", "b")
    await life.write("a", "1", "2")
    assert await life.texts("b") == ["1", "2"]


async def test_a_small_backlog_does_not_wait_for_a_large_one(life: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROUTERS_AT_WORK_MAX", 1)
    await life.forwarding.drain()
    life.forwarding.start()
    await life.route("large", "a", "b")
    await life.route("small", "c", "d")
    async with life.forwarding.held(["large", "small"]):
        for _ in range(20):
            await life.write("a", *["x"] * limits.ROUTER_BATCH_RECORDS)
        await life.write("c", "y")

    async def came() -> bool:
        return (await life.log.state(stream_of("d"))).count == 1

    while not await came():
        await asyncio.sleep(0)
    assert (await life.log.state(stream_of("b"))).count <= 3 * limits.ROUTER_BATCH_RECORDS
    assert len(await life.texts("b")) == 20 * limits.ROUTER_BATCH_RECORDS


@pytest.mark.parametrize("mood", ["ill", "odd"])
async def test_a_store_that_refuses_makes_nothing_twice_and_skips_nothing(mood: str) -> None:
    """`odd` takes the commit and says that it did not."""
    store, clock = MoodyStore(), ManualClock()
    log = LocalLog(store, clock, Metrics(), ephemeral=MemoryStore())
    life = Routed(log, clock)
    for name, dest, guarantee in [("1", "b", "at_least_once"), ("2", "c", "exactly_once")]:
        await life.route(name, "a", dest, guarantee=guarantee)
    for turn in range(4):
        async with life.forwarding.held(["1", "2"]):
            await life.write("a", f"{turn}.1", f"{turn}.2")
            store.mood = mood
        await life.read("b")  # readers are not told of it
        await life.read("c")
        store.mood = "well"
        log.sweep()
        log.sweep()
    expected = [f"{turn}.{number}" for turn in range(4) for number in (1, 2)]
    assert await life.texts("b") == expected
    assert await life.texts("c") == expected
    assert life.forwarded("1") == life.forwarded("2") == 8
    await life.close()


async def test_a_fault_of_ours_stops_one_router_for_a_moment(life: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    await life.route("r", "a", "b")
    step, broken = Feed.step, True

    async def fragile(feed: Feed) -> bool:
        if broken:
            raise RuntimeError("broken")
        return await step(feed)

    monkeypatch.setattr(Feed, "step", fragile)
    await life.write("a", "x")
    assert await life.texts("b") == []
    broken = False
    assert await life.texts("b") == ["x"]


async def test_a_reader_that_gives_up_repeats_nothing(life: Routed) -> None:
    await life.route("r", "a", "b")
    for number in range(30):
        await life.write("a", str(number))
        reading = asyncio.create_task(life.forwarding.catch_up("b"))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        reading.cancel()
    assert await life.texts("b") == numbers(0, 29)


async def test_a_missing_dest_is_waited_for(life: Routed) -> None:
    await life.route("r", "a", "b")
    await life.log.drop(stream_of("b"))
    await life.write("a", "1")
    await life.forwarding.catch_up("b")
    await life.configure("b")
    await life.write("a", "2")
    assert await life.texts("b") == ["1", "2"]


# -- losses


async def test_what_the_source_lost_is_told_in_its_place(life: Routed) -> None:
    await life.configure("a", cap_records=3)
    await life.route("r", "a", "b")
    await life.write("a", "1", "2")
    await life.read("b")
    async with life.forwarding.held(["r"]):
        await life.write("a", *numbers(3, 9))
    reading = await life.read("b")
    assert [record.payload.decode() for record in reading.records] == ["1", "2", "7", "8", "9"]
    assert reading.gaps == [Gap(3, 6, Loss.SOURCE)], "and nothing that is live is hidden"
    assert life.forwarded("r") == 5


async def test_what_was_lost_and_what_was_deleted_between_losses(life: Routed) -> None:
    await life.configure("a", ttl_ms=1_000)
    await life.route("r", "a", "b")
    async with life.forwarding.held(["r"]):
        await life.write("a", "1", "2")
        life.clock.advance(2)
        await life.write("a", "3")
        await life.log.state(stream_of("a"))
    reading = await life.read("b")
    assert (reading.gaps, [record.payload for record in reading.records]) == ([Gap(1, 2, Loss.SOURCE)], [b"3"])


async def test_a_loss_goes_down_a_chain(life: Routed) -> None:
    await life.configure("a", cap_records=1)
    await life.route("1", "a", "b")
    await life.route("2", "b", "c", guarantee="exactly_once")
    await life.write("a", "0")
    await life.read("c")
    await life.write("a", *numbers(1, 5))  # four of them are gone with the commit that brings them
    reading = await life.read("c")
    assert reading.gaps == [Gap(2, 5, Loss.SOURCE)]
    assert [record.payload for record in reading.records] == [b"0", b"5"]


async def test_a_loss_among_direct_writes_is_as_long_as_it_was(life: Routed) -> None:
    await life.configure("a", cap_records=1)
    await life.route("r", "a", "b")
    async with life.forwarding.held(["r"]):
        await life.write("a", *numbers(1, 5))
    writes = [asyncio.create_task(life.write("b", f"direct{number}")) for number in range(20)]
    await life.read("b")
    await asyncio.gather(*writes)
    reading = await life.read("b")
    assert sum(gap.missed for gap in reading.gaps) == 4
    assert {gap.loss for gap in reading.gaps} == {Loss.SOURCE}
    assert len(reading.records) == 21


async def test_an_engine_that_cannot_tell_a_loss_goes_on() -> None:
    class Mute(NaiveLog):
        lose = None  # type: ignore[assignment]

    clock = ManualClock()
    life = Routed(Mute(clock), clock)
    await life.configure("a", cap_records=1)
    await life.route("r", "a", "b")
    await life.write("a", "1", "2", "3")
    assert await life.texts("b") == ["3"]
    await life.close()


async def test_an_engine_at_the_end_of_a_wire() -> None:
    clock = ManualClock()
    life = Routed(NaiveLog(clock, laggy=True), clock)
    await life.route("1", "a", "b", guarantee="exactly_once")
    await life.route("2", "b", "c")
    await asyncio.gather(*(life.write("a", str(number)) for number in range(30)))
    assert life.forwarding.owes("c")
    assert sorted(await life.texts("c"), key=int) == numbers(0, 29)
    await life.close()


# -- lives


def reborn(store: KeptStore, clock: ManualClock) -> Routed:
    return Routed(LocalLog(store, clock, Metrics(), ephemeral=MemoryStore()), clock)


async def test_routers_go_on_after_a_restart() -> None:
    store, clock = KeptStore(), ManualClock()
    life = reborn(store, clock)
    await life.route("r", "a", "b", filter=TagMatch("x"), preserve_node=False, guarantee="exactly_once")
    await life.write("a", "1", tag="x")
    await life.read("b")
    router = life.book.get("r").router
    async with life.forwarding.held(["r"]):
        await life.write("a", "2", tag="x")
        await life.close()
    life = reborn(store, clock)
    await life.book.settle()
    assert life.book.get("r") == (router, 1)
    assert await life.texts("b") == ["1", "2"]
    assert life.forwarded("r") == 2
    await life.close()


async def test_a_removal_that_was_cut_short_is_finished_at_the_next_start() -> None:
    store, clock = KeptStore(), ManualClock()
    life = reborn(store, clock)
    await life.route("1", "a", "b")
    await life.route("2", "b", "c")
    await life.route("3", "c", "d")
    await life.log.drop(stream_of("b"))
    await life.close()
    life = reborn(store, clock)
    await life.book.settle()
    assert [router.name for router in life.book.roster] == ["3"]
    assert isinstance(life.log, Shelf)
    assert [key for space in (ROUTERS, PLACES) for key, _ in life.log.scan(space)] == [b"3", b"3"]
    await life.close()


async def test_a_removed_router_leaves_no_row_however_busy_it_was(life: Routed) -> None:
    assert isinstance(life.log, Shelf)
    for _ in range(10):
        await life.route("r", "a", "b")
        await life.write("a", *["x"] * 3_000)
        assert await life.book.remove("r")
        assert [*life.log.scan(ROUTERS), *life.log.scan(PLACES)] == []
        await asyncio.sleep(0)
    assert not await life.book.remove("r")
    assert [*life.log.scan(PLACES)] == []


@pytest.mark.parametrize("turns", range(1, 5))
async def test_a_change_is_made_whole_though_nobody_waits_for_it(life: Routed, turns: int) -> None:
    assert isinstance(life.log, Shelf)
    acts: list[Callable[[], Coroutine[Any, Any, bool]]] = [
        lambda: life.route("r", "a", "b"),
        lambda: life.route("r", "a", "b", preserve_tag=False),
        lambda: life.book.remove("r"),
    ]
    for act in acts:
        asking = asyncio.create_task(act())
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        assert [router for router, _ in load(life.log)] == list(life.book.roster)
    assert len(life.book.roster) == 0


async def test_a_source_that_was_made_again_is_copied_from_its_first_record(life: Routed) -> None:
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "old 1", "old 2", "old 3")
    await life.read("b")
    async with life.forwarding.held(["r"]):
        await life.write("a", "never seen")
        await life.log.drop(stream_of("a"))
        await life.write("a", *(f"new {number}" for number in range(6)))
    reading = await life.read("b")
    assert [record.payload.decode() for record in reading.records] == [
        "old 1", "old 2", "old 3", "new 0", "new 1", "new 2", "new 3", "new 4", "new 5",
    ]  # fmt: skip
    assert reading.gaps == []


async def test_a_damaged_row_stops_its_router_and_not_the_server() -> None:
    class Blind(NaiveLog):
        def scan(self, space: str, prefix: bytes = b"") -> Any:
            raise Corrupt("a stored value fails its checksum")

    clock = ManualClock()
    life = Routed(Blind(clock), clock)
    assert len(life.book.roster) == 0
    await life.close()


# -- copies that somebody else made


async def stamped(life: Routed, dest: str) -> list[bytes]:
    return [record.meta or b"" for record in await life.records(dest)]


async def forge(life: Routed, dest: str, seq: int, *, text: str = "forged") -> int:
    """Write a copy of source record `seq` by hand."""
    meta = (await stamped(life, dest))[0]
    first = b'"source_seq":1}'
    assert first in meta
    forged = meta.replace(b':1:1"', b':1:%d"' % seq).replace(first, b'"source_seq":%d}' % seq)
    append = Append(stream=stream_of(dest), drafts=[Draft(text.encode(), meta=forged)])
    return (await life.log.append(append)).first


async def test_a_copy_that_is_there_already_is_not_made_again(life: Routed) -> None:
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "1")
    await forge(life, "b", 3)
    await life.write("a", "2", "3", "4")
    assert await life.texts("b") == ["1", "forged", "2", "4"]
    assert life.forwarded("r") == 3
    assert life.forwarding.feed("r").place.source.seq == 4


async def test_a_copy_that_is_gone_by_then_is_made(life: Routed) -> None:
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "1")
    place = await forge(life, "b", 2)
    await life.write("a", "x", tag="unrelated")
    assert await life.texts("b") == ["1", "forged"]
    place = await forge(life, "b", 3, text="forged again")
    await life.write("other", "x")
    async with life.forwarding.held(["r"]):
        await life.write("a", "3")
        await delete(life, "b", seqs=(place,))
    assert await life.texts("b") == ["1", "forged", "3"]


async def test_a_copy_made_by_hand_is_found_after_a_restart() -> None:
    store, clock = KeptStore(), ManualClock()
    life = reborn(store, clock)
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "1")
    await forge(life, "b", 4)
    await life.write("a", "2")
    await life.read("b")
    await life.write("a", "3")
    await life.read("b")
    await life.close()
    life = reborn(store, clock)
    await life.write("a", "4", "5")
    assert await life.texts("b") == ["1", "forged", "2", "3", "5"]
    place = life.forwarding.feed("r").place
    assert place.dest.seq >= 4, "what was read once is not read again"
    await life.close()


async def test_keys_found_are_bounded(life: Routed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROUTER_KEYS_MAX", 2)
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "1")
    for seq in (2, 3, 4, 5):
        await forge(life, "b", seq)
    for number in range(2, 8):
        await life.write("a", str(number))
        await life.read("b")
    assert await life.texts("b") == ["1", "forged", "forged", "forged", "forged", "6", "7"]


async def test_at_least_once_looks_for_nothing(life: Routed) -> None:
    await life.route("r", "a", "b", guarantee="exactly_once")
    await life.write("a", "1")
    await forge(life, "b", 2)
    await life.route("r", "a", "b")
    await life.write("a", "2")
    assert await life.texts("b") == ["1", "forged", "2"]
    assert [record.meta for record in await life.records("b")][-1] is None


async def test_the_place_is_kept_with_the_life_of_the_source(life: Routed) -> None:
    await life.route("r", "a", "b")
    receipt = await life.write("a", "1")
    await life.read("b")
    assert life.forwarding.feed("r").place.source == Cursor(1, receipt.instance)
