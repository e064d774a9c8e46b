"""Appending inside the process: the log alone, beside LMDB given the same bytes in the same groups."""

from __future__ import annotations

from seamark.bench.bench import Bench
from seamark.bench.pump import Pump, run_on_loop
from seamark.bench.raw_lmdb import RawLmdb
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median
from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Log
from seamark.log.settings import Durability, StreamSettings
from seamark.telemetry.metrics import Metrics

BATCHES = (1, 100)
WRITERS = (1, 16, 64)
CLASSES = (Durability.FSYNC, Durability.DISK)
REFERENCE = "raw LMDB, one durable commit per group"
BATCH_AIM = 500_000


def run(bench: Bench) -> list[Row]:
    """The grid of class, batch and writers. A group is what all writers have under way together."""
    return run_on_loop(_grid(bench))


async def _grid(bench: Bench) -> list[Row]:
    writers = WRITERS[-1:] if bench.quick else WRITERS
    return [
        await _cell(bench, durability, batch, count) for durability in CLASSES for batch in BATCHES for count in writers
    ]


async def _cell(bench: Bench, durability: Durability, batch: int, writers: int) -> Row:
    rounds, seconds = (1, 0.2) if bench.quick else (3, 0.7)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(await _ours(bench, durability, batch, writers, seconds))
        theirs.append(_theirs(bench, batch * writers, seconds))
    cell: dict[str, Value] = {"class": durability.value, "batch": batch, "writers": writers}
    row = Row(scenario="append in process", parameters=cell, value=median(ours), unit="records/s")
    against(row, REFERENCE, median(theirs))
    if writers == 1:
        row.notes = "one writer waits for every sync, so the disk is the bound: see what the store alone gives"
    if durability is Durability.FSYNC and batch == 100 and row.value is not None:
        aim(row, f">= {BATCH_AIM:,}", row.value >= BATCH_AIM)
    return row


async def _ours(bench: Bench, durability: Durability, batch: int, writers: int, seconds: float) -> float:
    path = bench.fresh("append")
    log: Log = open_embedded(path, SystemClock(), Metrics())
    try:
        await log.configure("bench", StreamSettings(durability=durability))
        pump = Pump(log, "bench", batch=batch, writers=writers)
        await pump.run(seconds=seconds / 5)
        return await pump.run(seconds=seconds)
    finally:
        await log.close()
        bench.discard(path)


def _theirs(bench: Bench, group: int, seconds: float) -> float:
    path = bench.fresh("raw")
    raw = RawLmdb(path)
    try:
        raw.append_for(seconds / 5, group)
        return raw.append_for(seconds, group)
    finally:
        raw.close()
        bench.discard(path)
