from __future__ import annotations

from pathlib import Path

import pytest

from seamark import limits
from seamark.clock import ManualClock
from seamark.log import purge
from seamark.log.engines.embedded import LmdbStore, open_embedded
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Space, Store
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

SPARSE = StreamSettings(sparse=True)


def stored(store: Store) -> int:
    with store.view() as view:
        return sum(1 for _ in view.scan(Space.RECORDS, b"\0\0\0\1", b"\0\0\0\2"))


async def test_dropped_data_goes_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PURGE_RECORDS_MAX", 10)
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 25, create=SPARSE, key="k"))
    await log.drop("t")
    assert stored(store) == 25
    store.write(purge.step_dropped(store))
    assert stored(store) == 15
    log.sweep()
    assert stored(store) == 0
    assert purge.step_dropped(store) == []
    assert list(store.scan(Space.KEYS, b"\0\0\0\1")) == []
    await log.close()


async def test_a_purge_that_was_interrupted_goes_on_after_a_restart(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_embedded(tmp_path, clock, Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 25, create=SPARSE))
    await log.drop("t")
    await log.close()
    assert not verify(tmp_path).findings
    log = open_embedded(tmp_path, clock, Metrics())
    log.sweep()
    await log.close()
    store = LmdbStore(tmp_path, clock)
    assert stored(store) == 0
    store.close()


async def test_what_one_commit_cannot_remove_is_removed_later(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PURGE_RECORDS_MAX", 10)
    log = open_embedded(tmp_path, clock, Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 50, create=SPARSE))
    await log.configure("t", StreamSettings(sparse=True, cap_records=5))
    assert [record.seq for record in (await log.read("t", Cursor(45))).records] == list(range(46, 51))
    await log.close()
    report = verify(tmp_path)
    assert (report.findings, report.chunks) == ([], 40)
    log = open_embedded(tmp_path, clock, Metrics())
    log.sweep()
    await log.append(Append(stream="t", drafts=[Draft(b"x")]))
    await log.close()
    report = verify(tmp_path)
    assert (report.findings, report.chunks) == ([], 5)


async def test_an_ephemeral_stream_is_purged_from_memory(tmp_path: Path, clock: ManualClock) -> None:
    memory = MemoryStore()
    log = LocalLog(LmdbStore(tmp_path, clock), clock, Metrics(), ephemeral=memory)
    settings = StreamSettings(durability=Durability.EPHEMERAL)
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 500, create=settings))
    assert stored(memory) > 0
    await log.drop("t")
    log.sweep()
    assert stored(memory) == 0
    await log.close()
    assert not verify(tmp_path).findings
