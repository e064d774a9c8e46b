"""A writer made to be killed. `python -m seamark.testing.scribe PATH LIFE SEED` writes to an embedded store for ever;
on standard output it says what it is about to do and what was acknowledged, one JSON line each, unbuffered, so that
whoever kills it knows exactly what had been promised. Appends to retry come in as one JSON line."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log, Put, Receipt, Selector, TagMatch
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.telemetry import logs
from seamark.telemetry.metrics import Metrics

CAP_RECORDS = 60
PLACES = 5  # subjects of the stream that keeps the newest of each
SPACE = "scribe"  # where every append to "plain" also leaves its number, with the same commit
STREAMS = {
    "plain": StreamSettings(),
    "keyed": StreamSettings(dedupe_window_ms=3_600_000),
    "disk": StreamSettings(durability=Durability.DISK),
    "memory": StreamSettings(durability=Durability.MEMORY),
    "deleted": StreamSettings(),
    "latest": StreamSettings(latest_per_subject=1),
    "capped": StreamSettings(cap_records=CAP_RECORDS),
}


class Intent(msgspec.Struct, tag="intent", frozen=True):
    """What is about to be done: an append of `count` records, or a deletion of those with a tag."""

    op: str  # unique over all lives
    stream: str
    count: int = 0
    delete_tag: str | None = None

    def payload(self, index: int) -> bytes:
        """Any reader can tell from the bytes what wrote them."""
        return f"{self.op}/{index}|".encode() + b"." * (zlib.crc32(self.op.encode()) % 700)

    def tag(self, index: int) -> str | None:
        return f"t{index % 3}" if self.stream == "deleted" else None

    def subject(self, index: int) -> tuple[str, ...] | None:
        return (f"p{zlib.crc32(self.payload(index)) % PLACES}",) if self.stream == "latest" else None

    def append(self) -> Append:
        drafts = [Draft(self.payload(n), tag=self.tag(n), subject=self.subject(n)) for n in range(self.count)]
        puts = [Put(SPACE, b"plain", self.payload(self.count - 1))] if self.stream == "plain" else []
        key = self.op if self.stream == "keyed" else None
        return Append(stream=self.stream, drafts=drafts, key=key, puts=puts)


class Ack(msgspec.Struct, tag="ack", frozen=True):
    """It was acknowledged."""

    op: str
    first: int = 0
    last: int = 0


Line = Intent | Ack
decode_line = msgspec.json.Decoder(Line).decode
decode_intents = msgspec.json.Decoder(list[Intent]).decode
encode = msgspec.json.encode


class Scribe:
    """One life of the writer."""

    def __init__(self, log: Log, life: str, seed: int) -> None:
        self._log = log
        self._life = life
        self._random = random.Random(seed)
        self._ops = 0

    async def live(self, retries: Sequence[Intent]) -> None:
        for name, settings in STREAMS.items():
            await self._log.configure(name, settings)
        for intent in retries:
            await self._append(intent)
        async with asyncio.TaskGroup() as writers:
            for name in STREAMS:
                for _ in range(2):
                    writers.create_task(self._write(name))

    async def _write(self, stream: str) -> None:
        while True:
            if stream == "deleted" and self._random.random() < 0.2:
                await self._delete(Intent(self._next_op(), stream, delete_tag=f"t{self._random.randrange(3)}"))
            else:
                count = self._random.choice([1, 1, 1, 2, 5, 40, 300])
                await self._append(Intent(self._next_op(), stream, count))
            await asyncio.sleep(self._random.choice([0, 0, 0.001]))

    async def _append(self, intent: Intent) -> None:
        say(intent)
        receipt: Receipt = await self._log.append(intent.append())
        say(Ack(intent.op, receipt.first, receipt.last))

    async def _delete(self, intent: Intent) -> None:
        say(intent)
        assert intent.delete_tag is not None
        await self._log.delete(intent.stream, Selector(tag=TagMatch(intent.delete_tag)))
        say(Ack(intent.op))

    def _next_op(self) -> str:
        self._ops += 1
        return f"{self._life}.{self._ops}"


def say(line: Line) -> None:
    """One write of one line: shorter than a pipe's atomic size, so a kill cannot tear it."""
    os.write(sys.stdout.fileno(), encode(line) + b"\n")


async def _main(path: str, life: str, seed: str) -> None:
    retries = decode_intents(sys.stdin.buffer.readline())
    logs.configure(level="warning", style="json")  # to stderr: standard output belongs to the ledger
    log = open_embedded(Path(path), SystemClock(), Metrics())
    await Scribe(log, life, int(seed)).live(retries)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
