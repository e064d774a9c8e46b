"""Reading pages over HTTP: `GET /raw/{stream}/records`, beside a bare loop that answers the same bytes from memory."""

from __future__ import annotations

import http.client

from seamark.bench import calls, process, wire
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, against
from seamark.bench.sample import median

PAGES = (256, 1_000)
CONNECTIONS = 16
STORED = 20_000
PATH = "/raw/read"
REFERENCE = "bare loop, the same bytes from memory"


def run(bench: Bench) -> list[Row]:
    """Pages from the middle of a stream, so that nothing is answered from its edge."""
    rows: list[Row] = []
    with process.seamark(bench) as real:
        fill(real, PATH, STORED)
        for page in PAGES:
            rows += _page(bench, real, page)
    return rows


def fill(server: process.Process, path: str, records: int, batch: int = 1_000) -> None:
    """Append `records` records in batches over one connection."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    body = wire.append_body(batch)
    try:
        for _ in range(records // batch):
            connection.request("POST", path, body=body, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 300:
                raise wire.Answer(f"{path}: {answer.status} {text[:300]!r}")
    finally:
        connection.close()


def beside(
    bench: Bench, real: process.Process, answer: bytes, *requests: bytes
) -> tuple[list[calls.Result], list[calls.Result]]:
    """The requests to the server, and to a bare loop that always gives `answer`, in alternating rounds."""
    rounds, seconds = (1, 0.3) if bench.quick else (3, 1.0)
    blob = bench.fresh("page")
    blob.write_bytes(answer)
    ours, theirs = [], []
    with process.bare(bench, "--blob", str(blob)) as bare:
        for _ in range(rounds):
            theirs.append(calls.drive(bare, *requests, connections=CONNECTIONS, seconds=seconds))
            ours.append(calls.drive(real, *requests, connections=CONNECTIONS, seconds=seconds))
    return ours, theirs


def _page(bench: Bench, real: process.Process, page: int) -> list[Row]:
    target = f"{PATH}/records?after={STORED // 2}&limit={page}"
    ours, theirs = beside(bench, real, answer_of(real, "GET", target), wire.request("GET", target))
    cell: dict[str, Value] = {"records": page, "connections": CONNECTIONS}
    speed = Row(scenario="read over HTTP", parameters=cell, unit="records/s", value=speed_of(ours) * page)
    speed.notes = calls.disturbance(ours)
    slow = Row(scenario="read over HTTP", parameters=cell, unit="p99 ms", value=median([r.p99_ms for r in ours]))
    return [
        against(speed, REFERENCE, speed_of(theirs) * page),
        against(slow, REFERENCE, median([result.p99_ms for result in theirs])),
    ]


def speed_of(results: list[calls.Result]) -> float:
    return median([result.per_second for result in results])


def answer_of(server: process.Process, method: str, target: str, body: bytes | None = None) -> bytes:
    """The body of one answer, byte for byte."""
    return wire.fetch(server.host, server.port, method, target, body)
