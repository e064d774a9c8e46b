"""What a stop costs, with and without `close`: nothing acknowledged is issued twice, and nothing vanishes unsaid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seamark.clock import ManualClock
from seamark.errors import Corrupt
from seamark.log.engines.embedded import LmdbStore, open_embedded
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Selector
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Space
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics


def opened(path: Path, clock: ManualClock) -> LocalLog:
    return open_embedded(path, clock, Metrics())


def copied(path: Path, number: int = 1) -> Path:
    """What a killed process would leave."""
    return Path(shutil.copytree(path, path.with_name(f"{path.name}-{number}")))


async def write(log: LocalLog, durability: Durability, count: int = 1) -> None:
    settings = StreamSettings(durability=durability)
    await log.append(Append(stream=durability.value, drafts=[Draft(b"x")] * count, create=settings))


async def test_a_clean_stop_costs_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = opened(tmp_path / "a", clock)
    for durability in (Durability.FSYNC, Durability.DISK, Durability.MEMORY):
        await write(log, durability, 3)
        await write(log, durability, 2)
    before = await log.streams()
    await log.close()
    log = opened(tmp_path / "a", clock)
    assert await log.streams() == before
    for state in before:
        page = await log.read(state.name, Cursor())
        assert (page.gap, len(page.records)) == (None, 5)
        assert (await log.append(Append(stream=state.name, drafts=[Draft(b"x")]))).first == 6
    await log.close()
    assert not verify(tmp_path / "a").findings


async def test_an_unclean_stop_is_a_stated_gap_behind_what_is_there(tmp_path: Path, clock: ManualClock) -> None:
    log = opened(tmp_path / "a", clock)
    for durability in (Durability.FSYNC, Durability.DISK):
        await write(log, durability, 3)
    left = copied(tmp_path / "a")
    await log.close()
    log = opened(left, clock)
    assert (await log.state("fsync")).marks.head == 3
    head = (await log.state("disk")).marks.head
    assert head > 3
    page = await log.read("disk", Cursor())
    assert (page.gap, [record.seq for record in page.records], page.caught_up) == (None, [1, 2, 3], False)
    page = await log.read("disk", page.cursor)
    assert (page.gap, page.records, page.caught_up) == (Gap(first=4, last=head, loss=Loss.CRASH), [], True)
    await write(log, Durability.DISK)
    page = await log.read("disk", Cursor(head))
    assert [record.seq for record in page.records] == [head + 1]
    await log.close()
    assert not verify(left).findings


async def test_losses_of_many_crashes_stay_apart_until_the_floor_reaches_them(
    tmp_path: Path, clock: ManualClock
) -> None:
    path = tmp_path / "a"
    for number in range(3):
        log = opened(path, clock)
        await write(log, Durability.DISK, 2)
        left = copied(path, number)
        await log.close()
        path = left
    log = opened(path, clock)
    state = await log.state("disk")
    assert (state.count, state.marks.evict_floor, state.marks.earliest) == (6, 1, 1)
    gaps, cursor = [], Cursor()
    while True:
        page = await log.read("disk", cursor)
        gaps.append(page.gap)
        cursor = page.cursor
        if page.caught_up:
            break
    assert [None if gap is None else gap.loss for gap in gaps] == [None, Loss.CRASH, Loss.CRASH, Loss.CRASH]
    await log.configure("disk", StreamSettings(durability=Durability.DISK, cap_records=1))
    page = await log.read("disk", Cursor())
    assert page.gap is not None
    assert (page.gap.first, page.gap.loss, len(page.records)) == (1, Loss.MIXED, 1)
    await log.close()
    assert not verify(path).findings


@pytest.mark.parametrize("clean", [True, False])
async def test_ephemeral_records_end_with_the_process_and_say_so(
    tmp_path: Path, clock: ManualClock, clean: bool
) -> None:
    log = opened(tmp_path / "a", clock)
    await write(log, Durability.EPHEMERAL, 3)
    await write(log, Durability.EPHEMERAL, 3)
    before = await log.state("ephemeral")
    left = tmp_path / "a" if clean else copied(tmp_path / "a")
    await log.close()
    log = opened(left, clock)
    state = await log.state("ephemeral")
    assert (state.settings, state.instance, state.count) == (before.settings, before.instance, 0)
    assert state.marks.head == 6 if clean else state.marks.head >= 6
    page = await log.read("ephemeral", Cursor(2))
    assert (page.gap, page.records) == (Gap(first=3, last=state.marks.head, loss=Loss.CRASH), [])
    receipt = await log.append(Append(stream="ephemeral", drafts=[Draft(b"x")]))
    assert receipt.first == state.marks.head + 1
    await log.close()
    assert not verify(left).findings


async def test_an_empty_stream_loses_nothing(tmp_path: Path, clock: ManualClock) -> None:
    log = opened(tmp_path / "a", clock)
    await log.configure("t", StreamSettings())
    await log.configure("u", StreamSettings(durability=Durability.EPHEMERAL))
    await log.close()
    log = opened(tmp_path / "a", clock)
    for name in ("t", "u"):
        page = await log.read(name, Cursor())
        assert (page.gap, page.marks.head) == (None, 0)
    await log.close()


async def test_ids_are_never_used_again(tmp_path: Path, clock: ManualClock) -> None:
    log = opened(tmp_path / "a", clock)
    await log.append(Append(stream="t", drafts=[Draft(b"old")], key="k", create=StreamSettings()))
    await log.drop("t")
    left = copied(tmp_path / "a")  # before the purge
    await log.close()
    log = opened(left, clock)
    receipt = await log.append(Append(stream="t", drafts=[Draft(b"new")], key="k", create=StreamSettings()))
    assert (receipt.first, receipt.deduped) == (1, False)
    assert not (await log.delete("t", Selector(before=1))).count
    log.sweep()
    assert [record.payload for record in (await log.read("t", Cursor())).records] == [b"new"]
    await log.close()
    report = verify(left)
    assert not report.findings
    assert report.chunks == 1


async def test_a_stream_with_damaged_metadata_is_refused_and_the_others_served(
    tmp_path: Path, clock: ManualClock
) -> None:
    log = opened(tmp_path, clock)
    for name in ("good", "bad"):
        await log.append(Append(stream=name, drafts=[Draft(b"x")], create=StreamSettings()))
    await log.close()
    store = LmdbStore(tmp_path, clock)
    store.write([(Space.STREAMS, b"bad", b"12345678 not metadata")])
    store.close()
    log = opened(tmp_path, clock)
    assert [state.name for state in await log.streams()] == ["good"]
    for refused in (log.state("bad"), log.drop("bad"), log.configure("bad", StreamSettings())):
        with pytest.raises(Corrupt):
            await refused
    with pytest.raises(Corrupt):
        await log.append(Append(stream="bad", drafts=[Draft(b"x")], create=StreamSettings()))
    assert log.health()["damaged_streams"] == 1
    await log.close()
    assert {finding.stream for finding in verify(tmp_path).findings} >= {"bad"}
