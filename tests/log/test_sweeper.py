from __future__ import annotations

import asyncio

import pytest

from seamark.clock import ManualClock
from seamark.errors import WriteFailed
from seamark.log import sweeper
from seamark.log.engines.memory import open_memory
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.sweeper import Sweeper
from seamark.telemetry.metrics import Metrics


async def test_a_chore_that_fails_comes_again_and_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "PERIOD_SECONDS", 0.001)
    runs: list[str] = []
    enough = asyncio.Event()

    def failing() -> bool:
        runs.append("failing")
        raise RuntimeError("mine")

    def refused() -> bool:
        raise WriteFailed("full", cause="full")

    def good() -> bool:
        runs.append("good")
        if runs.count("good") >= 3:
            enough.set()
        return False

    running = Sweeper(asyncio.get_running_loop(), [("failing", failing), ("refused", refused), ("good", good)])
    await asyncio.wait_for(enough.wait(), 10)
    running.stop()
    count = len(runs)
    await asyncio.sleep(0.01)
    assert len(runs) == count
    assert runs[:4] == ["failing", "good", "failing", "good"]


async def test_the_log_sweeps_by_itself(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    monkeypatch.setattr(sweeper, "PERIOD_SECONDS", 0.001)
    metrics = Metrics()
    log = open_memory(clock, metrics)
    await log.append(Append(stream="t", drafts=[Draft(b"x")], create=StreamSettings(ttl_ms=1)))
    clock.advance(1)
    evicted = metrics.counter("seamark_log_records_evicted_total", "ttl")
    for _ in range(1_000):
        await asyncio.sleep(0.001)
        if evicted.value:
            break
    assert evicted.value == 1
    await log.close()
