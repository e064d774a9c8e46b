"""What is counted of the commits: what an operator looks at when writes are slow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from seamark import limits
from seamark.clock import ManualClock
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Change
from seamark.telemetry.metrics import Metrics


class SlowStore(MemoryStore):
    """Says that it is durable, and that every sync takes three milliseconds."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, changes: Sequence[Change]) -> float:
        super().write(changes)
        self.written += sum(len(key) + (0 if value is None else len(value)) for _, key, value in changes)
        return 0.003


def values(metrics: Metrics) -> dict[str, float]:
    """Every sample without labels."""
    lines = [
        line for line in metrics.text().decode().splitlines() if line.startswith("seamark_log") and "{" not in line
    ]
    return {name: float(value) for name, value in (line.split(" ") for line in lines)}


async def test_syncs_and_bytes_are_those_of_the_durable_store(clock: ManualClock) -> None:
    store, metrics = SlowStore(), Metrics()
    log = LocalLog(store, clock, metrics, ephemeral=MemoryStore())
    await log.configure("s", StreamSettings())
    before = values(metrics)
    await log.append(Append(stream="s", drafts=[Draft(b"x" * 100)]))
    after = values(metrics)
    assert after["seamark_log_sync_seconds_count"] == before["seamark_log_sync_seconds_count"] + 1
    assert after["seamark_log_sync_seconds_sum"] == pytest.approx(before["seamark_log_sync_seconds_sum"] + 0.003)
    assert after["seamark_log_bytes_committed_total"] == store.written
    assert after["seamark_log_bytes_committed_total"] > before["seamark_log_bytes_committed_total"] + 100


async def test_memory_counts_neither(clock: ManualClock) -> None:
    metrics = Metrics()
    log = LocalLog(MemoryStore(), clock, metrics)
    await log.append(Append(stream="s", drafts=[Draft(b"x")], create=StreamSettings(durability=Durability.EPHEMERAL)))
    assert values(metrics)["seamark_log_sync_seconds_count"] == 0
    assert values(metrics)["seamark_log_bytes_committed_total"] == 0


async def test_what_waits_and_the_most_that_ever_did(clock: ManualClock) -> None:
    metrics = Metrics()
    log = LocalLog(MemoryStore(), clock, metrics)
    await log.configure("s", StreamSettings())
    depths = []
    for burst in (3, 7, 2):
        for _ in range(burst):
            log.writer.submit(Append(stream="s", drafts=[Draft(b"x")]), lambda answer: None)
        depths.append(values(metrics)["seamark_log_queued_appends"])
        await asyncio.sleep(0)
    assert depths == [3, 7, 2]
    assert values(metrics)["seamark_log_queued_appends"] == 0
    assert values(metrics)["seamark_log_queued_appends_peak"] == 7


async def test_refusals_for_want_of_room_are_counted(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PENDING_BYTES_MAX", 10)
    metrics = Metrics()
    log = LocalLog(MemoryStore(), clock, metrics)
    await log.configure("s", StreamSettings())
    counts = []
    for _ in range(3):
        log.writer.submit(Append(stream="s", drafts=[Draft(b"x" * 9)]), lambda answer: None)
        counts.append(values(metrics)["seamark_log_overfull_total"])
    assert [later - earlier for earlier, later in pairwise([0, *counts])] == [0, 1, 1]
