"""A refused write that had happened after all: the store comes back ahead of what the log knew, and the store is right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from seamark.clock import ManualClock
from seamark.errors import StreamNotFound, WriteFailed
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, News, Selector
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Change, StoreFailed
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics

one = [Draft(b"x")]
EPHEMERAL = StreamSettings(durability=Durability.EPHEMERAL)
DISK = StreamSettings(durability=Durability.DISK)


class DoubtfulStore(MemoryStore):
    """Once told to doubt, it takes the next write and says that it failed; the write after that learns the truth."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.doubts = 0
        self._returned = False

    def write(self, changes: Sequence[Change]) -> float:
        if self.doubts == 2:
            super().write(changes)
        if self.doubts:
            self.doubts -= 1
            self._returned = not self.doubts
            raise StoreFailed("input/output error")
        return super().write(changes)

    def returned(self) -> bool:
        returned, self._returned = self._returned, False
        return returned


class Stage:
    """A log over such a store, what its listeners heard, and the way through a doubtful write."""

    def __init__(self) -> None:
        self.store = DoubtfulStore()
        self.memory = MemoryStore()
        self.log = LocalLog(self.store, ManualClock(), Metrics(), ephemeral=self.memory)
        self.heard: list[News] = []
        self.log.wakeup.subscribe(self.heard.extend)

    async def doubtfully(self, act: Callable[[], Awaitable[object]]) -> None:
        self.store.doubts = 2
        with pytest.raises(WriteFailed):
            await act()
        self.heard.clear()
        self.log.sweep()
        assert self.log.health()["writable"] is False
        self.log.sweep()
        assert self.log.health()["writable"] is True

    async def seqs(self, name: str) -> list[int]:
        return [record.seq for record in (await self.log.read(name, Cursor())).records]


@pytest.fixture
async def stage() -> Stage:
    stage = Stage()
    await stage.log.configure("t", StreamSettings())
    for _ in range(3):
        await stage.log.append(Append(stream="t", drafts=one))
    return stage


async def test_an_append_appears_and_its_seq_is_not_given_again(stage: Stage) -> None:
    await stage.doubtfully(lambda: stage.log.append(Append(stream="t", drafts=one, key="k")))
    assert [(item.stream, item.records, item.marks.head, item.synced) for item in stage.heard] == [("t", None, 4, True)]
    assert await stage.seqs("t") == [1, 2, 3, 4]
    assert (await stage.log.append(Append(stream="t", drafts=one, key="k"))).deduped
    assert (await stage.log.append(Append(stream="t", drafts=one))).first == 5


async def test_what_was_acknowledged_early_is_there_once(stage: Stage) -> None:
    await stage.log.configure("d", DISK)
    stage.store.doubts = 2
    await stage.log.append(Append(stream="d", drafts=one, key="k"))
    assert await stage.seqs("d") == [1]
    stage.log.sweep()
    stage.log.sweep()
    state = await stage.log.state("d")
    assert (state.count, state.marks.head, state.marks.synced) == (1, 1, 1)
    assert (await stage.log.append(Append(stream="d", drafts=one, key="k"))).deduped
    assert (await stage.log.append(Append(stream="d", drafts=one))).first == 2


async def test_a_stream_that_was_made_is_there(stage: Stage) -> None:
    await stage.doubtfully(lambda: stage.log.append(Append(stream="new", drafts=one, create=DISK)))
    assert [state.name for state in await stage.log.streams()] == ["new", "t"]
    receipt = await stage.log.append(Append(stream="new", drafts=one, create=DISK))
    assert (receipt.first, receipt.created) == (2, False)
    assert await stage.seqs("new") == [1, 2]


@pytest.mark.parametrize("settings", [DISK, EPHEMERAL])
async def test_a_stream_that_was_dropped_is_gone(stage: Stage, settings: StreamSettings) -> None:
    await stage.log.append(Append(stream="old", drafts=one, create=settings))
    await stage.doubtfully(lambda: stage.log.drop("old"))
    assert [(item.stream, item.dropped, item.marks.head) for item in stage.heard] == [("old", True, 1)]
    with pytest.raises(StreamNotFound):
        await stage.log.state("old")
    assert (await stage.log.append(Append(stream="old", drafts=one, create=settings))).first == 1
    stage.log.sweep()
    assert await stage.seqs("old") == [1]


async def test_a_deletion_that_happened_is_known(stage: Stage) -> None:
    await stage.doubtfully(lambda: stage.log.delete("t", Selector(seqs=(2,))))
    assert await stage.seqs("t") == [1, 3]
    assert (await stage.log.state("t")).count == 2
    assert (await stage.log.append(Append(stream="t", drafts=one))).first == 4


async def test_a_stream_that_moved_to_memory_has_lost_what_it_had(stage: Stage) -> None:
    await stage.doubtfully(lambda: stage.log.configure("t", EPHEMERAL))
    state = await stage.log.state("t")
    assert (state.settings, state.count, state.marks.head) == (EPHEMERAL, 0, 3)
    assert (await stage.log.read("t", Cursor())).gap == Gap(first=1, last=3, loss=Loss.CRASH)
    assert (await stage.log.append(Append(stream="t", drafts=one))).first == 4
    assert await stage.seqs("t") == [4]


async def test_a_stream_that_moved_to_the_store_is_there(stage: Stage) -> None:
    await stage.log.append(Append(stream="e", drafts=one * 3, create=EPHEMERAL))
    await stage.doubtfully(lambda: stage.log.configure("e", DISK))
    assert await stage.seqs("e") == [1, 2, 3]
    assert (await stage.log.append(Append(stream="e", drafts=one))).first == 4
    assert (await stage.log.state("e")).settings == DISK


async def test_an_ephemeral_stream_that_was_made_has_nothing_in_it(stage: Stage) -> None:
    await stage.doubtfully(lambda: stage.log.append(Append(stream="e", drafts=one * 3, create=EPHEMERAL)))
    assert (await stage.log.state("e")).count == 0
    assert (await stage.log.append(Append(stream="e", drafts=one))).first == 4
    assert await stage.seqs("e") == [4]


async def test_settings_of_an_ephemeral_stream_are_known(stage: Stage) -> None:
    await stage.log.append(Append(stream="e", drafts=one * 3, create=EPHEMERAL))
    capped = StreamSettings(durability=Durability.EPHEMERAL, cap_records=2)
    await stage.doubtfully(lambda: stage.log.configure("e", capped))
    assert (await stage.log.state("e")).settings == capped
    assert (await stage.log.append(Append(stream="e", drafts=one))).first == 4
    assert await stage.seqs("e") == [3, 4]
