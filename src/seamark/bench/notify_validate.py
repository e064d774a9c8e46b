"""Checking a notification: from the bytes of its request to what the log is given, inside the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from seamark.bench import notices
from seamark.bench.bench import Bench
from seamark.bench.row import Row, against, aim
from seamark.bench.sample import median
from seamark.log.record import Draft
from seamark.notify.eventtype import Schema
from seamark.notify.request import parse
from seamark.notify.validate import check_notification, notification

T = TypeVar("T")

SCENARIO = "checking notifications"
REFERENCE = "the same requests, only decoded"
UNIT = "us of CPU"
BODIES = 4_096
BODIES_QUICK = 256
US_AIM = 15.0


def run(bench: Bench) -> list[Row]:
    """Seven values, and six values with a polygon that nobody has seen before."""
    count, rounds = (BODIES_QUICK, 3) if bench.quick else (BODIES, 15)
    schema = notices.options().schema
    rows = []
    for event_type, fields in ((notices.VALUES, "seven values"), (notices.PLACES, "six values and a polygon")):
        bodies = notices.bodies(event_type, count)
        value, reference = beside(lambda body: checked(schema, body), msgspec.json.decode, bodies, rounds)
        row = Row(scenario=SCENARIO, parameters={"fields": fields, "bytes": len(bodies[0])}, value=value, unit=UNIT)
        rows.append(aim(against(row, REFERENCE, reference), f"<= {US_AIM:g}", value <= US_AIM))
    return rows


def checked(schema: Schema, body: bytes) -> Draft:
    """All that is done for a notification before it is submitted."""
    request = parse(body)
    event = schema.find(request.event_type)
    check_notification(request)
    assert event is not None
    return notification(event, request)


def beside(
    ours: Callable[[T], object], theirs: Callable[[T], object], bodies: Sequence[T], rounds: int
) -> tuple[float, float]:
    """Microseconds of CPU for one of each, medians of rounds that take turns."""
    found: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for work, times in zip((theirs, ours), (found[1], found[0]), strict=True):
            began = time.process_time()
            for body in bodies:
                work(body)
            times.append((time.process_time() - began) / len(bodies) * 1e6)
    return median(found[0]), median(found[1])
