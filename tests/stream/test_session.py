"""One reader's stream: what is said, when, and never twice."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import pytest

from seamark.errors import BadInput, Busy, Corrupt, SeamarkError, ShuttingDown
from seamark.limits import CLOSE_LINGER_SECONDS_MAX, LEGS_PER_SESSION_MAX, STALL_SECONDS_MAX
from seamark.log.protocol import Append, Page, Receipt, Selector
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.watermarks import Cursor
from seamark.match.filter import Filter
from seamark.stream.dialect import Close, Span
from seamark.stream.leg import LegSpec
from seamark.stream.pipe import Block
from seamark.stream.session import Session
from tests.stream.conftest import BoundedDialect, Frame, LineScript, TapPipe, World, build, line, seqs


def kinds(frames: list[Frame]) -> list[str]:
    return [frame[0] for frame in frames]


async def test_history_then_live(world: World) -> None:
    await world.append("s", "a", "b")
    _, pipe = world.watch("s")
    await world.settle()
    assert pipe.frames == [
        ["open"],
        ["records", "s", 0, 2, 2, False, [[1, "a"], [2, "b"]]],
        ["caught-up", "s", 2, 2, False],
    ]
    await world.append("s", "c")
    await world.settle()
    assert pipe.frames[3:] == [["records", "s", 2, 3, 3, True, [[3, "c"]]]]


async def test_resume_delivers_what_follows_the_cursor(world: World) -> None:
    await world.append("s", *"abcde")
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(3)))
    await world.settle()
    assert seqs(pipe.frames) == [4, 5]


async def test_a_live_session_owns_no_task(world: World) -> None:
    await world.append("s", "a")
    before = len(asyncio.all_tasks())
    for _ in range(10):
        world.watch("s")
    await world.settle()
    assert len(asyncio.all_tasks()) == before


async def test_one_tick_is_one_burst(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s")
    await world.settle()
    await asyncio.gather(*(world.append("s", text) for text in "bcd"))
    await world.settle()
    live = [frame for frame in pipe.frames if frame[0] == "records" and frame[5]]
    assert live == [["records", "s", 1, 4, 4, True, [[2, "b"], [3, "c"], [4, "d"]]]]


async def test_a_personal_script_stamps_every_burst_and_says_caught_up_after_it(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s", script=LineScript(personal=True))
    await world.settle()
    await world.append("s", "b")
    await world.settle()
    assert pipe.frames[1:] == [
        ["stamp", "me", "s", 1],
        ["records", "s", 0, 1, 1, False, [[1, "a"]]],
        ["caught-up", "s", 1, 1, False],
        ["stamp", "me", "s", 2],
        ["records", "s", 1, 2, 2, True, [[2, "b"]]],
        ["caught-up", "s", 2, 2, True],
    ]


async def test_a_personal_live_burst_is_one_write(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s", script=LineScript(personal=True))
    await world.settle()
    written = len(pipe.blocks)
    await world.append("s", "b")
    await world.settle()
    (block,) = pipe.blocks[written:]
    assert [json.loads(text)[0] for text in block.raw.splitlines()] == ["stamp", "records", "caught-up"]


async def test_sessions_that_say_the_same_may_share_it(world: World) -> None:
    class Chorus(LineScript):
        made: ClassVar[dict[Block, Block]] = {}

        def live(self, block: Block, span: Span, *, last: bool) -> Block:
            return self.made.setdefault(block, Block(line("all", span.to, last) + block.raw))

    await world.append("s", "a")
    watchers = [world.watch("s", script=Chorus(personal=True)) for _ in range(3)]
    await world.settle()
    await world.append("s", "b")
    await world.settle()
    (session, pipe), *_ = watchers
    assert [frame[0] for frame in pipe.frames] == ["open", "stamp", "records", "caught-up", "all", "records"]
    assert pipe.frames[-2] == ["all", 2, True]
    assert len({id(pipe.blocks[-1]) for _, pipe in watchers}) == 1
    session.pause()
    session.resume()
    await world.settle()
    assert kinds(pipe.frames)[-1] == "records"  # "caught up" was among what they said


async def test_a_burst_that_fills_the_pipe_takes_its_caught_up_along(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s", script=LineScript(personal=True))
    await world.settle()
    pipe.stalled = True
    await world.append("s", "x" * 20_000)  # beyond the high-water mark
    await world.settle()
    pipe.drain()
    await world.settle()
    assert kinds(pipe.frames)[4:] == ["stamp", "records", "caught-up"]


async def test_what_a_script_leaves_unsaid_is_asked_for_again(world: World) -> None:
    class Late(LineScript):
        def caught_up(self, span: Span) -> bytes:
            return super().caught_up(span) if span.to > 1 else b""

    await world.append("s", "a")
    session, pipe = world.watch("s", script=Late(personal=True))
    await world.settle()
    assert kinds(pipe.frames) == ["open", "stamp", "records"]
    session.pause()
    await world.append("s", "b")
    session.resume()
    await world.settle()
    assert kinds(pipe.frames)[3:] == ["stamp", "records", "caught-up"]


async def test_a_stamp_may_say_nothing(world: World) -> None:
    class Silent(LineScript):
        def stamp(self, burst: bytes, span: Span) -> bytes | None:
            return b"" if span.to % 2 else None

    await world.append("s", "a")
    _, pipe = world.watch("s", script=Silent(personal=True))
    await world.settle()
    for text in "bc":
        await world.append("s", text)
        await world.settle()
    assert pipe.frames[1:] == [
        ["caught-up", "s", 1, 1, False],
        ["records", "s", 1, 2, 2, True, [[2, "b"]]],
        ["caught-up", "s", 2, 2, True],
    ]


async def test_caught_up_is_not_repeated_when_nothing_was_said(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    for _ in range(3):
        session.pause()
        session.resume()
        await world.settle()
    assert kinds(pipe.frames).count("caught-up") == 1


async def test_filtered_progress_moves_the_cursor_without_a_frame(world: World) -> None:
    await world.append("s", "a", node="n1")
    others = Filter(exclude_nodes=["n1"])
    session, pipe = world.watch(LegSpec(stream="s", filter=others))
    await world.settle()
    await world.append("s", "b", node="n1")
    await world.settle()
    assert kinds(pipe.frames) == ["open", "caught-up"]
    assert session.cursors()["s"].seq == 2
    await world.append("s", "c", node="n2")
    await world.settle()
    assert seqs(pipe.frames) == [3]


async def test_a_dialects_bounds_cut_history_and_live_alike(world: World) -> None:
    await world.append("s", *"abc")
    script = LineScript(BoundedDialect(), personal=True)
    _, pipe = world.watch("s", script=script)
    await world.settle()
    await world.append("s", *"defgh")
    await world.settle()
    spans = [(frame[2], frame[3], len(frame[6])) for frame in pipe.frames if frame[0] == "records"]
    assert spans == [(0, 2, 2), (2, 3, 1), (3, 5, 2), (5, 7, 2), (7, 8, 1)]
    assert kinds(pipe.frames)[-1] == "caught-up"
    assert kinds(pipe.frames).count("caught-up") == 2


# -- gaps


async def test_loss_is_told_before_the_records(world: World) -> None:
    await world.append("s", *"abcde")
    await world.log.configure("s", StreamSettings(cap_records=2))
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(1)))
    await world.settle()
    assert pipe.frames[1:3] == [
        ["gap", "s", 2, 3, "cap", 3, True],
        ["records", "s", 3, 5, 5, False, [[4, "d"], [5, "e"]]],
    ]


async def test_a_cursor_beyond_the_head_is_told_that_the_stream_was_made_again(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch(LegSpec(stream="s", cursor=Cursor(9)))
    await world.settle()
    assert pipe.frames[1] == ["gap", "s", 1, 0, "recreated", 0, True]
    assert seqs(pipe.frames) == [1]


async def test_deletions_are_silent(world: World) -> None:
    await world.append("s", *"abcde")
    await world.log.delete("s", Selector(seqs=(1, 3)))
    _, pipe = world.watch("s")
    await world.settle()
    assert kinds(pipe.frames) == ["open", "records", "caught-up"]
    assert seqs(pipe.frames) == [2, 4, 5]


# -- finite readings


async def test_a_finite_session_ends_at_the_head_it_found(world: World) -> None:
    await world.append("s", *"abc")
    _, pipe = world.watch("s", finite=True)
    await world.settle()
    assert kinds(pipe.frames) == ["open", "records", "caught-up", "close"]
    assert pipe.frames[-1] == ["close", "end"]
    assert pipe.ended


async def test_a_finite_session_on_an_empty_stream_ends_at_once(world: World) -> None:
    await world.log.configure("s", StreamSettings())
    _, pipe = world.watch("s", finite=True)
    await world.settle()
    assert kinds(pipe.frames) == ["open", "caught-up", "close"]


@pytest.mark.parametrize(("until", "expected"), [(2, [1, 2]), (99, [1, 2, 3])])
async def test_until_is_inclusive_and_never_beyond_the_head(world: World, until: int, expected: list[int]) -> None:
    await world.append("s", *"abc")
    _, pipe = world.watch(LegSpec(stream="s", until=until), finite=True)
    await world.settle()
    assert seqs(pipe.frames) == expected
    assert pipe.frames[-1] == ["close", "end"]


@pytest.mark.parametrize("finite", [True, False])
async def test_limited_history_says_so_and_skips_to_its_end(world: World, finite: bool) -> None:
    await world.append("s", *"abcde")
    _, pipe = world.watch(LegSpec(stream="s", history_max=2), finite=finite)
    await world.settle()
    assert kinds(pipe.frames)[:4] == ["open", "records", "limited", "caught-up"]
    assert seqs(pipe.frames) == [1, 2]
    assert pipe.frames[2] == ["limited", "s", 5]
    if not finite:
        await world.append("s", "f", "g", "h")
        await world.settle()
        assert seqs(pipe.frames) == [1, 2, 6, 7, 8]  # the limit is on history


async def test_history_that_just_fits_is_not_called_limited(world: World) -> None:
    await world.append("s", *"ab")
    _, pipe = world.watch(LegSpec(stream="s", history_max=2), finite=True)
    await world.settle()
    assert kinds(pipe.frames) == ["open", "records", "caught-up", "close"]


# -- strong readers


async def test_strong_readers_see_only_what_is_durable(world: World) -> None:
    def check(frames: list[Frame]) -> None:
        synced = world.inner.state_now("s").marks.synced
        durable.extend(frame[3] <= synced for frame in frames if frame[0] == "records")

    durable: list[bool] = []
    await world.append("s", "a", durability=Durability.DISK)
    _, strong = world.watch(LegSpec(stream="s", synced=True))
    _, eventual = world.watch("s")
    for text in "bcdefgh":
        seen = len(strong.frames)
        await world.append("s", text, durability=Durability.DISK)
        for _ in range(5):
            check(strong.frames[seen:])
            seen = len(strong.frames)
            await asyncio.sleep(0)
    await world.settle()
    assert seqs(strong.frames) == seqs(eventual.frames) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert durable
    assert all(durable)


async def test_a_strong_reader_whose_cursor_is_ahead_of_the_durable_mark_waits_for_it() -> None:
    world = build("now")
    await world.append("s", "a", durability=Durability.DISK)
    opened: list[TapPipe] = []

    def acknowledged(outcome: Receipt | SeamarkError) -> None:
        """Called between visible and durable."""
        marks = world.inner.state_now("s").marks
        assert marks.synced < marks.head == 3
        opened.append(world.watch(LegSpec(stream="s", cursor=Cursor(3), synced=True))[1])

    world.log.writer.submit(Append(stream="s", drafts=[Draft(b"b"), Draft(b"c")]), acknowledged)
    await world.settle()
    (pipe,) = opened
    await world.append("s", "d")
    await world.settle()
    assert seqs(pipe.frames) == [4]
    await world.inner.close()


# -- backpressure


async def test_a_paused_reader_gets_nothing_and_then_everything(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    pipe.stalled = True
    await world.append("s", "x" * 20_000)  # beyond the high-water mark
    await world.settle()
    assert session.paused
    assert session.cursors()["s"].seq == 2  # the block that filled it counts as handed over
    for text in "cdef":
        await world.append("s", text)
    await world.settle()
    assert pipe.writes_while_paused == 0
    assert world.hub.lagging.value == 1
    pipe.drain()
    await world.settle()
    assert world.hub.lagging.value == 0
    assert seqs(pipe.frames) == [1, 2, 3, 4, 5, 6]
    await world.append("s", "g")
    await world.settle()
    assert seqs(pipe.frames) == [1, 2, 3, 4, 5, 6, 7]


async def test_a_reader_paused_in_history_goes_on_where_it_was(world: World) -> None:
    for _ in range(8):
        await world.append("s", *(["x" * 9_000] * 4))
    session, pipe = world.watch("s", pipe=TapPipe())
    pipe.stalled = True
    await world.settle()
    assert session.paused
    assert pipe.writes_while_paused == 0
    for _ in range(40):
        pipe.drain()
        pipe.stalled = True
        await world.settle(8)
    assert seqs(pipe.frames) == list(range(1, 33))
    assert pipe.most_buffered <= pipe.high + 40_000  # one block beyond the mark


async def test_a_reader_that_fell_below_the_floor_is_told(world: World) -> None:
    await world.log.configure("s", StreamSettings(cap_records=3))
    session, pipe = world.watch("s")
    await world.settle()
    session.pause()
    for text in "abcdefgh":
        await world.append("s", text)
    session.resume()
    await world.settle()
    assert ["gap", "s", 1, 5, "cap", 5, False] in pipe.frames
    assert seqs(pipe.frames) == [6, 7, 8]


async def test_a_reader_without_progress_is_closed_as_slow(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    pipe.stalled = True
    pipe.waiting = [b"x" * 10, b"y" * 10]
    session.pause()
    await world.pass_time(STALL_SECONDS_MAX - 1, step=1)
    pipe.waiting.pop()  # some progress buys the same time again
    await world.pass_time(STALL_SECONDS_MAX - 1, step=1)
    assert not session.closed
    await world.pass_time(4, step=1)
    assert world.closed == [(session, Close.SLOW)]
    assert not pipe.ended
    await world.pass_time(CLOSE_LINGER_SECONDS_MAX + 1, step=1)
    assert pipe.ended  # cut: it would never have taken the closing event
    assert world.hub.lagging.value == 0


# -- several streams


async def test_many_streams_over_one_pipe(world: World) -> None:
    for stream in "abc":
        await world.append(stream, "1", "2")
    session, pipe = world.watch("a", LegSpec(stream="b", cursor=Cursor(1)), "c")
    await world.settle()
    await world.append("b", "3")
    await world.settle()
    assert {stream: seqs(pipe.frames, stream) for stream in "abc"} == {"a": [1, 2], "b": [2, 3], "c": [1, 2]}
    assert {name: cursor.seq for name, cursor in session.cursors().items()} == {"a": 2, "b": 3, "c": 2}


async def test_a_big_backlog_does_not_hold_up_the_other_streams(world: World) -> None:
    for _ in range(10):
        await world.append("big", *["x" * 100] * 500)
    await world.append("small", "1")
    _, pipe = world.watch("big", "small")
    await world.settle(200)
    order = [frame[1] for frame in pipe.frames if frame[0] == "records"]
    assert order.index("small") <= 40
    assert seqs(pipe.frames, "big") == list(range(1, 5_001))
    first_big_done = next(i for i, f in enumerate(pipe.frames) if f[0] == "caught-up" and f[1] == "big")
    assert next(i for i, f in enumerate(pipe.frames) if f[0] == "caught-up" and f[1] == "small") < first_big_done


async def test_no_more_legs_than_the_bound(world: World) -> None:
    with pytest.raises(BadInput):
        world.watch(*[f"s{n}" for n in range(LEGS_PER_SESSION_MAX + 1)])


# -- a stream that ends


async def test_a_dropped_stream_is_told_at_once_with_its_last_head(world: World) -> None:
    await world.append("s", *"abc")
    await world.append("t", "1")
    session, pipe = world.watch("s", "t")
    await world.settle()
    await world.log.drop("s")
    await world.settle()
    assert pipe.frames[-1] == ["dropped", "s", 3]
    assert session.cursors()["s"].seq == 3
    await world.append("s", "later instance")
    await world.append("t", "2")
    await world.settle()
    assert seqs(pipe.frames, "s") == [1, 2, 3]
    assert seqs(pipe.frames, "t") == [1, 2]
    await world.log.drop("t")
    await world.settle()
    assert pipe.frames[-2:] == [["dropped", "t", 2], ["close", "dropped"]]
    assert world.closed == [(session, Close.DROPPED)]


async def test_dropped_and_made_again_in_one_go(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s")
    await world.settle()
    await world.log.drop("s")
    await world.append("s", "again")
    _, second = world.watch("s")
    await world.settle()
    assert seqs(pipe.frames) == [1]
    assert pipe.frames[-2:] == [["dropped", "s", 1], ["close", "dropped"]]
    assert second.frames[1] == ["records", "s", 0, 1, 1, False, [[1, "again"]]]
    await world.append("s", "more")
    await world.settle()
    assert seqs(second.frames) == [1, 2]


async def test_a_paused_reader_hears_of_the_end_when_it_reads_again(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    session.pause()
    await world.log.drop("s")
    await world.settle()
    assert kinds(pipe.frames) == ["open", "records", "caught-up"]
    session.resume()
    await world.settle()
    assert pipe.frames[-2:] == [["dropped", "s", 1], ["close", "dropped"]]


async def test_a_reader_ahead_of_its_channel_hears_of_the_end_when_it_reads_again() -> None:
    world = build("now")
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    session.pause()
    (leg,) = session.legs
    assert leg.channel is not None
    leg.channel.park(leg, (await world.state("s")).marks)  # as one that read what the channel has not heard of yet
    await world.log.drop("s")
    await world.settle()
    session.resume()
    await world.settle()
    assert pipe.frames[-2:] == [["dropped", "s", 1], ["close", "dropped"]]
    world.hub.close()
    await world.inner.close()


@pytest.mark.parametrize("variant", ["now", "waiting", "silent"])
async def test_a_stream_that_ends_before_anything_was_read_ends_at_its_head(variant: str) -> None:
    world = build(variant)
    await world.append("s", "a", "b")
    _, pipe = world.watch("s")
    await world.log.drop("s")
    await world.settle()
    assert pipe.frames == [["open"], ["dropped", "s", 2], ["close", "dropped"]]
    world.hub.close()
    await world.inner.close()


async def test_a_stream_that_never_was_is_dropped(world: World) -> None:
    _, pipe = world.watch("nothing")
    await world.settle()
    assert pipe.frames[1:] == [["dropped", "nothing", 0], ["close", "dropped"]]


# -- the end of a session


async def test_a_peer_that_went_away_gets_no_words(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    await world.settle()
    pipe.abort()
    assert world.closed == [(session, None)]
    await world.append("s", "b")
    await world.settle()
    assert kinds(pipe.frames) == ["open", "records", "caught-up"]
    assert session.cursors()["s"].seq == 1
    assert not world.hub.sessions


async def test_close_says_why_once(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s")
    session.close(Close.REPLACED)
    session.close(Close.REVOKED)
    await world.settle()
    assert pipe.frames == [["open"], ["close", "replaced"]]
    assert world.closed == [(session, Close.REPLACED)]


async def test_closing_from_within_a_burst(world: World) -> None:
    class Quits(LineScript):
        def stamp(self, burst: bytes, span: Span) -> bytes | None:
            if span.live:
                doomed[0].close(Close.REVOKED)
            return None

    doomed: list[Session] = []
    await world.append("s", "a")
    session, pipe = world.watch("s", script=Quits(personal=True))
    doomed.append(session)
    await world.settle()
    await world.append("s", "b")
    await world.settle()
    assert pipe.frames[-1] == ["close", "revoked"]
    assert seqs(pipe.frames) == [1]
    assert session.cursors()["s"].seq == 1  # the burst it was closed in was not handed over


async def test_a_script_that_raises_ends_its_own_stream_only(world: World) -> None:
    class Breaks(LineScript):
        def stamp(self, burst: bytes, span: Span) -> bytes | None:
            raise RuntimeError("no")

    await world.append("s", "a")
    _, bad = world.watch("s", script=Breaks(personal=True))
    _, good = world.watch("s")
    await world.settle()
    assert bad.frames == [["open"], ["close", "fault"]]
    await world.append("s", "b")
    await world.settle()
    assert seqs(good.frames) == [1, 2]


async def test_a_script_that_cannot_even_begin_leaves_nothing_behind(world: World) -> None:
    class Mute(LineScript):
        def opening(self) -> bytes:
            raise RuntimeError("mine")

    await world.append("s", "a")
    session, pipe = world.watch("s", script=Mute(), deadline_seconds=60)
    assert (session.closed, pipe.frames) == (True, [["close", "fault"]])
    assert world.closed == [(session, Close.FAULT)]
    assert not world.hub.sessions


async def test_a_dialect_that_raises_live_ends_its_group_only(world: World) -> None:
    class Breaks(BoundedDialect):
        def assemble(self, fragments: object, span: Span) -> bytes:
            raise RuntimeError("no")

    await world.log.configure("s", StreamSettings())
    _, bad = world.watch("s", script=LineScript(Breaks("bad")))
    _, good = world.watch("s")
    await world.settle()
    await world.append("s", "a")
    await world.settle()
    assert bad.frames[-1] == ["close", "fault"]
    assert seqs(good.frames) == [1]


async def test_an_unreadable_log_ends_the_stream_with_fault() -> None:
    world = build("waiting")

    async def read(*args: object, **options: object) -> Page:
        raise Corrupt("a stored value fails its checksum", stream="s", seq=1, where="chunk")

    await world.append("s", "a")
    world.log.read = read  # type: ignore[method-assign]
    session, pipe = world.watch("s")
    await world.settle()
    assert pipe.frames == [["open"], ["close", "fault"]]
    assert world.closed == [(session, Close.FAULT)]
    await world.inner.close()


async def test_draining_ends_every_stream_and_admits_no_more(world: World) -> None:
    await world.append("s", "a")
    pipes = [world.watch("s")[1] for _ in range(200)]
    await world.settle()
    world.hub.admit()
    assert world.hub.drain() == 200
    assert all(pipe.frames[-1] == ["close", "shutdown"] and pipe.ended for pipe in pipes)
    assert not world.hub.sessions
    with pytest.raises(ShuttingDown):
        world.hub.admit()
    _, late = world.watch("s")
    assert late.frames == [["open"], ["close", "shutdown"]]


async def test_the_number_of_sessions_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.stream.hub.SESSIONS_MAX", 2)
    await world.append("s", "a")
    world.watch("s")
    world.hub.admit()
    world.watch("s")
    with pytest.raises(Busy):
        world.hub.admit()


# -- time


async def test_heartbeats_fill_silence_only(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s", heartbeat_seconds=10)
    await world.settle()
    for _ in range(8):
        await world.pass_time(5)
        await world.append("s", "x")
    assert "beat" not in kinds(pipe.frames)
    await world.pass_time(11.2)
    assert kinds(pipe.frames)[-1] == "beat"
    before = kinds(pipe.frames).count("beat")
    await world.pass_time(40)
    assert 3 <= kinds(pipe.frames).count("beat") - before <= 4


async def test_heartbeats_on_a_fixed_beat(world: World) -> None:
    await world.append("s", "a")
    _, pipe = world.watch("s", heartbeat_seconds=10, heartbeat_always=True)
    for _ in range(8):
        await world.pass_time(5)
        await world.append("s", "x")
    assert 3 <= kinds(pipe.frames).count("beat") <= 4


async def test_no_heartbeat_into_a_paused_pipe(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s", heartbeat_seconds=2)
    await world.settle()
    session.pause()
    await world.pass_time(10)
    assert "beat" not in kinds(pipe.frames)
    session.resume()
    await world.pass_time(3)
    assert kinds(pipe.frames)[-1] == "beat"


async def test_a_reader_that_joined_after_a_burst_is_not_taken_for_served(world: World) -> None:
    """The group's last write must not postpone the heartbeat of one that was not there."""
    await world.append("s", "a")
    other, _ = world.watch("s")
    session, pipe = world.watch("s", heartbeat_seconds=10)
    await world.settle()
    session.pause()
    await world.pass_time(9)
    await world.append("s", "b", node="n")
    await world.settle()
    await world.pass_time(0.1)
    session.legs[0].cursor = 2  # as if it had seen the record: it joins again without being written to
    session.resume()
    await world.settle()
    await world.pass_time(2.2)
    assert kinds(pipe.frames)[-1] == "beat"
    assert not other.closed


async def test_the_deadline_ends_the_stream(world: World) -> None:
    await world.append("s", "a")
    session, pipe = world.watch("s", deadline_seconds=5)
    await world.pass_time(4.9)
    assert not session.closed
    await world.pass_time(0.2)
    assert pipe.frames[-1] == ["close", "deadline"]


# -- progress


async def test_progress_is_told_after_the_bytes(world: World) -> None:
    told: list[tuple[str, int, list[int]]] = []
    pipe = TapPipe()
    await world.append("s", "a")
    world.watch("s", pipe=pipe, on_progress=lambda stream, seq: told.append((stream, seq, seqs(pipe.frames))))
    await world.settle()
    await world.append("s", "b")
    await world.settle()
    assert told == [("s", 1, [1]), ("s", 2, [1, 2])]
