"""A fixed boundary between history and live: what was there when the reader came is history, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from seamark.log.record import Record
from seamark.log.watermarks import Cursor
from seamark.stream.dialect import Span
from seamark.stream.leg import LegSpec
from seamark.telemetry.metrics import Counter
from tests.stream.conftest import Frame, LineDialect, LineScript, World, line


class ToldDialect(LineDialect):
    """Each record on a line of its own, with what it is told as."""

    def fragment(self, record: Record, live: bool) -> bytes:
        return line("live" if live else "history", record.seq)

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        return b"".join(fragments)


class OneWord(LineScript):
    """Says "caught up" once."""

    def __init__(self, dialect: LineDialect | None = None) -> None:
        super().__init__(dialect or ToldDialect())
        self.said = False

    def caught_up(self, span: Span) -> bytes:
        said, self.said = self.said, True
        return b"" if said else line("over", span.to)


class CountedDialect(ToldDialect):
    def __init__(self, deliveries: Counter) -> None:
        super().__init__("counted")
        self.deliveries = deliveries


def told(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame[0] != "open"]


async def test_what_comes_while_history_is_read_is_live(world: World) -> None:
    await world.append("s", *"abc")
    _, pipe = world.watch(LegSpec(stream="s", until=3, then_live=True), script=OneWord())
    await world.append("s", *"de")
    await world.settle()
    await world.append("s", "f")
    await world.settle()
    assert told(pipe.frames) == [
        *(["history", seq] for seq in (1, 2, 3)), ["over", 3], *(["live", seq] for seq in (4, 5, 6)),
    ]  # fmt: skip


async def test_an_empty_history_is_over_at_once(world: World) -> None:
    await world.append("s", *"abc")
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(3), until=3, then_live=True), script=OneWord())
    await world.append("s", "d")
    await world.settle()
    assert told(pipe.frames) == [["over", 3], ["live", 4]]


async def test_a_reader_that_lags_after_its_history_is_told_of_live(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch(LegSpec(stream="s", until=1, then_live=True), script=OneWord())
    await world.settle()
    pipe.fill()
    await world.append("s", *"bcd")
    pipe.drain()
    await world.settle()
    assert told(pipe.frames) == [["history", 1], ["over", 1], *(["live", seq] for seq in (2, 3, 4))]


async def test_a_reader_without_history_that_lags_is_told_of_live(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(1), then_live=True), script=OneWord())
    pipe.fill()
    await world.append("s", *"bc")
    pipe.drain()
    await world.settle()
    assert [frame for frame in told(pipe.frames) if frame[0] != "over"] == [["live", 2], ["live", 3]]


@pytest.mark.parametrize("stalled", [False, True])
async def test_too_much_history_can_be_the_end(world: World, stalled: bool) -> None:
    await world.append("s", *"abcde")
    leg = LegSpec(stream="s", until=5, then_live=True, history_max=2, limit_ends=True)
    _, pipe = world.watch(leg, script=OneWord())
    if stalled:
        pipe.fill()
        await world.settle()
        pipe.drain()
    await world.append("s", "f")
    await world.settle()
    assert told(pipe.frames) == [["history", 1], ["history", 2], ["limited", "s", 5], ["close", "end"]]
    assert pipe.ended


async def test_history_that_just_fits_goes_on_to_live(world: World) -> None:
    await world.append("s", *"ab")
    leg = LegSpec(stream="s", until=2, then_live=True, history_max=2, limit_ends=True)
    _, pipe = world.watch(leg, script=OneWord())
    await world.append("s", *"cdef")
    await world.settle()
    assert told(pipe.frames) == [
        ["history", 1], ["history", 2], ["over", 2], *(["live", seq] for seq in (3, 4, 5, 6)),
    ]  # fmt: skip


async def test_one_leg_that_ended_at_its_limit_leaves_the_others_alone(world: World) -> None:
    await world.append("s", *"abc")
    await world.append("t", "x")
    limited = LegSpec(stream="s", history_max=1, limit_ends=True)
    session, pipe = world.watch(limited, "t", script=LineScript(ToldDialect()))
    await world.settle()
    assert ["limited", "s", 3] in pipe.frames
    await world.append("t", "y")
    await world.settle()
    assert pipe.frames[-1] == ["live", 2]
    assert not session.closed


async def test_a_pause_between_pages_is_kept(world: World) -> None:
    class TwoAtATime(ToldDialect):
        burst_records_max = 2
        burst_bytes_max = 1_000

    await world.append("s", *"abcde")
    leg = LegSpec(stream="s", until=5, then_live=True, pause_seconds=0.01)
    _, pipe = world.watch(leg, script=OneWord(TwoAtATime()))
    await world.settle()
    assert told(pipe.frames) == [["history", 1], ["history", 2]]
    while ["over", 5] not in pipe.frames:
        await asyncio.sleep(0.005)
    assert [frame[1] for frame in told(pipe.frames)] == [1, 2, 3, 4, 5, 5]


async def test_a_dialect_may_count_what_it_delivered(world: World) -> None:
    deliveries = Counter()
    await world.append("s", *"ab")
    for _ in range(3):
        world.watch("s", script=LineScript(CountedDialect(deliveries)))
    await world.settle()
    assert deliveries.value == 6
    await world.append("s", "c")
    await world.settle()
    assert deliveries.value == 9
