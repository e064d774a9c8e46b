"""Notifications as the benchmarks send them: two event types of seven fields each, what is published, and the file of a server
that takes it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from seamark.bench import match_scenario, wire
from seamark.bench.bench import Bench
from seamark.limits import SEQ_MAX
from seamark.notify.options import NotifySettings
from seamark.notify.schema import read_schema

VALUES = "values"  # seven values, one of each handler
PLACES = "places"  # six values and a polygon
PUBLISH = "/api/v1/notification"
STEPS = 100_000
RECORD_DEGREES = match_scenario.RECORD_DEGREES
_REGIONS = ["north", "east", "south", "west", "tropics", "arctic"]
_CALM = 3_600  # seconds; nothing but notifications is to be counted
_FIELDS: dict[str, dict[str, Any]] = {
    "class": {"type": "StringHandler", "max_length": 8, "required": False},
    "expver": {"type": "ExpverHandler", "default": "0001", "required": False},
    "date": {"type": "DateHandler", "canonical_format": "%Y%m%d", "required": False},
    "time": {"type": "TimeHandler", "required": False},
    "step": {"type": "IntHandler", "range": [0, STEPS], "required": False},
    "region": {"type": "EnumHandler", "values": _REGIONS, "required": False},
}
_LEVEL = {"level": {"type": "FloatHandler", "range": [0.0, 2_000.0], "required": False}}
_POLYGON = {"polygon": {"type": "PolygonHandler", "required": False}}
SCHEMA: dict[str, Any] = {
    VALUES: {
        "topic": {"base": VALUES, "key_order": [*_FIELDS, "level"]},
        "identifier": _FIELDS | _LEVEL,
        "payload": {"required": True},
    },
    PLACES: {
        "topic": {"base": PLACES, "key_order": list(_FIELDS)},
        "identifier": _FIELDS | _POLYGON,
        "payload": {"required": True},
    },
}


def options() -> NotifySettings:
    """The settings of a server of these event types, for what runs inside the process."""
    return NotifySettings(schema=read_schema(SCHEMA))


def file(bench: Bench) -> Path:
    """The same as a file: JSON is YAML. A replay may be as long as it likes."""
    path = bench.fresh("notify").with_suffix(".yaml")
    content = {
        "application": {"host": "127.0.0.1", "port": 8000},
        "watch_endpoint": {
            "sse_heartbeat_interval_sec": _CALM,
            "replay_batch_delay_ms": 0,
            "max_historical_notifications": SEQ_MAX,
        },
        "notification_schema": SCHEMA,
    }
    path.write_bytes(msgspec.json.encode(content))
    return path


def identifiers(event_type: str, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Identifiers without end, in the forms in which clients write them."""
    while True:
        found: dict[str, Any] = {
            "class": rng.choice(("od", "rd", "ea", "mc")),
            "expver": str(rng.randrange(1, 100)),
            "date": f"2025{rng.randrange(1, 13):02d}{rng.randrange(1, 29):02d}",
            "time": rng.choice(("00", "0600", "12:00", "1800")),
            "step": rng.randrange(STEPS),
            "region": rng.choice(_REGIONS),
        }
        if event_type == PLACES:
            found["polygon"] = match_scenario.ring(rng, RECORD_DEGREES)
        else:
            found["level"] = rng.randrange(2_000) / 2
        yield found


def body(event_type: str, identifier: dict[str, Any], stamp: int = 0) -> bytes:
    """What is posted to publish one."""
    payload = msgspec.Raw(wire.payload(stamp))
    return msgspec.json.encode({"event_type": event_type, "identifier": identifier, "payload": payload})


def bodies(event_type: str, count: int) -> list[bytes]:
    """Different ones, always the same."""
    found = identifiers(event_type, random.Random(count))
    return [body(event_type, next(found)) for _ in range(count)]
