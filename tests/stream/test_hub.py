"""Fan-out: encoded once, written to all, and nobody disturbs anybody."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from seamark.limits import FLUSH_BYTES_MAX, PIPE_HIGH_WATER_BYTES, STALL_SECONDS_MAX
from seamark.log.protocol import News
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.match.filter import Filter
from seamark.stream.dialect import Close
from seamark.stream.leg import LegSpec
from seamark.stream.pipe import Block
from seamark.stream.session import Session
from tests.stream.conftest import LineDialect, LineScript, TapPipe, World, build, seqs


async def test_a_thousand_readers_one_encoding_one_block(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    dialect = LineDialect()
    pipes = [world.watch("s", script=LineScript(dialect))[1] for _ in range(1_000)]
    await world.settle()
    await world.append("s", "a")
    await world.settle()
    assert (dialect.encoded, dialect.assembled) == (1, 1)
    assert len({id(pipe.blocks[-1]) for pipe in pipes}) == 1
    assert len({id(pipe.blocks[-1].framed) for pipe in pipes}) == 1
    assert all(seqs(pipe.frames) == [1] for pipe in pipes)
    assert world.hub.deliveries.value == 1_000


async def test_groups_of_one_projection_share_fragments(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    dialect = LineDialect()
    filters = [None, *(Filter(exclude_nodes=[f"n{n}"]) for n in range(9))]
    pipes = [
        world.watch(LegSpec(stream="s", filter=chosen), script=LineScript(dialect))[1]
        for chosen in filters
        for _ in range(10)
    ]
    await world.settle()
    await world.append("s", "a", "b", node="n3")
    await world.settle()
    assert dialect.encoded == 2
    assert dialect.assembled == 9
    assert [len(seqs(pipe.frames)) for pipe in pipes] == [2] * 40 + [0] * 10 + [2] * 50


async def test_equal_filters_share_a_group_and_an_empty_one_is_no_filter(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    dialect = LineDialect()
    for chosen in (None, Filter(), Filter(exclude_nodes=["a", "b"]), Filter(exclude_nodes=["b", "a"])):
        world.watch(LegSpec(stream="s", filter=chosen), script=LineScript(dialect))
    await world.settle()
    await world.append("s", "x", "y")
    await world.settle()
    assert dialect.assembled == 2


async def test_groups_that_are_given_one_record_alone_share_its_bytes(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    dialect = LineDialect()
    pipes = [
        world.watch(LegSpec(stream="s", filter=Filter(exclude_nodes=[f"n{number}"])), script=LineScript(dialect))[1]
        for number in range(5)
    ]
    await world.settle()
    for turn in (1, 2):
        await world.append("s", f"x{turn}", node="n0")
        await world.settle()
        assert dialect.assembled == turn
        assert len({id(pipe.blocks[-1]) for pipe in pipes[1:]}) == 1
    assert [len(seqs(pipe.frames)) for pipe in pipes] == [0, 2, 2, 2, 2]


class Leaving(TapPipe):
    """Its peer goes away just when something is written."""

    def write(self, block: Block) -> None:
        super().write(block)
        if b"a" in block.raw:
            self.leave()


async def test_the_only_reader_of_a_group_may_leave_while_it_is_written_to(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    session, _ = world.watch("s", pipe=Leaving())
    other, rest = world.watch(LegSpec(stream="s", filter=Filter(exclude_nodes=["x"])))
    await world.settle()
    await world.append("s", "a")
    await world.settle()
    assert session.closed
    assert not other.closed
    assert seqs(rest.frames) == [1]


async def test_the_only_reader_of_a_group_may_be_full_after_what_is_written(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    session, pipe = world.watch("s", pipe=TapPipe(high=0))
    await world.settle()
    pipe.stalled = True
    await world.append("s", "a", "b")
    await world.settle()
    assert session.paused
    assert session.cursors()["s"].seq == 2
    await world.append("s", "c")
    pipe.drain()
    await world.settle()
    assert seqs(pipe.frames) == [1, 2, 3]


async def test_projections_are_told_apart(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    one, two = LineDialect("one"), LineDialect("two")
    for dialect in (one, two, one):
        world.watch("s", script=LineScript(dialect))
    await world.settle()
    await world.append("s", "x")
    await world.settle()
    assert (one.encoded, one.assembled, two.encoded, two.assembled) == (1, 1, 1, 1)


async def test_a_big_burst_is_cut_into_blocks(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    _, pipe = world.watch("s", pipe=TapPipe(high=1 << 30))
    await world.settle()
    await world.append("s", *["x" * 5_000] * 20)
    await world.settle()
    bursts = [block for block in pipe.blocks if b"records" in block.raw]
    assert len(bursts) >= 4
    assert max(len(block.raw) for block in bursts) <= FLUSH_BYTES_MAX + 200
    assert seqs(pipe.frames) == list(range(1, 21))
    spans = [(frame[2], frame[3]) for frame in pipe.frames if frame[0] == "records"]
    assert [after for after, _ in spans] == [0, *(to for _, to in spans[:-1])]


async def test_a_reader_that_pauses_in_the_middle_of_a_big_burst_keeps_its_place(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    session, slow = world.watch("s")
    _, quick = world.watch("s", pipe=TapPipe(high=1 << 30))
    await world.settle()
    slow.stalled = True
    await world.append("s", *["x" * 5_000] * 20)
    await world.settle()
    assert session.paused
    place = session.cursors()["s"].seq
    assert 0 < place < 20
    assert slow.most_buffered <= PIPE_HIGH_WATER_BYTES + FLUSH_BYTES_MAX + 200
    assert seqs(quick.frames) == list(range(1, 21))
    for _ in range(20):
        slow.drain()
        await world.settle(5)
    assert seqs(slow.frames) == list(range(1, 21))


# -- leaving while the group is being written to


class Meddler(TapPipe):
    """A pipe whose write has consequences for others."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: Callable[[], None] | None = None

    def write(self, block: Block) -> None:
        super().write(block)
        if self.meddle is not None and b"records" in block.raw:
            meddle, self.meddle = self.meddle, None
            meddle()


async def test_leaving_in_the_middle_of_a_write_neither_skips_nor_repeats(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    opened = [world.watch("s", pipe=Meddler()) for _ in range(7)]
    await world.settle()
    places: dict[int, int] = {}

    def meddle() -> None:
        for number in (0, 3, 5):  # written before, in the middle of it, and not yet written
            opened[number][0].pause()
            places[number] = opened[number][0].cursors()["s"].seq
        opened[1][0].close(Close.REVOKED)
        opened[6][0].close(Close.REVOKED)

    middle = opened[3][1]
    assert isinstance(middle, Meddler)
    middle.meddle = meddle
    await world.append("s", "a")
    await world.settle()
    assert places == {0: 1, 3: 1, 5: 0}
    for number in (0, 3, 5):
        opened[number][0].resume()
    await world.append("s", "b")
    await world.settle()
    heard = [seqs(pipe.frames) for _, pipe in opened]
    assert heard == [[1, 2], [1], [1, 2], [1, 2], [1, 2], [1, 2], []]


async def test_a_pipe_that_raises_costs_its_own_reader_only(world: World) -> None:
    class Broken(TapPipe):
        def write(self, block: Block) -> None:
            if b"records" in block.raw:
                raise RuntimeError("the transport is closed")
            super().write(block)

    await world.log.configure("s", StreamSettings())
    pipes = [world.watch("s", pipe=Broken() if n in (0, 2, 4) else TapPipe())[1] for n in range(5)]
    await world.settle()
    await world.append("s", "a")
    await world.settle()
    await world.append("s", "b")
    await world.settle()
    assert [seqs(pipe.frames) for pipe in pipes] == [[], [1, 2], [], [1, 2], []]
    assert [pipe.ended for pipe in pipes] == [True, False, True, False, True]


async def test_the_last_one_to_leave_turns_off_the_light(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    for leave in (Session.gone, Session.pause):
        opened = [world.watch("s", pipe=Meddler()) for _ in range(3)]
        await world.settle()

        def meddle(leave: Callable[[Session], None] = leave, opened: list[tuple[Session, TapPipe]] = opened) -> None:
            for session, _ in opened:
                leave(session)

        first = opened[0][1]
        assert isinstance(first, Meddler)
        first.meddle = meddle
        await world.append("s", "a")
        await world.settle()
        for session, pipe in opened:
            session.resume()
            pipe.abort()
        await world.settle()
        assert not world.hub.sessions
        assert not world.hub._channels


# -- what is held


async def test_stalled_readers_hold_no_more_than_their_pipes(world: World) -> None:
    await world.log.configure("s", StreamSettings(cap_records=50))
    opened = [world.watch("s") for _ in range(50)]
    _, healthy = world.watch("s", pipe=TapPipe(high=1 << 30))
    await world.settle()
    for _, pipe in opened:
        pipe.stalled = True
    for _ in range(60):
        await world.append("s", *["x" * 1_000] * 10)
    await world.settle()
    assert seqs(healthy.frames) == list(range(1, 601))
    assert all(session.paused for session, _ in opened)
    assert all(pipe.most_buffered <= PIPE_HIGH_WATER_BYTES + FLUSH_BYTES_MAX + 200 for _, pipe in opened)
    # What waits is the shared blocks, not copies, and it was not growing while the others went on.
    assert len({id(block.raw) for _, pipe in opened for block in pipe.blocks[-1:]}) == 1


async def test_nothing_holds_a_closed_session(world: World) -> None:
    await world.append("s", "a")
    seen: list[weakref.ref[object]] = []
    for end in ("close", "abort", "paused", "behind"):
        session, pipe = world.watch("s", script=LineScript(personal=end == "close"), heartbeat_seconds=5)
        if end != "behind":
            await world.settle()
        if end == "paused":
            session.pause()
        if end == "close":
            session.close(Close.END)
        else:
            pipe.abort()
        seen += [Watched(session).ref, Watched(pipe).ref]
        world.closed.clear()
        del session, pipe
    await world.settle()
    gc.collect()
    assert [ref() for ref in seen] == [None] * len(seen)


class Watched:
    """A weak hold on something; sessions have slots, so their script stands in for them."""

    def __init__(self, thing: Session | TapPipe) -> None:
        self.ref: weakref.ref[object] = weakref.ref(thing.script if isinstance(thing, Session) else thing)


async def test_an_idle_live_session_is_small() -> None:
    world = build("now")
    await world.append("s", "a")
    script = LineScript()

    class Nothing(TapPipe):
        __slots__ = ()

    pipes = [Nothing() for _ in range(1_000)]
    gc.collect()
    tracemalloc.start()
    sessions = []
    for pipe in pipes:
        session = Session(
            world.hub, pipe, script, [LegSpec(stream="s", cursor=Cursor(1))], surface="test", heartbeat_seconds=15
        )
        session.open()
        sessions.append(session)
    await world.settle()
    for pipe in pipes:
        pipe.taken.clear()
        pipe.blocks.clear()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert all(session.legs[0].group is not None for session in sessions)
    assert used / len(sessions) < 3_000
    world.hub.close()
    await world.inner.close()


# -- joining


async def test_joining_while_records_pour_in(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    pipes: list[TapPipe] = []

    async def pour() -> None:
        for number in range(200):
            await world.append("s", str(number))

    async def arrive() -> None:
        for number in range(60):
            cursor = Cursor(number // 2)
            pipes.append(world.watch(LegSpec(stream="s", cursor=cursor, synced=bool(number % 3)))[1])
            await asyncio.sleep(0)

    await asyncio.gather(pour(), arrive(), pour(), pour())
    await world.settle()
    for number, pipe in enumerate(pipes):
        first = number // 2 + 1
        heard = seqs(pipe.frames)
        if pipe.frames[1][0] == "gap":  # it came with a cursor beyond the head of that moment
            first = 1
        assert heard == list(range(first, 601))


async def test_a_slow_group_member_does_not_keep_the_channel(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    pipe.stalled = True
    session.pause()
    await world.pass_time(STALL_SECONDS_MAX + 10, step=1)
    assert session.closed
    assert not world.hub._channels


async def test_news_that_makes_no_sense_costs_only_itself() -> None:
    world = build("now")
    for name in ("s", "t"):
        await world.append(name, "a")
    opened = [world.watch(name)[1] for name in ("s", "t")]
    await world.settle()
    marks, instance = (await world.state("s")).marks, (await world.state("s")).instance
    nonsense: Any = ["no record"]
    world.inner.wakeup.ring([News("s", instance, msgspec.structs.replace(marks, head=2), nonsense, synced=True)])
    assert not world.hub._scheduled, "whoever marks a channel next would wait for a flush that nobody scheduled"
    for name in ("s", "t"):
        await world.append(name, "b")
    await world.settle()
    assert [seqs(pipe.frames) for pipe in opened] == [[1, 2], [1, 2]]
    world.hub.close()
    await world.inner.close()
