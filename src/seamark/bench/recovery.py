"""Back after a crash: from starting the process on a large store to the first 200 of `/ready`."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from seamark.bench import process, wire
from seamark.bench.bench import Bench
from seamark.bench.pump import Pump, run_on_loop
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import Sample, median
from seamark.bench.swarm import Broken, Caller, Swarm
from seamark.clock import SystemClock
from seamark.limits import GIB
from seamark.log.engines.embedded import open_embedded
from seamark.log.settings import StreamSettings
from seamark.telemetry.metrics import Metrics

RECORDS = 10_000_000
RECORDS_QUICK = 50_000
DATA = b'{"value":' + b"1" * 90 + b"}"  # short, so that ten million of them fit most disks
FREE_BYTES_PER_RECORD = 300  # with the pages that copy-on-write keeps for a while
WRITERS = 8
BATCH = 1_000
LOAD_SECONDS = 0.5
SECONDS_AIM = 2.0
REFERENCE = "the same server on an empty store"


def run(bench: Bench) -> list[Row]:
    """Fill a store, kill the server while it takes appends, start it again; warm and with the file's pages forgotten."""
    records = RECORDS_QUICK if bench.quick else RECORDS
    rounds = 1 if bench.quick else 3
    store = bench.fresh("recovery")
    free = shutil.disk_usage(bench.where).free
    if free < FREE_BYTES_PER_RECORD * records:
        raise OSError(
            f"{records:,} records need {FREE_BYTES_PER_RECORD * records // GIB} GiB free, there are {free // GIB}"
        )
    run_on_loop(_fill(store, records))
    empty, warm, cold = [], [], []
    for _ in range(rounds):
        empty.append(_ready(bench, None))
        _crash(bench, store)
        warm.append(_ready(bench, store))
        _crash(bench, store)
        _forget(store)
        cold.append(_ready(bench, store))
    bench.discard(store)
    return [_row(records, "warm", warm, empty), _row(records, "cold", cold, empty)]


def _row(records: int, cache: str, ours: list[float], empty: list[float]) -> Row:
    cell: dict[str, Value] = {"records": records, "page cache": cache}
    value = median(ours)
    row = Row(scenario="recovery after kill -9", parameters=cell, value=value, unit="s to ready")
    return aim(against(row, REFERENCE, median(empty)), f"<= {SECONDS_AIM:.0f} s", value <= SECONDS_AIM)


async def _fill(store: Path, records: int) -> None:
    log = open_embedded(store, SystemClock(), Metrics())
    try:
        await log.configure("raw:bench", StreamSettings())
        await Pump(log, "raw:bench", batch=BATCH, writers=WRITERS, data=DATA).run(enough=records)
    finally:
        await log.close()


def _ready(bench: Bench, store: Path | None) -> float:
    server = process.seamark(bench, store)
    try:
        return server.ready()
    finally:
        server.kill()


def _crash(bench: Bench, store: Path) -> None:
    """Kill the server in the middle of appends."""
    with process.seamark(bench, store) as server:
        swarm = Swarm(server.host, server.port)
        request = wire.request("POST", "/raw/bench", wire.append_body(10))
        callers = [Caller(swarm, Sample(), lambda caller: caller.call(request)) for _ in range(WRITERS)]
        for caller in callers:
            caller.call(request)
        end = time.perf_counter() + LOAD_SECONDS
        while time.perf_counter() < end:
            swarm.turn(0.05)
        server.kill()
        try:
            swarm.turn(0.05)
        except (Broken, OSError):
            pass  # as a client sees a crash
        swarm.close()


def _forget(store: Path) -> None:
    """Ask the system to drop the file's clean pages, so that the start has to read the disk."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in store.rglob("*.mdb"):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
