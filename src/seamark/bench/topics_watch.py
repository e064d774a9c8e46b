"""Watching topics: one write at a time to one watcher and to a thousand, of one topic and of several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from seamark.bench import process
from seamark.bench.audience import Audience, TopicAudience
from seamark.bench.bench import Bench
from seamark.bench.fanout import in_turn, rows_of
from seamark.bench.row import Row, Value, aim

COUNTS = (1, 1_000)
COUNTS_QUICK = (1, 50)
TOPICS = (1, 8)
CLASSES = ("disk", "fsync")
P50_AIM_MS = 1.0  # with one watcher
P99_AIM_MS = 25.0  # with a thousand


def run(bench: Bench) -> list[Row]:
    """Latency counts from before the write is sent to the arrival at each watcher; the next write goes out when everybody
    has the one before."""
    rows: list[Row] = []
    with process.seamark(bench) as real, process.bare(bench) as bare:
        for count in COUNTS_QUICK if bench.quick else COUNTS:
            for topics in TOPICS:
                for durability in CLASSES if topics == TOPICS[0] else CLASSES[:1]:
                    ours = partial(TopicAudience, real, count, topics=topics, durability=durability)
                    cell: dict[str, Value] = {"watchers": count, "topics each": topics, "class": durability}
                    rows += _cell(ours, partial(Audience, bare, count), cell, quick=bench.quick)
    return rows


def _cell(
    ours: Callable[[], Audience], theirs: Callable[[], Audience], cell: dict[str, Value], *, quick: bool
) -> list[Row]:
    rounds, seconds = (1, 0.3) if quick else (3, 2.0)
    audiences = {"seamark": ours(), "bare": theirs()}
    outcomes = in_turn(audiences, lambda audience: audience.window(1, seconds), rounds)
    for audience in audiences.values():
        audience.close()
    rows = rows_of("watch topics", cell, outcomes["seamark"], outcomes["bare"])
    return [_aimed(row) for row in rows]


def _aimed(row: Row) -> Row:
    if row.value is None:
        return row
    if row.parameters["watchers"] == COUNTS[0] and row.unit == "p50 ms":
        return aim(row, f"<= {P50_AIM_MS:g} ms", row.value <= P50_AIM_MS)
    if row.parameters["watchers"] == COUNTS[-1] and row.unit == "p99 ms":
        return aim(row, f"<= {P99_AIM_MS:g} ms", row.value <= P99_AIM_MS)
    return row
