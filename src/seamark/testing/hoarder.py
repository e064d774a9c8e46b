"""A writer made to run out of disk. `python -m seamark.testing.hoarder PATH` fills an embedded store and says on
standard output what was acknowledged and what was refused; while it is refused it goes on reading, and once it could
write again for a while it closes the store and ends."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from seamark.clock import SystemClock
from seamark.errors import WriteFailed
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log, Receipt
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.telemetry import logs
from seamark.telemetry.metrics import Metrics
from seamark.testing.reading import read_all

STREAMS = {"fsync": StreamSettings(), "disk": StreamSettings(durability=Durability.DISK)}
PAYLOAD_BYTES = 3_000
ROUNDS_AFTER = 20  # good rounds after the first refusal before it is content
PAUSE_SECONDS = 0.05


class Attempt(msgspec.Struct, frozen=True):
    """One append and what became of it. `read` is how many records could be read afterwards."""

    stream: str
    number: int
    acknowledged: bool
    first: int
    last: int
    read: int

    def payload(self, index: int) -> bytes:
        return payload(self.stream, self.number, index)


def payload(stream: str, number: int, index: int) -> bytes:
    return f"{stream}/{number}/{index}|".encode().ljust(PAYLOAD_BYTES, b".")


async def hoard(log: Log) -> None:
    for name, settings in STREAMS.items():
        await log.configure(name, settings)
    number = good = 0
    refused = False
    while good < ROUNDS_AFTER:
        for name in STREAMS:
            number += 1
            drafts = [Draft(payload(name, number, index)) for index in range(number % 4 + 1)]
            receipt: Receipt | None = None
            try:
                receipt = await log.append(Append(stream=name, drafts=drafts))
            except WriteFailed:
                refused, good = True, 0
                await asyncio.sleep(PAUSE_SECONDS)
            read = len((await read_all(log, name)).records)
            first, last = (receipt.first, receipt.last) if receipt else (0, 0)
            say(Attempt(name, number, receipt is not None, first, last, read))
        good += refused


def say(attempt: Attempt) -> None:
    os.write(sys.stdout.fileno(), msgspec.json.encode(attempt) + b"\n")


async def _main(path: str) -> None:
    logs.configure(level="warning", style="json")  # to stderr: standard output belongs to the ledger
    log = open_embedded(Path(path), SystemClock(), Metrics())
    await hoard(log)
    await log.close()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
