"""Replays of a million notifications over HTTP: all of them, and the one in ten thousand that some watcher wants."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from seamark.bench import notices, process, wire
from seamark.bench.bench import Bench
from seamark.bench.hearer import Hearer
from seamark.bench.notify_validate import checked
from seamark.bench.pump import run_on_loop
from seamark.bench.row import Row, against, aim
from seamark.bench.sample import median
from seamark.bench.swarm import Swarm
from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append
from seamark.log.record import Draft
from seamark.notify.service import Notifications
from seamark.telemetry.metrics import Metrics

SCENARIO = "replay notifications"
STORED = 1_000_000
STORED_QUICK = 40_000
EVERY = 10_000
BATCH = 1_000
BLOCK = 500  # notifications in one write of the bare loop
SPEED_AIM = 200_000
MS_AIM = 100.0
SECONDS_MAX = 120.0
OPENING = 1  # `replay_started`
CLOSING = 2  # `replay_completed` and `connection-closing`
WHOLE = "everything"
REFERENCE = "bare loop, as many bytes from memory"
SELECTIVE_REFERENCE = "everything, of the same stream"
_CLASS, _STEP, _AREA = "rare", notices.STEPS, "(80,170,80,171,81,171,81,170,80,170)"  # what one in ten thousand has
_TOUCHING = "(80.5,170.5,80.5,172,82,172,80.5,170.5)"
WISHES: dict[str, tuple[str, dict[str, Any]]] = {
    WHOLE: (notices.VALUES, {}),
    "one value": (notices.VALUES, {"class": _CLASS}),
    "a condition on a number": (notices.VALUES, {"step": {"gte": _STEP}}),
    "a polygon": (notices.PLACES, {"polygon": _TOUCHING}),
}


class Replay(msgspec.Struct, frozen=True):
    """One replay, from the request to the end of the stream."""

    notifications: int
    bytes: int
    seconds: float
    cpu: float | None


def run(bench: Bench) -> list[Row]:
    """The notifications are checked and stored inside this process, in batches; the server is started on the store."""
    stored, rounds = (STORED_QUICK, 1) if bench.quick else (STORED, 3)
    store = bench.fresh("store")
    run_on_loop(_fill(store, stored))
    with process.seamark(bench, store, "--config", str(notices.file(bench))) as real:
        found = {name: [_replay(real, *WISHES[name]) for _ in range(rounds)] for name in WISHES}
        bare = [_from_memory(bench, found[WHOLE][0]) for _ in range(rounds)]
    bench.discard(store)
    for name, replays in found.items():
        expected = stored if name == WHOLE else stored // EVERY
        assert all(each.notifications == expected for each in replays), f"{name}: not {expected} notifications came"
    return [*_whole_rows(found[WHOLE], bare, stored), *_selective_rows(found, stored)]


def _whole_rows(ours: list[Replay], theirs: list[Replay], stored: int) -> list[Row]:
    rows = []
    for unit, per in (("notifications/s", _per_second), ("notifications per server CPU-second", _per_cpu)):
        row = Row(scenario=SCENARIO, parameters={"stored": stored, "wanted": WHOLE}, value=median(per(ours)), unit=unit)
        rows.append(against(row, REFERENCE, median(per(theirs))))
    speed = rows[0]
    assert speed.value is not None
    aim(speed, f">= {SPEED_AIM:,}", speed.value >= SPEED_AIM)
    speed.notes = f"{ours[0].bytes / stored:.0f} bytes for a notification"
    return rows


def _selective_rows(found: dict[str, list[Replay]], stored: int) -> list[Row]:
    whole = median([each.seconds for each in found[WHOLE]]) * 1_000
    rows = []
    for name in WISHES:
        if name == WHOLE:
            continue
        value = median([each.seconds for each in found[name]]) * 1_000
        wanted = f"1 in {EVERY:,}: {name}"
        row = Row(scenario=SCENARIO, parameters={"stored": stored, "wanted": wanted}, value=value, unit="ms to the end")
        rows.append(aim(against(row, SELECTIVE_REFERENCE, whole), f"<= {MS_AIM:.0f} ms", value <= MS_AIM))
    return rows


def _per_second(replays: list[Replay]) -> list[float]:
    return [each.notifications / each.seconds for each in replays]


def _per_cpu(replays: list[Replay]) -> list[float]:
    return [each.notifications / each.cpu for each in replays if each.cpu]


async def _fill(store: Path, stored: int) -> None:
    log = open_embedded(store, SystemClock(), Metrics())
    try:
        notifications = Notifications(log, notices.options())
        await notifications.prepare()
        for event in notifications.schema:
            drafts = _drafts(notifications, event.name)
            for _ in range(0, stored, BATCH):
                await log.append(Append(stream=event.stream, drafts=[next(drafts) for _ in range(BATCH)]))
                await asyncio.sleep(0)
        log.sweep()  # columns are made in the background; here they are waited for
    finally:
        await log.close()


def _drafts(notifications: Notifications, event_type: str) -> Iterator[Draft]:
    """Each is different; every so many of them is one that a selective reader wants."""
    for number, identifier in enumerate(notices.identifiers(event_type, random.Random(event_type)), 1):
        if number % EVERY == 0:
            identifier |= {"class": _CLASS, "step": _STEP}
            if "polygon" in identifier:
                identifier["polygon"] = _AREA
        yield checked(notifications.schema, notices.body(event_type, identifier, number))


def _replay(server: process.Process, event_type: str, wish: dict[str, Any]) -> Replay:
    body = msgspec.json.encode({"event_type": event_type, "identifier": wish, "from_id": "1"})
    swarm = Swarm(server.host, server.port)
    try:
        began, usage = time.perf_counter(), server.usage()
        hearer = Hearer(swarm, wire.request("POST", "/api/v1/replay", body), opening=OPENING)
        if not swarm.until(lambda: hearer.ended, SECONDS_MAX):
            raise TimeoutError(f"{hearer.count} events had come after {SECONDS_MAX:.0f} s")
        took, used = time.perf_counter() - began, server.used(usage)
        return Replay(hearer.count - OPENING - CLOSING, swarm.bytes_in, took, used.ran if used else None)
    finally:
        swarm.close()


def _from_memory(bench: Bench, ours: Replay) -> Replay:
    """The bare loop repeats one block, so bytes say when everything is there."""
    blob = bench.fresh("block")
    blob.write_bytes(b"x" * (ours.bytes * BLOCK // ours.notifications - 2) + b"\n\n")
    times = ours.notifications // BLOCK
    total = times * blob.stat().st_size
    with process.bare(bench, "--blob", str(blob)) as bare:
        swarm = Swarm(bare.host, bare.port)
        try:
            began, usage = time.perf_counter(), bare.usage()
            Hearer(swarm, wire.request("GET", f"/replay/watch?times={times}"), opening=1)
            if not swarm.until(lambda: swarm.bytes_in >= total, SECONDS_MAX):
                raise TimeoutError(f"{swarm.bytes_in} bytes had come after {SECONDS_MAX:.0f} s")
            took, used = time.perf_counter() - began, bare.used(usage)
            return Replay(times * BLOCK, swarm.bytes_in, took, used.ran if used else None)
        finally:
            swarm.close()
