"""Reading inside the process: pages of records from the log, beside the same bytes copied out of LMDB."""

from __future__ import annotations

import time

from seamark.bench.bench import Bench
from seamark.bench.pump import Pump, run_on_loop
from seamark.bench.raw_lmdb import RawLmdb
from seamark.bench.row import Row, Value, against
from seamark.bench.sample import median
from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import ReadsNow
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

PAGES = (256, 1_000)
STORED = 100_000
STORED_QUICK = 10_000
GROUP = 1_000
REFERENCE = "raw LMDB, values copied out"


def run(bench: Bench) -> list[Row]:
    """Pages that start at different places of one stream."""
    return run_on_loop(_pages(bench))


async def _pages(bench: Bench) -> list[Row]:
    stored = STORED_QUICK if bench.quick else STORED
    path, raw_path = bench.fresh("read"), bench.fresh("raw")
    log = open_embedded(path, SystemClock(), Metrics())
    raw = RawLmdb(raw_path)
    try:
        await log.configure("bench", StreamSettings())
        await Pump(log, "bench", batch=GROUP, writers=1).run(enough=stored)
        for _ in range(stored // GROUP):
            raw.append(GROUP)
        return [_page(log, raw, page, stored, quick=bench.quick) for page in PAGES]
    finally:
        raw.close()
        await log.close()
        bench.discard(path)
        bench.discard(raw_path)


def _page(log: ReadsNow, raw: RawLmdb, page: int, stored: int, *, quick: bool) -> Row:
    rounds, seconds = (1, 0.2) if quick else (3, 1.0)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(_read_for(log, seconds, page, stored))
        theirs.append(raw.read_for(seconds, page))
    cell: dict[str, Value] = {"records": page}
    speed = median(ours)
    row = Row(scenario="read in process", parameters=cell, value=speed, unit="records/s")
    row.notes = f"{page / speed * 1e6:.0f} us a page"
    return against(row, REFERENCE, median(theirs))


def _read_for(log: ReadsNow, seconds: float, page: int, stored: int) -> float:
    began = time.perf_counter()
    records, start = 0, 0
    while time.perf_counter() < began + seconds:
        records += len(log.read_now("bench", Cursor(start), records_max=page).records)
        start = start + page if start + 2 * page < stored else 0
    return records / (time.perf_counter() - began)
