"""Appending over HTTP: `POST /raw/{stream}`, acknowledged as the stream's class demands (fsync: after its commit)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seamark.bench import calls, process, wire
from seamark.bench.bench import Bench
from seamark.bench.calls import Result
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median

BATCHES = (1, 100)
CONNECTIONS = (1, 16, 64)
CLASSES = ("fsync", "disk")
REFERENCE = "bare loop, no parsing, no store"
SINGLE_AIM = 30_000
BATCH_AIM = 300_000
AIMED_CONNECTIONS = 64


def run(bench: Bench) -> list[Row]:
    """The grid of class, batch and connections; every cell beside the bare loop under the same load."""
    rows: list[Row] = []
    connections = CONNECTIONS[-1:] if bench.quick else CONNECTIONS
    with process.seamark(bench) as real, process.bare(bench) as bare:
        for durability in CLASSES:
            path = f"/raw/append-{durability}"
            wire.ask(real.host, real.port, "PUT", path, {"durability": durability})
            for batch in BATCHES:
                request = wire.request("POST", path, wire.append_body(batch))
                for count in connections:
                    cell: dict[str, Value] = {"class": durability, "batch": batch, "connections": count}
                    found = measure(Servers(bench, real, bare), [request], "append over HTTP", cell)
                    if durability == "fsync":
                        aim_at(found[0], cell)
                    rows += found
    return rows


class Servers(NamedTuple):
    """Both sides of one comparison."""

    bench: Bench
    real: process.Process
    bare: process.Process


def measure(servers: Servers, requests: Sequence[bytes], scenario: str, cell: dict[str, Value]) -> list[Row]:
    """The rows of some requests over and over; the first has the rate."""
    bench, real, bare = servers
    rounds, seconds = (1, 0.3) if bench.quick else (3, 1.0)
    ours: list[Result] = []
    theirs: list[Result] = []
    count, batch = int(cell["connections"]), int(cell.get("batch", 1))
    for _ in range(rounds):
        theirs.append(calls.drive(bare, *requests, connections=count, seconds=seconds))
        ours.append(calls.drive(real, *requests, connections=count, seconds=seconds))
    rows = []
    figures: tuple[tuple[str, Callable[[Result], float | None]], ...] = (
        ("records/s", lambda result: result.per_second * batch),
        ("records per server CPU-second", lambda result: (result.per_server_cpu or 0) * batch or None),
        ("p50 ms", lambda result: result.p50_ms),
        ("p99 ms", lambda result: result.p99_ms),
    )
    for unit, figure in figures:
        row = Row(scenario=scenario, parameters=cell, value=_median(ours, figure), unit=unit)
        rows.append(against(row, REFERENCE, _median(theirs, figure)))
    rows[0].notes = calls.disturbance(ours)
    return rows


def aim_at(row: Row, cell: dict[str, Value]) -> None:
    """What batches and single records are to reach."""
    if cell["connections"] != AIMED_CONNECTIONS or row.value is None:
        return
    least = SINGLE_AIM if cell["batch"] == 1 else BATCH_AIM
    aim(row, f">= {least:,}", row.value >= least)


def _median(results: list[Result], figure: Callable[[Result], float | None]) -> float | None:
    found = [value for result in results if (value := figure(result)) is not None]
    return median(found) if found else None
