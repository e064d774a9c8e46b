"""Live sample data: a handful of imaginary weather stations that report to the stream `demo`, so that a first visit has
something to watch, filter and resume."""

from __future__ import annotations

import asyncio
import random

from seamark.clock import NS_PER_MS, Clock
from seamark.errors import Refused, WriteFailed
from seamark.log.protocol import Append, Log
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.match.spatial import geometry_of
from seamark.raw.model import ENCODER, PREFIX

STREAM = PREFIX + "demo"
SETTINGS = StreamSettings(cap_records=100_000)
PERIOD_SECONDS = 1.0
_STATIONS = {
    "oslo": (59.91, 10.75),
    "lisbon": (38.72, -9.14),
    "bologna": (44.49, 11.34),
    "reading": (51.45, -0.97),
    "bonn": (50.73, 7.10),
}


def observation(now_ns: int, chance: random.Random) -> Draft:
    """One report of one station."""
    station, (lat, lon) = chance.choice(sorted(_STATIONS.items()))
    body = {
        "station": station,
        "observed_ms": now_ns // NS_PER_MS,
        "temperature_c": round(chance.gauss(11, 6), 1),
        "wind_m_s": round(chance.expovariate(1 / 5), 1),
        "severity": chance.choice([1, 1, 1, 2, 2, 3, 4, 5]),
    }
    south, north, west, east = lat - 0.5, lat + 0.5, lon - 0.5, lon + 0.5
    ring = f"{south:.2f},{west:.2f},{south:.2f},{east:.2f},{north:.2f},{east:.2f},{north:.2f},{west:.2f},{south:.2f},{west:.2f}"
    return Draft(
        payload=ENCODER.encode(body),
        node="demo",
        tag=f"station-{station}",
        subject=("observation", station, str(body["severity"])),
        geometry=geometry_of(ring),
    )


async def feed(log: Log, clock: Clock, chance: random.Random) -> None:
    """Report for ever. A store that takes no writes now is asked again later."""
    await log.configure(STREAM, SETTINGS)
    while True:
        try:
            await log.append(Append(stream=STREAM, drafts=[observation(clock.now_ns(), chance)], create=SETTINGS))
        except (Refused, WriteFailed):
            pass
        await asyncio.sleep(PERIOD_SECONDS)
