"""A reader that comes back to a long backlog: `GET /raw/{stream}/watch?after=0`, until the last record is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from seamark.bench import process, read_http, wire
from seamark.bench.bench import Bench
from seamark.bench.calls import WAITED_SHARE_QUIET
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median
from seamark.bench.swarm import Swarm, Watcher

BACKLOG = 1_000_000
BACKLOG_QUICK = 20_000
BLOCK = 500  # records in one write of the bare loop: about the server's own turn
PATH = "/raw/backlog"
REFERENCE = "bare loop, the same events from memory"
SPEED_AIM = 300_000
SECONDS_MAX = 120.0


class _Stretch:
    """How fast one backlog came."""

    def __init__(self, records: int, seconds: float, used: process.Usage | None) -> None:
        self.per_second = records / seconds
        self.per_cpu = records / used.ran if used else None
        self.waited_share = used.waited / seconds if used else 0.0


def run(bench: Bench) -> list[Row]:
    """Timed reads that only look for the end, then one that checks every event."""
    backlog = BACKLOG_QUICK if bench.quick else BACKLOG
    rounds = 1 if bench.quick else 3
    blob = bench.fresh("block")
    blob.write_bytes(b"".join(wire.event(backlog, 1_700_000_000_000, wire.payload()) for _ in range(BLOCK)))
    with process.seamark(bench) as real, process.bare(bench, "--blob", str(blob)) as bare:
        read_http.fill(real, PATH, backlog)
        ours, theirs = [], []
        for _ in range(rounds):
            theirs.append(_replay(bare, blob, backlog))
            ours.append(_timed(real, backlog))
        broken = _checked(real, backlog)
    return _rows(ours, theirs, backlog, broken)


def _rows(ours: list[_Stretch], theirs: list[_Stretch], backlog: int, broken: int) -> list[Row]:
    cell: dict[str, Value] = {"backlog": backlog}
    speed = Row(scenario="resume", parameters=cell, unit="records/s", value=median([each.per_second for each in ours]))
    speed.notes = f"a reader that checks every event found {broken} missing, repeated or out of order"
    waited = median([each.waited_share for each in ours])
    if waited > WAITED_SHARE_QUIET:
        speed.notes += f"; disturbed: the server waited {waited:.0%} of the time for its core"
    against(speed, REFERENCE, median([each.per_second for each in theirs]))
    if speed.value is not None:
        aim(speed, f">= {SPEED_AIM:,}", speed.value >= SPEED_AIM and broken == 0)
    per_cpu = [each.per_cpu for each in ours if each.per_cpu is not None]
    if not per_cpu:
        return [speed]
    cost = Row(scenario="resume", parameters=cell, unit="records per server CPU-second", value=median(per_cpu))
    return [speed, against(cost, REFERENCE, median([each.per_cpu for each in theirs if each.per_cpu is not None]))]


def _timed(server: process.Process, backlog: int) -> _Stretch:
    swarm = Swarm(server.host, server.port)
    try:
        began, usage = time.perf_counter(), server.usage()
        Watcher(swarm, f"{PATH}/watch?after=0", checks=False)
        _wait(swarm, lambda: swarm.tally.delivered >= backlog)
        return _Stretch(backlog, time.perf_counter() - began, server.used(usage))
    finally:
        swarm.close()


def _replay(server: process.Process, blob: Path, backlog: int) -> _Stretch:
    """The bare loop repeats one block, so bytes say when everything is there."""
    times = backlog // BLOCK
    total = times * blob.stat().st_size
    swarm = Swarm(server.host, server.port)
    try:
        began, usage = time.perf_counter(), server.usage()
        Watcher(swarm, f"{PATH}/watch?times={times}", checks=False)
        _wait(swarm, lambda: swarm.bytes_in >= total)
        return _Stretch(times * BLOCK, time.perf_counter() - began, server.used(usage))
    finally:
        swarm.close()


def _checked(server: process.Process, backlog: int) -> int:
    swarm = Swarm(server.host, server.port)
    try:
        Watcher(swarm, f"{PATH}/watch?after=0", checks=True)
        _wait(swarm, lambda: swarm.tally.delivered >= backlog)
        return swarm.tally.broken
    finally:
        swarm.close()


def _wait(swarm: Swarm, done: Callable[[], bool]) -> None:
    if not swarm.until(done, SECONDS_MAX):
        raise TimeoutError(f"{swarm.tally.delivered} records had come after {SECONDS_MAX:.0f} s")
