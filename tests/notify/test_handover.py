"""From history to live under load: a real server takes a thousand notifications a second while watchers come at random moments, from
random places, with different filters. Each is told every notification that it wants, once and in order."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from seamark.testing.server import ServerProcess

SEED = 20260
SECONDS = 7
RATE = 1_000
PUBLISHERS = 16
WATCHERS = 50
CUT_AFTER_MAX = 100  # notifications, for watchers that break off
PATIENCE_SECONDS = 60  # it takes nine on a machine that has nothing else to do
WORDS = ("od", "rd", "ea")
CELLS = 12  # notifications lie in squares of a grid, so that it is plain to see which of them touch

EVENT = re.compile(r'event: (replay|live-notification)\ndata: ({"data":.*})')
SCHEMA = {
    "thing": {
        "topic": {"base": "thing", "key_order": ["word", "step", "side"]},
        "identifier": {
            "word": {"type": "StringHandler", "required": False},
            "step": {"type": "IntHandler", "range": [0, 99], "required": False},
            "side": {"type": "EnumHandler", "values": ["north", "south"], "required": False},
            "polygon": {"type": "PolygonHandler", "required": False},
        },
        "payload": {"required": True},
    }
}


@dataclass(frozen=True)
class Thing:
    """One notification, in the plain form that decides who wants it."""

    number: int
    word: str
    step: int
    side: str
    lat: int  # the square's lower corner
    lon: int

    def request(self) -> dict[str, Any]:
        identifier = {"word": self.word, "step": self.step, "side": self.side, "polygon": square(self.lat, self.lon, 1)}
        return {"event_type": "thing", "identifier": identifier, "payload": self.number}


def square(lat: int, lon: int, size: int) -> str:
    return f"({lat},{lon},{lat},{lon + size},{lat + size},{lon + size},{lat + size},{lon},{lat},{lon})"


def things(chance: random.Random) -> Iterator[Thing]:
    for number in range(RATE * SECONDS):
        lat, lon = chance.randrange(CELLS), chance.randrange(CELLS)
        yield Thing(number, chance.choice(WORDS), chance.randrange(100), chance.choice(("north", "south")), lat, lon)


Wish = tuple[dict[str, Any], Callable[[Thing], bool]]


def wish(chance: random.Random) -> Wish:
    """What a watcher asks for, and who that is."""
    low, word, side = chance.randrange(60), chance.choice(WORDS), chance.choice(("north", "south"))
    lat, lon = chance.randrange(CELLS), chance.randrange(CELLS)
    few = [chance.randrange(100) for _ in range(8)]
    wishes: list[Wish] = [
        ({}, lambda thing: True),
        ({"word": word}, lambda thing: thing.word == word),
        ({"step": {"between": [low, low + 30]}}, lambda thing: low <= thing.step <= low + 30),
        ({"step": {"in": few}, "side": {"eq": side.upper()}}, lambda thing: thing.step in few and thing.side == side),
        ({"word": word, "step": {"gte": low}}, lambda thing: thing.word == word and thing.step >= low),
        ({"polygon": square(lat, lon, 3)}, lambda thing: touches(thing, lat, lon, 3)),
        (
            {"side": side, "polygon": square(lat, lon, 5)},
            lambda thing: thing.side == side and touches(thing, lat, lon, 5),
        ),
        ({"point": f"{lat + 0.5},{lon + 0.25}"}, lambda thing: (thing.lat, thing.lon) == (lat, lon)),
    ]
    return chance.choice(wishes)


def touches(thing: Thing, lat: int, lon: int, size: int) -> bool:
    """Squares that share an edge or a corner touch."""
    return lat - 1 <= thing.lat <= lat + size and lon - 1 <= thing.lon <= lon + size


# -- plain HTTP over sockets: a client library could not send as much


def head(path: str, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body))


class Publisher:
    """Everything in order, each at its time."""

    def __init__(self, address: tuple[str, int], queue: Iterator[Thing]) -> None:
        self._address = address
        self._queue = queue
        self._start = asyncio.get_running_loop().time()
        self.answered = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(PUBLISHERS):
                group.create_task(self._one())

    async def _one(self) -> None:
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection(*self._address)
        for thing in self._queue:
            await asyncio.sleep(max(0.0, self._start + thing.number / RATE - loop.time()))
            body = json.dumps(thing.request()).encode()
            writer.write(head("/api/v1/notification", body) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            found = re.search(rb"(?i)content-length: (\d+)", answer)
            assert found
            await reader.readexactly(int(found[1]))
            self.answered += 1
        writer.close()


@dataclass
class Watcher:
    """One watch. After `cut` notifications it breaks off, and goes on behind the last that it has seen; 0: it does not."""

    address: tuple[str, int]
    identifier: dict[str, Any]
    wants: Callable[[Thing], bool]
    start: int
    cut: int
    seen: list[tuple[int, str, int]] = field(default_factory=list)  # sequence, event, payload
    starts: list[int] = field(default_factory=list)  # how many were seen when a connection began
    last: str = ""
    text: str = ""

    async def run(self) -> None:
        if await self._connection(self.start, until=self.cut):
            await self._connection(self.seen[-1][0] + 1, until=0)

    async def _connection(self, place: int, *, until: int) -> bool:
        """Whether it was broken off."""
        self.starts.append(len(self.seen))
        self.text = ""
        body = json.dumps({"event_type": "thing", "identifier": self.identifier, "from_id": str(place)}).encode()
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(head("/api/v1/watch", body) + body)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        while size := int(await reader.readline(), 16):
            self.text += (await reader.readexactly(size)).decode()
            await reader.readexactly(2)
            self._take()
            if 0 < until <= len(self.seen):
                break
        writer.close()
        return size > 0

    def _take(self) -> None:
        *whole, self.text = self.text.split("\n\n")
        for block in whole:
            self.last = block
            found = EVENT.fullmatch(block)
            if found is not None:
                event = json.loads(found[2])
                assert event["id"] == f"thing@{event['sequence']}"
                self.seen.append((event["sequence"], found[1], event["data"]["payload"]))


async def replayed(address: tuple[str, int]) -> dict[int, int]:
    """All that is stored: payloads by sequence."""
    everything = Watcher(address, {}, lambda thing: True, 1, cut=0)
    body = json.dumps({"event_type": "thing", "identifier": {}, "from_id": "1"}).encode()
    reader, writer = await asyncio.open_connection(*address)
    writer.write(head("/api/v1/replay", body) + body)
    await reader.readuntil(b"\r\n\r\n")
    while size := int(await reader.readline(), 16):
        everything.text += (await reader.readexactly(size)).decode()
        await reader.readexactly(2)
        everything._take()
    writer.close()
    return {sequence: payload for sequence, _, payload in everything.seen}


async def proof(server: ServerProcess) -> tuple[dict[int, int], list[Thing], list[Watcher]]:
    chance = random.Random(SEED)
    sent = list(things(chance))
    publisher = Publisher(server.address, iter(sent))
    publishing = asyncio.create_task(publisher.run())
    watchers: list[Watcher] = []
    watching: list[asyncio.Task[None]] = []
    for number in range(WATCHERS):
        await asyncio.sleep(chance.random() * 2 * SECONDS * 0.9 / WATCHERS)
        identifier, wants = wish(chance)
        # What was answered is stored, so no place is beyond the end.
        start = chance.randrange(publisher.answered + 2) if number % 5 else publisher.answered + 1
        cut = 0 if number % 3 else chance.randrange(1, CUT_AFTER_MAX)
        watchers.append(Watcher(server.address, identifier, wants, start, cut))
        watching.append(asyncio.create_task(watchers[-1].run()))
    await publishing
    stored = await replayed(server.address)
    due = [
        max((seq for seq, number in stored.items() if watcher.wants(sent[number])), default=0) for watcher in watchers
    ]
    while any(
        last and (not watcher.seen or watcher.seen[-1][0] < last) for watcher, last in zip(watchers, due, strict=True)
    ):
        failed = [task for task in watching if task.done()]
        assert not failed, failed
        await asyncio.sleep(0.05)
    assert await asyncio.to_thread(server.stop) == 0
    await asyncio.gather(*watching)
    return stored, sent, watchers


@pytest.mark.slow
def test_the_switch_to_live_under_load_neither_loses_nor_repeats(tmp_path: Path) -> None:
    config = tmp_path / "notify.yaml"
    endpoint = {"max_historical_notifications": 10 * RATE * SECONDS, "replay_batch_delay_ms": 0}
    config.write_text(yaml.safe_dump({"notification_schema": SCHEMA, "watch_endpoint": endpoint}))
    with ServerProcess(tmp_path, "--config", str(config)) as server:
        stored, sent, watchers = asyncio.run(asyncio.wait_for(proof(server), PATIENCE_SECONDS))
    assert list(stored) == list(range(1, len(sent) + 1))
    assert sorted(stored.values()) == [thing.number for thing in sent]
    crossed = 0
    for watcher in watchers:
        wanted = [
            (seq, number) for seq, number in stored.items() if seq >= watcher.start and watcher.wants(sent[number])
        ]
        assert [(sequence, payload) for sequence, _, payload in watcher.seen] == wanted
        for begin, end in zip(watcher.starts, [*watcher.starts[1:], None], strict=True):
            events = [event for _, event, _ in watcher.seen[begin:end]]
            assert events == sorted(events, reverse=True), "what is history comes first"
            crossed += len(set(events)) == 2
        assert '"reason":"server_shutdown"' in watcher.last
    assert crossed > WATCHERS // 2, "the test must be about the switch"
