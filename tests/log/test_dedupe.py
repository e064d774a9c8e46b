from __future__ import annotations

import asyncio
from pathlib import Path

from seamark.clock import ManualClock
from seamark.errors import SeamarkError
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Put, Receipt
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Space
from seamark.telemetry.metrics import Metrics

WINDOW = StreamSettings(dedupe_window_ms=1_000)


def keyed(key: str, stream: str = "t", count: int = 1) -> Append:
    return Append(stream=stream, drafts=[Draft(b"x")] * count, key=key, create=WINDOW)


async def test_a_repeat_is_answered_with_the_first_receipt(log: LocalLog) -> None:
    first = await log.append(keyed("k", count=3))
    await log.append(keyed("other"))
    again = await log.append(keyed("k", count=1))
    assert (again.first, again.last, again.head, again.ts) == (first.first, first.last, first.head, first.ts)
    assert (again.deduped, again.created, again.instance) == (True, False, first.instance)
    assert (await log.state("t")).marks.head == 4


async def test_a_concurrent_repeat_waits_for_the_first(log: LocalLog) -> None:
    answers: list[Receipt | SeamarkError] = []
    for _ in range(3):
        log.writer.submit(keyed("k"), answers.append)
    await asyncio.sleep(0)
    receipts = [answer for answer in answers if isinstance(answer, Receipt)]
    assert [(receipt.first, receipt.deduped) for receipt in receipts] == [(1, False), (1, True), (1, True)]


async def test_the_window_in_force_decides(log: LocalLog, clock: ManualClock) -> None:
    await log.append(keyed("k"))
    clock.advance(1)
    assert (await log.append(keyed("k"))).deduped
    clock.advance(1e-9)
    assert not (await log.append(keyed("k"))).deduped
    await log.configure("t", StreamSettings(dedupe_window_ms=60_000))
    clock.advance(30)
    log.sweep()
    assert (await log.append(keyed("k"))).deduped
    await log.configure("t", StreamSettings(dedupe_window_ms=0))
    assert not (await log.append(keyed("k"))).deduped


async def test_keys_belong_to_a_stream_and_go_with_it(log: LocalLog) -> None:
    await log.append(keyed("k"))
    assert not (await log.append(keyed("k", "u"))).deduped
    await log.drop("t")
    assert not (await log.append(keyed("k"))).deduped


async def test_a_repeat_brings_no_puts(log: LocalLog) -> None:
    await log.append(keyed("k"))
    await log.append(Append(stream="t", drafts=[Draft(b"x")], key="k", puts=[Put("s", b"p", b"v")]))
    assert log.fetch("s", b"p") is None


async def test_keys_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    for durability in (Durability.FSYNC, Durability.DISK):
        name = durability.value
        log = open_embedded(tmp_path, clock, Metrics())
        settings = StreamSettings(durability=durability)
        first = await log.append(Append(stream=name, drafts=[Draft(b"x")], key="k", create=settings))
        await log.close()
        log = open_embedded(tmp_path, clock, Metrics())
        again = await log.append(Append(stream=name, drafts=[Draft(b"x")], key="k"))
        assert (again.first, again.deduped, again.instance) == (first.first, True, first.instance)
        await log.close()


async def test_forgotten_keys_leave_nothing_behind(clock: ManualClock) -> None:
    store = MemoryStore()
    log = LocalLog(store, clock, Metrics())
    for number in range(600):
        await log.append(keyed(f"k{number}"))
    clock.advance(2)
    log.sweep()
    assert list(store.scan(Space.KEYS, b"\0\0\0\1")) == []
    assert list(store.scan(Space.EXPIRY, b"")) == []
    await log.close()
