"""A small embedded store to back up and to verify."""

from __future__ import annotations

from pathlib import Path

from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics


async def fill(path: Path, count: int) -> None:
    """A store with `count` records in one stream, closed."""
    log = open_embedded(path, SystemClock(), Metrics())
    for number in range(count):
        await log.append(Append(stream="s", drafts=[Draft(b"payload-%d" % number)], create=StreamSettings()))
    await log.close()


async def payloads(path: Path) -> list[bytes]:
    """What a reader gets."""
    log = open_embedded(path, SystemClock(), Metrics())
    page = await log.read("s", Cursor(0), records_max=1_000)
    await log.close()
    return [record.payload for record in page.records]
