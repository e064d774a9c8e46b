"""What a watcher costs that is only waiting: the server's memory before and after 10,000 of them came."""

from __future__ import annotations

import time
from collections.abc import Callable

from seamark.bench import process
from seamark.bench.audience import Audience
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, against, aim
from seamark.limits import KIB

WATCHERS = 10_000
WATCHERS_QUICK = 200
SETTLE_SECONDS = 1.0
BYTES_AIM = 12 * KIB
REFERENCE = "bare loop's watcher"


def run(bench: Bench) -> list[Row]:
    """Private memory only; kernel socket buffers are the system's and are empty here."""
    watchers = WATCHERS_QUICK if bench.quick else WATCHERS
    with process.seamark(bench) as server:
        ours = each(server, watchers, Audience)
    with process.bare(bench) as server:
        theirs = each(server, watchers, Audience)
    cell: dict[str, Value] = {"watchers": watchers}
    row = Row(scenario="idle watchers", parameters=cell, value=ours, unit="bytes per watcher")
    if ours is not None:
        aim(row, f"<= {BYTES_AIM:,}", ours <= BYTES_AIM)
    return [against(row, REFERENCE, theirs)]


def each(
    server: process.Process, watchers: int, audience_of: Callable[[process.Process, int], Audience]
) -> float | None:
    """Private memory for each of so many watchers that wait, in bytes."""
    audience_of(server, max(1, watchers // 100)).close()  # what is made once belongs to nobody
    time.sleep(SETTLE_SECONDS)
    before = server.memory()
    audience = audience_of(server, watchers)
    time.sleep(SETTLE_SECONDS)
    after = server.memory()
    audience.close()
    return None if before is None or after is None else (after.private - before.private) / watchers
