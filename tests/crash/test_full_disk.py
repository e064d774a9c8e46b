"""A disk that is full: writes are refused, no acknowledgement lies, reads go on, and with room again everything does."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from seamark.clock import SystemClock
from seamark.errors import WriteFailed
from seamark.limits import MIB
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Health, Log, Receipt
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.verify import verify
from seamark.log.watermarks import Loss
from seamark.telemetry.metrics import Metrics
from seamark.testing.hoarder import STREAMS, Attempt
from seamark.testing.reading import Reading, read_all

pytestmark = pytest.mark.crash

ROOM_BYTES = 2 * MIB
REFUSALS = 8  # seen before room is made


def run_out_of_room(path: Path) -> list[Attempt]:
    """Let a hoarder fill its room, refuse it for a while, make room, and wait until it is content."""
    attempts: list[Attempt] = []
    command = [sys.executable, "-m", "seamark.testing.hoarder", str(path)]
    stderr = path.with_suffix(".stderr")
    with stderr.open("wb") as said, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said) as hoarder:
        assert hoarder.stdout is not None
        before = resource.prlimit(hoarder.pid, resource.RLIMIT_FSIZE, (ROOM_BYTES, resource.RLIM_INFINITY))
        try:
            refusals = 0
            for line in hoarder.stdout:
                attempts.append(msgspec.json.decode(line, type=Attempt))
                refusals += not attempts[-1].acknowledged
                if refusals == REFUSALS:
                    resource.prlimit(hoarder.pid, resource.RLIMIT_FSIZE, before)
            assert hoarder.wait(30) == 0, stderr.read_text()
        finally:
            hoarder.kill()
    return attempts


async def read_store(path: Path) -> dict[str, Reading]:
    log = open_embedded(path, SystemClock(), Metrics())
    readings = {name: await read_all(log, name) for name in STREAMS}
    await log.close()
    return readings


def test_a_full_disk_refuses_writes_and_recovers(tmp_path: Path) -> None:
    attempts = run_out_of_room(tmp_path / "store")
    first_refusal = next(at for at, attempt in enumerate(attempts) if not attempt.acknowledged)
    assert sum(not attempt.acknowledged for attempt in attempts) >= REFUSALS
    assert any(attempt.acknowledged for attempt in attempts[first_refusal:]), "it never recovered"
    visible: dict[str, int] = defaultdict(int)
    for attempt in attempts:
        visible[attempt.stream] += attempt.last - attempt.first + 1 if attempt.acknowledged else 0
        assert attempt.read == visible[attempt.stream], f"{attempt} is not what was acknowledged"
    readings = asyncio.run(read_store(tmp_path / "store"))
    for name, reading in readings.items():
        acknowledged = [a for a in attempts if a.stream == name and a.acknowledged]
        written = [a.payload(index) for a in acknowledged for index in range(a.last - a.first + 1)]
        assert [record.payload for record in reading.records] == written
        assert [record.seq for record in reading.records] == list(range(1, len(written) + 1))
        assert reading.gaps == []
    assert not verify(tmp_path / "store").findings


async def fill(log: Log, name: str, settings: StreamSettings) -> list[bytes]:
    """Append until it is refused. Returns what was acknowledged."""
    acknowledged: list[bytes] = []
    while True:
        payload = (b"%d|" % len(acknowledged)).ljust(5_000, b".")
        try:
            await log.append(Append(stream=name, drafts=[Draft(payload)], create=settings))
        except WriteFailed:
            return acknowledged
        acknowledged.append(payload)
        assert len(acknowledged) < 10_000, "a small map never filled"


async def test_a_full_map_refuses_writes_until_it_is_larger(tmp_path: Path) -> None:
    log = open_embedded(tmp_path, SystemClock(), Metrics(), map_bytes=MIB)
    await log.append(Append(stream="other", drafts=[Draft(b"early")], create=StreamSettings()))
    acknowledged = await fill(log, "s", StreamSettings())
    assert len(acknowledged) > 50
    assert isinstance(log, Health)
    assert log.health()["writable"] is False
    for name in ("s", "other", "fresh"):
        with pytest.raises(WriteFailed):
            await log.append(Append(stream=name, drafts=[Draft(b"x" * 5_000)], create=StreamSettings()))
    assert [r.payload for r in (await read_all(log, "s")).records] == acknowledged
    assert [state.name for state in await log.streams()] == ["other", "s"]
    await log.close()
    log = open_embedded(tmp_path, SystemClock(), Metrics(), map_bytes=4 * MIB)
    assert [r.payload for r in (await read_all(log, "s")).records] == acknowledged
    receipt = await log.append(Append(stream="s", drafts=[Draft(b"more")]))
    assert receipt.first == len(acknowledged) + 1
    assert log.health()["writable"] is True
    await log.close()
    assert not verify(tmp_path).findings


async def test_what_was_acknowledged_too_early_for_a_full_map_is_stated(tmp_path: Path) -> None:
    """Class disk acknowledges before the commit: what the map has no room for is lost when the log is closed, and the
    loss is a gap. Closing says so, and lets go of the store all the same."""
    log = open_embedded(tmp_path, SystemClock(), Metrics(), map_bytes=MIB)
    acknowledged = await fill(log, "s", StreamSettings(durability=Durability.DISK))
    reading = await read_all(log, "s")
    assert [r.payload for r in reading.records] == acknowledged, "what was acknowledged can be read until then"
    with pytest.raises(WriteFailed):
        await log.close()
    log = open_embedded(tmp_path, SystemClock(), Metrics(), map_bytes=4 * MIB)
    reading = await read_all(log, "s")
    kept = len(reading.records)
    assert [r.payload for r in reading.records] == acknowledged[:kept]
    stated = {seq for gap in reading.gaps for seq in range(gap.first, gap.last + 1)}
    assert set(range(kept + 1, len(acknowledged) + 1)) <= stated
    assert all(gap.loss is Loss.CRASH for gap in reading.gaps)
    receipt: Receipt = await log.append(Append(stream="s", drafts=[Draft(b"more")]))
    assert receipt.first > len(acknowledged)
    await log.close()
    assert not verify(tmp_path).findings
