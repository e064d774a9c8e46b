"""Watch sessions across processes: what is saved, how often, and what a crash leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from seamark.errors import WriteFailed
from seamark.limits import WATCH_SAVE_SECONDS, WATCH_SESSION_SECONDS
from seamark.log.engines.embedded import open_embedded
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Done, Put, Shelf
from seamark.topics.session_rows import SPACE
from tests.topics.rig import TopicsRig
from tests.topics.viewing import Viewer, id_of, pass_time, settle, watch


@pytest_asyncio.fixture
async def kept() -> AsyncIterator[TopicsRig]:
    """A rig whose sessions are kept on the shelf of its log in memory, from which another process may take them."""
    rig = TopicsRig()
    keep(rig)
    yield rig
    await rig.close()


def keep(rig: TopicsRig) -> None:
    assert isinstance(rig.log, Shelf)
    rig.surface.watches._rows._shelf = rig.log


def rows(rig: TopicsRig) -> dict[bytes, bytes]:
    assert isinstance(rig.log, Shelf)
    return dict(rig.log.scan(SPACE))


async def crash(rig: TopicsRig) -> None:
    """The process is gone without a word: what was committed is there, and nothing else."""
    await rig.client.aclose()
    for task in rig.surface._tasks:
        task.cancel()
    log = rig.log
    assert isinstance(log, LocalLog)
    log._writer.closed = True
    log._sweeper.stop()
    log._store.close()
    log._ephemeral.close()
    rig.assembly.hub.close()
    rig.assembly.wheel.close()


class Puts:
    """Counts what is written beside the streams, and may refuse it."""

    def __init__(self, rig: TopicsRig) -> None:
        self.seen: list[Put] = []
        self.failing = False
        self._submit = rig.log.writer.submit
        rig.log.writer.submit = self.submit  # type: ignore[method-assign]

    def submit(self, append: Append, done: Done) -> None:
        self.seen += append.puts
        if self.failing and append.puts:
            done(WriteFailed("no room", cause="test"))
        else:
            self._submit(append, done)


async def test_a_session_is_saved_before_it_is_answered(kept: TopicsRig) -> None:
    await kept.write("o", 1)
    await kept.call("POST", "/watch", {"topics": {"o": {}}})
    assert len(rows(kept)) == 2


async def test_places_are_saved_now_and_then_and_only_when_they_moved(kept: TopicsRig) -> None:
    await kept.write("o", 1)
    viewer = await watch(kept, "o")
    puts = Puts(kept)
    for n in range(20):
        await kept.write("o", n)
    await settle()
    assert puts.seen == []
    await pass_time(kept, 1.5 * WATCH_SAVE_SECONDS)
    assert len(puts.seen) == 1
    await pass_time(kept, 5 * WATCH_SAVE_SECONDS)
    assert len(puts.seen) == 1
    viewer.pipe.leave()
    await pass_time(kept, 5 * WATCH_SAVE_SECONDS)
    assert len(puts.seen) == 1
    assert not kept.surface.watches._rows._moving


async def test_what_could_not_be_saved_is_saved_later(kept: TopicsRig) -> None:
    await kept.write("o", 1)
    viewer = await watch(kept, "o")
    before = rows(kept)
    puts = Puts(kept)
    puts.failing = True
    viewer.pipe.leave()
    await pass_time(kept, 3 * WATCH_SAVE_SECONDS)
    assert len(puts.seen) >= 2
    assert rows(kept) == before
    puts.failing = False
    await pass_time(kept, 2 * WATCH_SAVE_SECONDS)
    assert rows(kept) != before


async def test_a_store_that_takes_no_writes_is_no_reason_not_to_watch(kept: TopicsRig) -> None:
    await kept.write("o", 1)
    puts = Puts(kept)
    puts.failing = True
    assert (await watch(kept, "o")).seqs() == [1]


async def test_given_up_sessions_leave_nothing(kept: TopicsRig) -> None:
    await kept.write("o", 1)
    viewer = await watch(kept, "o")
    viewer.pipe.leave()
    kept.clock.advance(WATCH_SESSION_SECONDS + 1)
    await kept.call("POST", "/watch", {"topics": {"o": {}}})
    await pass_time(kept, 2 * WATCH_SAVE_SECONDS)
    assert len(rows(kept)) == 2  # the new one's


async def test_a_server_without_a_shelf_keeps_nothing(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    viewer = await watch(rig, "o")
    await pass_time(rig, 2 * WATCH_SAVE_SECONDS)
    viewer.pipe.leave()
    await rig.assembly.drain()
    assert rows(rig) == {}


# -- another process


@pytest.mark.parametrize("orderly", [True, False])
async def test_sessions_come_back(tmp_path: Path, orderly: bool) -> None:
    first = TopicsRig(data=tmp_path)
    await first.write("a", *range(5))
    await first.write("b", 1)
    viewer = await watch(first, "a", "b", node="me", limit=3, include_tags=True, heartbeat_ms=2_000)
    await pass_time(first, 2 * WATCH_SAVE_SECONDS)  # saved here
    await first.write("a", 5, 6)
    await settle()
    wanted = viewer.session.wanted
    await (first.close() if orderly else crash(first))

    second = TopicsRig(data=tmp_path)
    back = Viewer(second, viewer.wid)
    assert back.session.wanted == wanted
    assert back.session.trusted is orderly
    await back.open()
    assert back.seqs("a") == ([] if orderly else [6, 7])  # a saved place is a lower bound
    assert back.seqs("b") == []
    await second.close()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": 7, "b": 1}, []),  # it had more than was saved: nothing comes twice
        ({"a": 6}, [7]),
        ({"a": 5}, [6, 7]),
        ({"a": 3}, [4, 5, 6, 7]),  # it had less than was handed over: nothing is lost
        ({"a": 1_000_000}, [6, 7]),  # nobody had that
    ],
)
async def test_after_a_crash_the_client_knows_better(
    tmp_path: Path, given: dict[str, int], expected: list[int]
) -> None:
    first = TopicsRig(data=tmp_path)
    await first.write("a", *range(5))
    await first.write("b", 1)
    viewer = await watch(first, "a", "b")
    await pass_time(first, 2 * WATCH_SAVE_SECONDS)
    await first.write("a", 5, 6)
    await settle()
    await crash(first)

    second = TopicsRig(data=tmp_path)
    back = await Viewer(second, viewer.wid).open(id_of(**given))
    assert back.seqs("a") == expected
    back.pipe.leave()
    assert (await back.again(id_of(a=8))).seqs("a") == []  # from here on its places are exact
    await second.close()


async def test_a_stop_in_order_is_believed_once(tmp_path: Path) -> None:
    first = TopicsRig(data=tmp_path)
    await first.write("a", 1)
    viewer = await watch(first, "a")
    await first.close()
    trusted = []
    for _ in range(2):
        crashed = TopicsRig(data=tmp_path)
        trusted.append(Viewer(crashed, viewer.wid).session.trusted)
        await settle()
        await crash(crashed)
    assert trusted == [True, False]


async def test_a_lower_bound_stays_one_over_a_stop_in_order(tmp_path: Path) -> None:
    first = TopicsRig(data=tmp_path)
    await first.write("a", 1)
    viewer = await watch(first, "a")
    await crash(first)
    await TopicsRig(data=tmp_path).close()  # nobody came back meanwhile
    second = TopicsRig(data=tmp_path)
    assert (await Viewer(second, viewer.wid).open(id_of(a=1))).seqs() == []
    await second.close()


async def test_a_damaged_row_costs_sessions_not_the_start(tmp_path: Path) -> None:
    first = TopicsRig(data=tmp_path)
    await first.write("a", 1)
    await watch(first, "a")
    await first.close()
    log = open_embedded(tmp_path, first.clock, first.assembly.metrics)
    await log.append(
        Append(puts=[Put(SPACE, b"x" * 32 + b"d", b"not a definition"), Put(SPACE, b"x" * 32 + b"p", b"")])
    )
    await log.close()
    second = TopicsRig(data=tmp_path)
    assert len(second.surface.watches.sessions) == 1
    await second.close()
