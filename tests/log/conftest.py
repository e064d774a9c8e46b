"""A clock that is moved by hand, and a log over each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from seamark.clock import ManualClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import open_memory
from seamark.log.local import LocalLog
from seamark.telemetry.metrics import Metrics


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "embedded"])
async def log(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[LocalLog]:
    opened = (
        open_memory(clock, Metrics())
        if request.param == "memory"
        else open_embedded(tmp_path / "store", clock, Metrics())
    )
    yield opened
    await opened.close()
