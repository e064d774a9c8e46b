"""Reading topics over HTTP: `POST /v0/topics/{topic}/diff` of 256 records, beside a bare loop that answers the same bytes."""

from __future__ import annotations

import msgspec

from seamark.bench import calls, process, read_http, wire
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median

RECORDS = 256
STORED = 200_000  # far more than is kept decoded
STORED_QUICK = 10_000
CONNECTIONS = read_http.CONNECTIONS
PATH = "/v0/topics/read"
SPEED_AIM = 8_000


def run(bench: Bench) -> list[Row]:
    """A page that everybody asks for, and pages all over a history that nobody has read before."""
    stored = STORED_QUICK if bench.quick else STORED
    with process.seamark(bench) as real:
        wire.ask(real.host, real.port, "PUT", PATH, {})
        read_http.fill(real, PATH, stored)
        popular = _rows(bench, real, "the same", [stored // 2])
        history = _rows(bench, real, "all in turn", list(range(0, stored - RECORDS, RECORDS)))
    value = popular[0].value
    if value is not None:
        aim(popular[0], f">= {SPEED_AIM:,}", value >= SPEED_AIM)
    return popular + history


def _rows(bench: Bench, real: process.Process, pages: str, cursors: list[int]) -> list[Row]:
    target = PATH + "/diff"
    bodies = [msgspec.json.encode({"from_seq": cursor, "limit": RECORDS}) for cursor in cursors]
    answer = read_http.answer_of(real, "POST", target, bodies[0])
    ours, theirs = read_http.beside(bench, real, answer, *(wire.request("POST", target, body) for body in bodies))
    cell: dict[str, Value] = {"records": RECORDS, "pages": pages, "connections": CONNECTIONS}
    speed, cost, slow = (
        Row(scenario="diff of topics", parameters=cell, unit=unit, value=value)
        for unit, value in (
            ("calls/s", read_http.speed_of(ours)),
            ("calls per server CPU-second", _per_cpu(ours)),
            ("p99 ms", median([result.p99_ms for result in ours])),
        )
    )
    speed.notes = calls.disturbance(ours)
    return [
        against(speed, read_http.REFERENCE, read_http.speed_of(theirs)),
        against(cost, read_http.REFERENCE, _per_cpu(theirs)),
        against(slow, read_http.REFERENCE, median([result.p99_ms for result in theirs])),
    ]


def _per_cpu(results: list[calls.Result]) -> float | None:
    found = [result.per_server_cpu for result in results if result.per_server_cpu is not None]
    return median(found) if found else None
