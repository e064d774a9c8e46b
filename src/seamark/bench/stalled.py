"""Readers that stop reading: what they cost the server, and what they cost a reader that does not stop."""

from __future__ import annotations

import time

import msgspec

from seamark.bench import process, wire
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import Sample
from seamark.bench.swarm import Caller, Swarm, Watcher
from seamark.limits import MIB

STALLED = 1_000
STALLED_QUICK = 50
RECORDS = 1_000_000
RECORDS_QUICK = 20_000
BATCH = 100
PUBLISHERS = 4
RECEIVE_BYTES = 4_096
SECONDS_MAX = 120.0
MIB_AIM = 64
SPEED_AIM = 0.8
REFERENCE = "the same without stalled readers"


class _Flow(msgspec.Struct, frozen=True):
    """One stretch of publishing with a healthy reader."""

    per_second: float
    per_cpu: float | None
    growth: int | None
    sockets: int | None
    broken: int


def run(bench: Bench) -> list[Row]:
    """Twice the same stretch on one server, the second time beside readers that opened a stream and never read it."""
    stalled, records = (STALLED_QUICK, RECORDS_QUICK) if bench.quick else (STALLED, RECORDS)
    with process.seamark(bench) as server:
        _flow(server, "/raw/warm", records // 10, stalled=0)
        without = _flow(server, "/raw/alone", records, stalled=0)
        beside = _flow(server, "/raw/beside", records, stalled=stalled)
    return _rows(without, beside, {"stalled": stalled, "records": records})


def _rows(without: _Flow, beside: _Flow, cell: dict[str, Value]) -> list[Row]:
    memory = Row(scenario="stalled readers", parameters=cell, unit="MiB grown", value=_mib(beside.growth))
    memory.notes = "private memory of the server, from before the readers came to after the last record"
    against(memory, REFERENCE, _mib(without.growth))
    kernel = Row(scenario="stalled readers", parameters=cell, unit="MiB in TCP buffers", value=_mib(beside.sockets))
    kernel.notes = "what the system keeps for the sockets of both ends, which no process is charged for"
    against(kernel, REFERENCE, _mib(without.sockets))
    for row in (memory, kernel):
        if row.value is not None:
            aim(row, f"<= {MIB_AIM} MiB", row.value <= MIB_AIM)
    speed = Row(
        scenario="stalled readers", parameters=cell, unit="records/s to a healthy reader", value=beside.per_second
    )
    speed.notes = f"missing, repeated or out of order: {beside.broken}"
    against(speed, REFERENCE, without.per_second)
    aim(speed, f">= {SPEED_AIM} x", speed.ratio is not None and speed.ratio >= SPEED_AIM and beside.broken == 0)
    cost = Row(scenario="stalled readers", parameters=cell, unit="records per server CPU-second", value=beside.per_cpu)
    return [memory, kernel, speed, against(cost, REFERENCE, without.per_cpu)]


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB


def _flow(server: process.Process, path: str, records: int, *, stalled: int) -> _Flow:
    wire.ask(server.host, server.port, "PUT", path, {"durability": "fsync"})
    before, sockets = server.memory(), process.socket_memory()
    swarm = Swarm(server.host, server.port)
    watch = wire.request("GET", path + "/watch")
    for _ in range(stalled):
        swarm.connect(receive_bytes=RECEIVE_BYTES).send(watch)
    Watcher(swarm, path + "/watch", checks=True)
    swarm.until(lambda: swarm.tally.opened == 1, SECONDS_MAX)
    began, usage = time.perf_counter(), server.usage()
    _publish(swarm, wire.request("POST", path, wire.append_body(BATCH)), records // BATCH)
    if not swarm.until(lambda: swarm.tally.delivered >= records, SECONDS_MAX):
        raise TimeoutError(f"{swarm.tally.delivered} of {records} records reached the healthy reader")
    seconds, used = time.perf_counter() - began, server.used(usage)
    after, sockets_after = server.memory(), process.socket_memory()
    swarm.close()
    return _Flow(
        per_second=records / seconds,
        per_cpu=records / used.ran if used else None,
        growth=None if before is None or after is None else after.private - before.private,
        sockets=None if sockets is None or sockets_after is None else sockets_after - sockets,
        broken=swarm.tally.broken,
    )


def _publish(swarm: Swarm, request: bytes, appends: int) -> None:
    left = appends

    def again(caller: Caller) -> None:
        nonlocal left
        if left > 0:
            left -= 1
            caller.call(request)

    publishers = [Caller(swarm, Sample(), again) for _ in range(PUBLISHERS)]
    for publisher in publishers:
        again(publisher)
    if not swarm.until(lambda: left == 0 and not any(publisher.busy for publisher in publishers), SECONDS_MAX):
        raise TimeoutError(f"{left} of {appends} appends were not answered")
