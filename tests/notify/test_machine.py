"""Random lives of a notify server against the naive model (`model.py`): whatever is published, taken out, forgotten with age or replaced,
whenever the server stops and starts again, every watch and every replay says exactly what the model says, byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.log.local import LocalLog
from seamark.notify.options import NotifySettings
from seamark.notify.schema import read_schema
from tests.notify.model import SECOND, Event, Kind, Model, Span, event_text, second_text
from tests.notify.phrases import (
    BAD,
    HISTORY_MAX,
    KINDS,
    MILLISECOND,
    SCHEMA,
    Asking,
    Notice,
    some_asking,
    some_notice,
    some_span,
)
from tests.notify.rig import NotifyRig, running

T = TypeVar("T")
PATIENCE_SECONDS = 10
READERS_MAX = 4
OPTIONS = NotifySettings(schema=read_schema(SCHEMA, strict=False), history_max=HISTORY_MAX)


class Ear:
    """An open watch: what it was asked, what has come, and what the model says must have come."""

    def __init__(
        self, asking: Asking, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request_id: str
    ) -> None:
        self.asking = asking
        self.request_id = request_id
        self.expected: list[Event] = []
        self.live = True
        self.blocks: list[str] = []
        self.beats: list[dict[str, str]] = []
        self._reader = reader
        self._writer = writer
        self._text = ""
        self._task = asyncio.create_task(self._listen())

    @property
    def ended(self) -> bool:
        return self._task.done()

    @property
    def place(self) -> int | None:
        """The last sequence that was seen."""
        seen = [data["sequence"] for _, data in self.expected if "sequence" in data]
        return seen[-1] if seen else None

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def _listen(self) -> None:
        while size := int(await self._reader.readline(), 16):
            self._text += (await self._reader.readexactly(size)).decode()
            await self._reader.readexactly(2)
            *whole, self._text = self._text.split("\n\n")
            for block in whole:
                self._take(block)

    def _take(self, block: str) -> None:
        beat = "event: heartbeat\ndata: "
        if block.startswith(beat):
            self.beats.append(json.loads(block.removeprefix(beat)))
        else:
            self.blocks.append(block)


class Life:
    """Everything happens inside one loop, one thing after the other; a test of its own is about many at once. A life is about two
    event types: what happens in a stream has to do with what happened in it before."""

    def __init__(self, seed: int, *, on_disk: bool) -> None:
        self.chance = Random(seed)
        self.on_disk = on_disk
        self.kinds = self.chance.choices(KINDS, k=2)
        self.loop = asyncio.new_event_loop()
        self.place = TemporaryDirectory()
        self.clock = ManualClock()
        self.model = Model(KINDS, self.clock.now_ns())
        self.moments = [self.model.now]
        self.ears: list[Ear] = []
        self.left: list[tuple[Asking, int]] = []  # of watches that broke off: how to go on
        self._start()

    def run(self, what: Awaitable[T]) -> T:
        async def within() -> T:
            return await asyncio.wait_for(what, PATIENCE_SECONDS)

        return self.loop.run_until_complete(within())

    def end(self) -> None:
        try:
            self._stop()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
            self.place.cleanup()

    # -- notifications come and go

    def publish(self, times: int = 1) -> None:
        """More than one at once: they may share a commit, and are all the same, because nobody knows which comes first."""
        notice = some_notice(self.chance, self._kind())
        body = {"event_type": notice.kind.name, "identifier": notice.identifier, "payload": notice.payload}

        async def at_once() -> list[httpx.Response]:
            return await asyncio.gather(*(self._ask("POST", "notification", body) for _ in range(times)))

        for answer in self.run(at_once()):
            assert answer.status_code == 200, answer.text
            request_id, now = answer.headers["x-request-id"], second_text(self.model.now)
            assert answer.text == f'{{"status":"success","request_id":"{request_id}","processed_at":"{now}"}}'
            self._published(notice)

    def publish_at_once(self) -> None:
        self.publish(self.chance.randint(2, 6))

    def publish_some(self) -> None:
        for _ in range(self.chance.randint(2, 8)):
            self.publish()

    def refuse(self) -> None:
        name, wrong = self.chance.choice(BAD)
        notice = some_notice(self.chance, self.model.kinds[name])
        answer = self._post("notification", notice, identifier={**notice.identifier, **wrong}, payload=1)
        assert answer.status_code == 400
        assert answer.json()["code"] == "INVALID_NOTIFICATION_REQUEST"
        del notice.identifier[self.chance.choice(list(notice.identifier))]
        answer = self._post("notification", notice, identifier=notice.identifier, payload=1)
        assert answer.status_code == 400
        assert "missing for notify operation" in answer.json()["message"]

    def delete(self) -> None:
        kind = self._kind()
        seq = max(1, self._head(kind) - self.chance.randrange(8))
        name = self.chance.choice([kind.base, kind.name, kind.name.upper()])
        answer = self.run(self._ask("DELETE", f"admin/notification/{name}@{seq}"))
        assert answer.status_code == (200 if self.model.delete(kind, seq) else 404)

    def wipe(self) -> None:
        kind = self._kind()
        answer = self.run(self._ask("DELETE", "admin/wipe/stream", {"stream_name": kind.name}))
        assert answer.status_code == (200 if self.model.wipe(kind) else 404)

    def wipe_all(self) -> None:
        assert self.run(self._ask("DELETE", "admin/wipe/all")).status_code == 200
        for kind in KINDS:
            self.model.wipe(kind)

    def pass_time(self) -> None:
        milliseconds = self.chance.choice([1, 500, 1_000, 20_000, 40_000, 61_000])
        self.run(self._swept(milliseconds / 1_000))
        self.model.pass_time(milliseconds * MILLISECOND)
        self.moments.append(self.model.now)

    # -- readers come and go

    def replay(self) -> None:
        asking = some_asking(self.chance, self._kind())
        span, more = some_span(self.chance, self.moments, self._head(asking.kind), replay=True)
        answer = self._post("replay", asking, **more)
        assert answer.status_code == 200, answer.text
        expected, _ = self.model.told(asking.kind, asking.wish, span, answer.headers["x-request-id"], watch=False)
        assert answer.text.split("\n\n") == [*map(event_text, expected), ""]

    def watch(self) -> None:
        if len(self.ears) < READERS_MAX:
            asking = some_asking(self.chance, self._kind())
            span, more = some_span(self.chance, self.moments, self._head(asking.kind), replay=False)
            self._open(asking, span, more)

    def break_off(self) -> None:
        if self.ears:
            ear = self.ears.pop(self.chance.randrange(len(self.ears)))
            self.run(ear.leave())
            if ear.place is not None:
                self.left.append((ear.asking, ear.place))

    def go_on(self) -> None:
        """As the contract has it: from the last sequence seen, and one."""
        if self.left and len(self.ears) < READERS_MAX:
            asking, place = self.left.pop(self.chance.randrange(len(self.left)))
            self._open(asking, Span(from_id=place + 1), {"from_id": str(place + 1)})

    def start_again(self) -> None:
        if self.on_disk:
            self._stop()
            seconds = self.chance.choice([0, 0, 5])
            self.clock = ManualClock(self.model.now + seconds * SECOND)
            self._start()
            self.run(self._swept(0))
            self.model.pass_time(seconds * SECOND)
            self.moments.append(self.model.now)

    # -- what always holds

    def everybody_has_heard_what_is_said(self) -> None:
        for ear in self.ears:
            self._settle(ear)

    # -- within

    def _start(self) -> None:
        data = Path(self.place.name) if self.on_disk else None
        self._running = running(OPTIONS, data=data, clock=self.clock)
        self.rig: NotifyRig = self.run(self._running.__aenter__())

    def _stop(self) -> None:
        """Whoever watches is told, and has heard everything that was to be said before."""

        async def stop() -> None:
            await self._running.__aexit__(None, None, None)

        for ear in self.ears:
            if ear.live:
                ear.expected.append(self.model.shutdown(ear.asking.kind, ear.asking.wish, ear.request_id))
            ear.live = False
        self.run(stop())
        for ear in self.ears:
            self._settle(ear)
            self.run(ear.leave())
            if ear.place is not None:
                self.left.append((ear.asking, ear.place))
        self.ears.clear()

    def _kind(self) -> Kind:
        return self.chance.choice(self.kinds)

    def _head(self, kind: Kind) -> int:
        stream = self.model.streams.get(kind.name)
        return stream.head if stream else 0

    def _published(self, notice: Notice) -> None:
        stored = self.model.publish(notice.kind, notice.tokens, notice.where, notice.payload, told=notice.told)
        for ear in self.ears:
            asking = ear.asking
            if ear.live and asking.kind is notice.kind and self.model.wants(asking.wish, asking.kind, stored):
                ear.expected.append(("live-notification", stored.event))

    async def _swept(self, seconds: float) -> None:
        """Time goes by, and the log does what it does by itself once a second."""
        self.rig.pass_time(seconds)
        log = self.rig.log
        assert isinstance(log, LocalLog)
        log.sweep()

    def _open(self, asking: Asking, span: Span, more: dict[str, str]) -> None:
        ear = self.run(self._connect(asking, more))
        ear.expected, ear.live = self.model.told(asking.kind, asking.wish, span, ear.request_id, watch=True)
        self.ears.append(ear)

    async def _connect(self, asking: Asking, more: dict[str, str]) -> Ear:
        url = self.rig.client.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        body = json.dumps({"event_type": asking.kind.name, "identifier": asking.identifier, **more}).encode()
        writer.write(b"POST /api/v1/watch HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 200"), head
        headers = dict(line.split(": ", 1) for line in head.lower().splitlines()[1:-1])
        return Ear(asking, reader, writer, headers["x-request-id"])

    def _post(self, path: str, about: Notice | Asking, **more: Any) -> httpx.Response:
        body = {"event_type": about.kind.name, "identifier": about.identifier, **more}
        return self.run(self._ask("POST", path, body))

    async def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """On a connection of its own: one that is kept may be ended by the server as time passes, just when it is used."""
        return await self.rig.client.request(method, f"/api/v1/{path}", json=body, headers={"Connection": "close"})

    def _settle(self, ear: Ear) -> None:
        """Wait until as much was said as must be; more would show the next time."""

        async def heard() -> None:
            while len(ear.blocks) < len(ear.expected) or ear.ended == ear.live or not ear.beats:
                await asyncio.sleep(0)

        try:
            self.run(heard())
        except TimeoutError:
            pass  # the comparison says what is missing
        assert ear.blocks == [event_text(event) for event in ear.expected]
        assert ear.ended is not ear.live
        topic = self.model.topic(ear.asking.kind, ear.asking.wish)
        assert all(beat.keys() == {"timestamp", "topic"} and beat["topic"] == topic for beat in ear.beats)


STEPS: dict[Callable[[Life], None], int] = {
    Life.publish: 20,
    Life.publish_some: 8,
    Life.publish_at_once: 3,
    Life.refuse: 2,
    Life.delete: 6,
    Life.wipe: 1,
    Life.wipe_all: 1,
    Life.pass_time: 8,
    Life.replay: 25,
    Life.watch: 14,
    Life.break_off: 8,
    Life.go_on: 8,
    Life.start_again: 2,
}


def live(seed: int, *, on_disk: bool, steps: int) -> None:
    life = Life(seed, on_disk=on_disk)
    try:
        for step in life.chance.choices(list(STEPS), list(STEPS.values()), k=steps):
            step(life)
            life.everybody_has_heard_what_is_said()
    finally:
        life.end()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**64), on_disk=st.booleans())
def test_streams_say_what_the_model_says(seed: int, on_disk: bool) -> None:
    """Steps come from a seed: lists of them, as Hypothesis draws them, hardly ever get anywhere."""
    live(seed, on_disk=on_disk, steps=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_long_lives(seed: int) -> None:
    live(seed, on_disk=seed % 2 == 0, steps=500)
