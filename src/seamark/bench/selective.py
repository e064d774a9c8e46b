"""A selective replay: one record in ten thousand out of a million, with the columns of the log and without."""

from __future__ import annotations

import asyncio
import time

from seamark.bench.bench import Bench
from seamark.bench.pump import run_on_loop
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median
from seamark.clock import SystemClock
from seamark.limits import PAGE_RECORDS_MAX
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log
from seamark.log.reader import Accept
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.match.filter import Filter
from seamark.telemetry.metrics import Metrics

STORED = 1_000_000
STORED_QUICK = 40_000
EVERY = 10_000
BATCH = 1_000
STREAM = "notify:bench"
REFERENCE = "the same read without columns"
MS_AIM = 100.0
_RARE, _COMMON = "rare", "common"


def run(bench: Bench) -> list[Row]:
    """Records of seven tokens, one of which says which are wanted. Read from the first to the last."""
    return run_on_loop(_run(bench))


async def _run(bench: Bench) -> list[Row]:
    stored, rounds = (STORED_QUICK, 1) if bench.quick else (STORED, 5)
    path = bench.fresh("selective")
    log = open_embedded(path, SystemClock(), Metrics())
    try:
        await log.configure(STREAM, StreamSettings(indexed=True))
        for first in range(1, stored, BATCH):
            await log.append(Append(stream=STREAM, drafts=[_draft(first + place) for place in range(BATCH)]))
        log.sweep()  # columns are made in the background; here they are waited for
        wanted = Filter(subject=(None, None, None, _RARE, None, None, None))
        with_columns = [await _replay(log, wanted, stored // EVERY) for _ in range(rounds)]
        without = [await _replay(log, _Plain(wanted), stored // EVERY) for _ in range(max(1, rounds // 2))]
    finally:
        await log.close()
        bench.discard(path)
    cell: dict[str, Value] = {"records": stored, "wanted": stored // EVERY}
    found: list[Row] = []
    for unit, place in (("ms to the last record", 0), ("ms of CPU", 1)):
        value, reference = (median([times[place] for times in each]) for each in (with_columns, without))
        row = Row(scenario="selective replay", parameters=cell, value=value, unit=unit)
        found.append(against(row, REFERENCE, reference))
    aim(found[0], f"<= {MS_AIM:.0f} ms", found[0].value is not None and found[0].value <= MS_AIM)
    return found


class _Plain:
    """A condition that cannot say anything to columns."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept

    def __call__(self, record: Record) -> bool:
        return self._accept(record)


def _draft(number: int) -> Draft:
    wanted = _RARE if number % EVERY == 0 else _COMMON
    subject = ("class", f"d{number % 31}", f"e{number % 7}", wanted, f"t{number % 4}", f"s{number % 240}", "final")
    return Draft(b'{"n":%d}' % number, subject=subject)


async def _replay(log: Log, accept: Accept, expected: int) -> tuple[float, float]:
    """Milliseconds, and those of CPU, until the last wanted record is there."""
    began, used = time.perf_counter(), time.process_time()
    cursor, found = Cursor(0), 0
    while True:
        page = await log.read(STREAM, cursor, records_max=PAGE_RECORDS_MAX, accept=accept)
        found += len(page.records)
        cursor = page.cursor
        if page.caught_up:
            break
        await asyncio.sleep(0)
    took = (time.perf_counter() - began) * 1_000, (time.process_time() - used) * 1_000
    assert found == expected, f"{found} of {expected} records were found"
    return took
