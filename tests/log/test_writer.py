"""Group commit: who is acknowledged when, what is visible when, and what a refused commit leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from seamark import limits
from seamark.clock import ManualClock
from seamark.errors import (
    Busy,
    Corrupt,
    HeadConflict,
    QuotaExceeded,
    SeamarkError,
    ShuttingDown,
    StreamNotFound,
    WriteFailed,
)
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, News, Put, Receipt
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Change, Space, StoreFailed
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

FSYNC = StreamSettings()
DISK = StreamSettings(durability=Durability.DISK)
one = [Draft(b"x")]


class BreakableStore(MemoryStore):
    """A store that says it is durable, counts its writes, and refuses them when told."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.writes = 0

    def write(self, changes: Sequence[Change]) -> float:
        if self.broken:
            raise StoreFailed("no space left on device")
        self.writes += 1
        return super().write(changes)


def explode(changes: Sequence[Change]) -> float:
    """A write that ends in a fault of ours."""
    raise ZeroDivisionError


@pytest.fixture
def store() -> BreakableStore:
    return BreakableStore()


@pytest.fixture
async def durable(store: BreakableStore, clock: ManualClock) -> LocalLog:
    log = LocalLog(store, clock, Metrics(), ephemeral=MemoryStore())
    await log.configure("fsync", FSYNC)
    await log.configure("disk", DISK)
    await log.configure("ephemeral", StreamSettings(durability=Durability.EPHEMERAL))
    return log


Answers = list[Receipt | SeamarkError]


async def test_one_turn_serves_everybody_who_came(store: BreakableStore, durable: LocalLog) -> None:
    before = store.writes
    answers: Answers = []
    for _ in range(50):
        durable.writer.submit(Append(stream="fsync", drafts=one), answers.append)
    assert answers == []
    await asyncio.sleep(0)
    assert [answer.first for answer in answers if isinstance(answer, Receipt)] == list(range(1, 51))
    assert store.writes == before + 1


async def test_a_disk_acknowledgement_comes_before_the_commit_and_an_fsync_one_after(
    store: BreakableStore, durable: LocalLog
) -> None:
    writes_at: dict[str, int] = {}
    before = store.writes
    for name in ("fsync", "disk", "ephemeral"):
        done = lambda answer, name=name: writes_at.__setitem__(name, store.writes - before)  # noqa: E731
        durable.writer.submit(Append(stream=name, drafts=one), done)
    await asyncio.sleep(0)
    assert writes_at == {"fsync": 1, "disk": 0, "ephemeral": 0}


async def test_what_is_acknowledged_can_be_read_at_once(durable: LocalLog) -> None:
    read: dict[str, list[int]] = {}

    def submit(name: str) -> None:
        def done(answer: Receipt | SeamarkError) -> None:
            read[name] = [record.seq for record in durable.read_now(name, Cursor()).records]
            read[name + " synced"] = [record.seq for record in durable.read_now(name, Cursor(), synced=True).records]

        durable.writer.submit(Append(stream=name, drafts=one), done)

    for name in ("fsync", "disk", "ephemeral"):
        submit(name)
    await asyncio.sleep(0)
    assert (read["fsync"], read["fsync synced"]) == ([1], [1])
    assert (read["disk"], read["disk synced"]) == ([1], [])
    assert (read["ephemeral"], read["ephemeral synced"]) == ([1], [1])


async def test_an_acknowledgement_beyond_the_reservation_waits(store: BreakableStore, durable: LocalLog) -> None:
    order: list[tuple[str, int]] = []
    before = store.writes
    burst = limits.RESERVE_RECORDS + 10
    for number in range(2):
        drafts = one * (limits.RESERVE_RECORDS if number == 0 else burst - limits.RESERVE_RECORDS)
        done = lambda answer, number=number: order.append((f"disk {number}", store.writes - before))  # noqa: E731
        durable.writer.submit(Append(stream="disk", drafts=drafts), done)
    await asyncio.sleep(0)
    assert order == [("disk 0", 0), ("disk 1", 1)]
    state = await durable.state("disk")
    assert state.marks.synced == burst


async def test_news_tells_each_record_visible_once_and_synced_once_in_order(durable: LocalLog) -> None:
    visible: dict[str, list[int]] = {}
    synced: dict[str, list[int]] = {}

    def listen(news: Sequence[News]) -> None:
        for item in news:
            told = [record.seq for record in item.records or ()]
            if item.visible:
                visible.setdefault(item.stream, []).extend(told)
            if item.synced:
                synced.setdefault(item.stream, []).extend(told)

    durable.wakeup.subscribe(listen)
    for _ in range(3):
        for name in ("fsync", "disk", "ephemeral"):
            durable.writer.submit(Append(stream=name, drafts=one * 600), lambda answer: None)
    await asyncio.sleep(0)
    expected = {name: list(range(1, 1_801)) for name in ("fsync", "disk", "ephemeral")}
    assert visible == expected
    assert synced == expected


async def test_a_refused_commit_rolls_fsync_back_and_keeps_disk(store: BreakableStore, durable: LocalLog) -> None:
    await durable.append(Append(stream="fsync", drafts=one))
    store.broken = True
    answers: dict[str, Receipt | SeamarkError] = {}
    for name in ("fsync", "disk"):
        put = Put("s", name.encode(), b"v")
        durable.writer.submit(Append(stream=name, drafts=one, puts=[put]), partial(answers.__setitem__, name))
    await asyncio.sleep(0)
    assert isinstance(answers["fsync"], WriteFailed)
    assert isinstance(answers["disk"], Receipt)
    assert (await durable.state("fsync")).marks.head == 1
    assert [record.seq for record in (await durable.read("disk", Cursor())).records] == [1]
    assert (durable.fetch("s", b"fsync"), durable.fetch("s", b"disk")) == (None, b"v")
    with pytest.raises(WriteFailed):
        await durable.append(Append(stream="disk", drafts=one))
    assert durable.health()["writable"] is False

    heard: list[News] = []
    durable.wakeup.subscribe(heard.extend)
    durable.sweep()
    assert heard == []
    store.broken = False
    durable.sweep()
    assert durable.health()["writable"] is True
    assert [(item.stream, item.visible, item.synced) for item in heard] == [("disk", False, True)]
    assert (await durable.state("disk")).marks.synced == 1
    assert (await durable.append(Append(stream="fsync", drafts=one))).first == 2
    assert durable.fetch("s", b"disk") == b"v"


async def test_a_stream_whose_first_commit_failed_does_not_exist(store: BreakableStore, durable: LocalLog) -> None:
    store.broken = True
    with pytest.raises(WriteFailed):
        await durable.append(Append(stream="new", drafts=one, create=DISK))
    with pytest.raises(StreamNotFound):
        await durable.state("new")
    store.broken = False
    durable.sweep()
    receipt = await durable.append(Append(stream="new", drafts=one, create=DISK))
    assert (receipt.first, receipt.created) == (1, True)


async def test_ephemeral_records_need_no_store(store: BreakableStore, durable: LocalLog) -> None:
    before = store.writes
    for _ in range(20):
        await durable.append(Append(stream="ephemeral", drafts=one))
    assert store.writes == before


async def test_an_append_that_is_refused_changes_nothing(log: LocalLog) -> None:
    await log.append(Append(stream="t", drafts=one, create=FSYNC))
    with pytest.raises(HeadConflict) as caught:
        await log.append(Append(stream="t", drafts=one, expect_head=0, puts=[Put("s", b"k", b"v")], key="k"))
    assert (caught.value.fields["expected"], caught.value.fields["head"]) == (0, 1)
    with pytest.raises(HeadConflict):
        await log.append(Append(stream="new", drafts=one, create=FSYNC, expect_head=3))
    with pytest.raises(StreamNotFound):
        await log.state("new")
    assert (await log.state("t")).marks.head == 1
    assert log.fetch("s", b"k") is None
    receipt = await log.append(Append(stream="t", drafts=one, expect_head=1, key="k"))
    assert (receipt.first, receipt.deduped) == (2, False)


async def test_the_quota_holds_over_all_streams(clock: ManualClock) -> None:
    log = LocalLog(MemoryStore(), clock, Metrics(), quota_bytes=10)
    await log.append(Append(stream="a", drafts=[Draft(b"123456")], create=FSYNC))
    with pytest.raises(QuotaExceeded):
        await log.append(Append(stream="b", drafts=[Draft(b"12345")], create=FSYNC))
    await log.append(Append(stream="b", drafts=[Draft(b"1234")], create=FSYNC))
    answers: Answers = []
    await log.drop("b")
    for _ in range(5):
        log.writer.submit(Append(stream="a", drafts=[Draft(b"1")]), answers.append)
    await asyncio.sleep(0)
    assert sorted(answer.last for answer in answers if isinstance(answer, Receipt)) == [2, 3, 4, 5]
    assert [type(answer) for answer in answers if isinstance(answer, SeamarkError)] == [QuotaExceeded]
    await log.close()


async def test_writers_are_refused_when_too_much_waits(log: LocalLog) -> None:
    big = [Draft(b"x" * limits.RECORD_BYTES_MAX)] * 60
    answers: Answers = []
    for _ in range(5):
        log.writer.submit(Append(stream="t", drafts=big, create=StreamSettings(cap_records=1)), answers.append)
    assert [type(answer) for answer in answers] == [Busy]
    while len(answers) < 5:
        await asyncio.sleep(0)
    assert all(isinstance(answer, Receipt) for answer in answers[1:])


async def test_a_done_that_raises_harms_nobody(log: LocalLog) -> None:
    answers: Answers = []

    def broken(answer: Receipt | SeamarkError) -> None:
        raise RuntimeError("mine")

    log.writer.submit(Append(stream="t", drafts=one, create=FSYNC), broken)
    log.writer.submit(Append(stream="t", drafts=one), answers.append)
    await asyncio.sleep(0)
    assert isinstance(answers[0], Receipt)
    assert answers[0].first == 2


async def test_closing_commits_what_waits_and_then_refuses(clock: ManualClock) -> None:
    log = LocalLog(MemoryStore(), clock, Metrics())
    answers: Answers = []
    log.writer.submit(Append(stream="t", drafts=one, create=FSYNC), answers.append)
    await log.close()
    assert isinstance(answers[0], Receipt)
    with pytest.raises(ShuttingDown):
        await log.append(Append(stream="t", drafts=one))
    await log.close()


async def test_a_fault_inside_a_turn_leaves_nobody_waiting(
    store: BreakableStore, durable: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", explode)
        with pytest.raises(WriteFailed):
            await durable.append(Append(stream="fsync", drafts=one))
    assert (await durable.append(Append(stream="fsync", drafts=one))).first == 1


async def test_what_waited_when_the_store_began_to_refuse_does_not_hide_what_is_pending(
    store: BreakableStore, durable: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the retry may end a failure: a lucky commit of other streams would leave acknowledged records behind."""
    monkeypatch.setattr(limits, "COMMIT_RECORDS_MAX", 2)
    answers: dict[int, Receipt | SeamarkError] = {}

    def done(number: int, answer: Receipt | SeamarkError) -> None:
        answers[number] = answer
        store.broken = False  # the store takes writes again as soon as the first turn is over

    store.broken = True
    for number, name in enumerate(("disk", "fsync", "fsync")):
        durable.writer.submit(Append(stream=name, drafts=one), partial(done if number else answers.__setitem__, number))
    while len(answers) < 3:
        await asyncio.sleep(0)
    assert [type(answers[number]) for number in range(3)] == [Receipt, WriteFailed, WriteFailed]
    heard: list[News] = []
    durable.wakeup.subscribe(heard.extend)
    durable.sweep()
    assert [(item.stream, item.synced) for item in heard] == [("disk", True)]
    assert (await durable.state("disk")).marks.synced == 1
    assert (await durable.append(Append(stream="fsync", drafts=one))).first == 1


async def test_a_fault_inside_a_turn_leaves_nothing_pending_for_ever(
    store: BreakableStore, durable: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", explode)
        await durable.append(Append(stream="disk", drafts=one))
    assert (await durable.state("disk")).marks.synced == 0
    durable.sweep()
    assert (await durable.state("disk")).marks.synced == 1


async def test_a_key_and_a_value_without_records_are_not_forgotten(
    store: BreakableStore, durable: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Append(stream="disk", key="k", puts=[Put("s", b"k", b"v")])
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", explode)
        await durable.append(append)
    before = store.writes
    durable.sweep()
    durable.sweep()
    assert store.writes == before + 1, "what was acknowledged is written, once"
    assert list(store.scan(Space.KEYS, b"\0\0\0\2"))
    assert list(store.scan(Space.SHELF, b""))
    assert (await durable.append(append)).deduped


async def test_a_damaged_stream_takes_nothing_early_and_none_of_its_puts(
    store: BreakableStore, durable: LocalLog
) -> None:
    await durable.configure("latest", StreamSettings(durability=Durability.DISK, latest_per_subject=1))
    same = [Draft(b"x", subject=("a",))]
    await durable.append(Append(stream="latest", drafts=same))
    ((chunk, value),) = store.scan(Space.RECORDS, b"\0\0\0\4")
    MemoryStore.write(store, [(Space.RECORDS, chunk, bytes(value)[:-1])])
    await durable.append(Append(stream="latest", drafts=same))  # acknowledged before the damage was met
    for _ in range(3):
        with pytest.raises(Corrupt):
            await durable.append(Append(stream="latest", drafts=same, puts=[Put("s", b"k", b"v")]))
    assert durable.fetch("s", b"k") is None
    assert (await durable.state("latest")).marks.head == 2
    assert (await durable.append(Append(stream="fsync", drafts=one))).first == 1


async def test_a_change_of_settings_that_meets_damage_takes_nothing_from_the_front(
    store: BreakableStore, durable: LocalLog, clock: ManualClock
) -> None:
    await durable.configure("aged", StreamSettings(sparse=True))
    for _ in range(3):
        await durable.append(Append(stream="aged", drafts=[Draft(b"x", subject=("a",))]))
        clock.advance(1.0)
    chunks = list(store.scan(Space.RECORDS, b"\0\0\0\4"))
    last, value = chunks[-1]
    MemoryStore.write(store, [(Space.RECORDS, last, bytes(value)[:-1])])
    with pytest.raises(Corrupt):
        await durable.configure("aged", StreamSettings(sparse=True, ttl_ms=2_500, latest_per_subject=1))
    MemoryStore.write(store, [(Space.RECORDS, last, value)])
    state = (await durable.configure("aged", StreamSettings(sparse=True, ttl_ms=2_500))).state
    assert (state.count, state.marks.evict_floor, state.marks.earliest) == (2, 2, 2)
