"""A log over each engine, or the wiring of a whole server, with a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from seamark.testing.engines import EmbeddedRig, MemoryRig
from seamark.testing.rig import LogRig
from tests.flags.house import FlagsHouse


@pytest.fixture(params=["memory", "embedded"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LogRig]:
    made: LogRig = MemoryRig() if request.param == "memory" else EmbeddedRig(tmp_path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def house() -> AsyncIterator[FlagsHouse]:
    """On a log in memory, with a tenant `acme` that has a namespace `billing`."""
    made = await FlagsHouse.opened()
    await made.furnish()
    yield made
    await made.close()
