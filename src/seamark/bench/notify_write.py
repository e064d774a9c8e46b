"""Publishing over HTTP: `POST /api/v1/notification`, each answered when it is durable, beside a bare loop."""

from __future__ import annotations

from seamark.bench import append_http, notices, process, wire
from seamark.bench.append_http import AIMED_CONNECTIONS, Servers
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, aim

SCENARIO = "publish notifications"
BODIES = 1_024
SPEED_AIM = 20_000


def run(bench: Bench) -> list[Row]:
    """Different notifications of both event types; the bare loop answers the same requests without looking at them."""
    rows: list[Row] = []
    with (
        process.seamark(bench, None, "--config", str(notices.file(bench))) as real,
        process.bare(bench) as bare,
    ):
        for event_type, fields in ((notices.VALUES, "seven values"), (notices.PLACES, "six values and a polygon")):
            requests = [wire.request("POST", notices.PUBLISH, body) for body in notices.bodies(event_type, BODIES)]
            cell: dict[str, Value] = {"fields": fields, "connections": AIMED_CONNECTIONS}
            found = append_http.measure(Servers(bench, real, bare), requests, SCENARIO, cell)
            for row in found:
                row.unit = row.unit.replace("records", "notifications")
            if found[0].value is not None:
                aim(found[0], f">= {SPEED_AIM:,}", found[0].value >= SPEED_AIM)
            rows += found
    return rows
