"""Writing to topics over HTTP: `POST /v0/topics/{topic}`, batches and single records."""

from __future__ import annotations

from seamark.bench import append_http, process, wire
from seamark.bench.append_http import AIMED_CONNECTIONS, BATCHES, CLASSES, Servers
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value

SCENARIO = "write to topics"


def run(bench: Bench) -> list[Row]:
    """Class and batch; the bare loop answers the same requests without looking at them."""
    rows: list[Row] = []
    with process.seamark(bench) as real, process.bare(bench) as bare:
        for durability in CLASSES:
            path = f"/v0/topics/write-{durability}"
            wire.ask(real.host, real.port, "PUT", path, {"durability": durability})
            for batch in BATCHES:
                request = wire.request("POST", path, wire.append_body(batch))
                cell: dict[str, Value] = {"class": durability, "batch": batch, "connections": AIMED_CONNECTIONS}
                found = append_http.measure(Servers(bench, real, bare), [request], SCENARIO, cell)
                append_http.aim_at(found[0], cell)
                rows += found
    return rows
