"""The notify surface of a whole server in this process, behind real sockets, with a clock that moves only when told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
from hypercorn.asyncio import serve
from hypercorn.config import Config as HypercornConfig
from uvicorn.config import Config
from uvicorn.server import ServerState

from seamark import config
from seamark.clock import ManualClock
from seamark.http.app import Assembly
from seamark.http.asgi import build_asgi
from seamark.http.plane import Plane
from seamark.log.protocol import Log
from seamark.notify.options import NotifySettings
from seamark.notify.schema import read_schema
from tests.notify.example import SCHEMA

ServerKind = Literal["ours", "hypercorn"]
SEVEN = {"class": "od", "expver": "1", "step": 1, "level": 1, "region": "north"}
POLYGON = "(52.5,13.4,52.6,13.5,52.5,13.6,52.4,13.5,52.5,13.4)"


PLACE_BODY = {
    "event_type": "test_polygon",
    "identifier": {"date": "20250706", "time": "1200", "polygon": POLYGON},
}


class NotifyRig:
    """Use `running` to make one. `data`: its log is on disk, else in memory."""

    def __init__(
        self,
        options: NotifySettings,
        *,
        data: Path | None = None,
        environment: Mapping[str, str] | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        flags = {"engine": "memory"} if data is None else {"engine": "embedded", "data": str(data)}
        settings = config.load(flags, environ=environment or {}, directory=Path(__file__).parent)
        self.assembly = Assembly(settings, clock=self.clock, notify=options)
        self.assembly.readiness.started()
        self.plane = Plane(self.assembly.front)
        self.client: httpx.AsyncClient

    @property
    def log(self) -> Log:
        return self.assembly.log

    # -- what a client asks

    async def notify(self, event_type: str = "test_polygon", *, payload: object = None, **identifier: object) -> Any:
        """Publish one, which must be taken; a polygon event at noon unless something else is said."""
        if event_type == "test_polygon":
            identifier = {"date": "20250706", "time": "1200", "polygon": POLYGON, **identifier}
        body = {"event_type": event_type, "identifier": identifier, "payload": payload}
        answer = await self.client.post("/api/v1/notification", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ask(self, path: str, body: object) -> httpx.Response:
        """The whole answer, of an error or of a stream that ends."""
        if isinstance(body, bytes):
            return await self.client.post(f"/api/v1/{path}", content=body)
        return await self.client.post(f"/api/v1/{path}", json=body)

    async def replay(self, event_type: str = "test_polygon", **more: Any) -> Said:
        """All that a replay says."""
        identifier = more.pop("identifier", {"time": "1200", "polygon": POLYGON})
        answer = await self.ask("replay", {"event_type": event_type, "identifier": identifier, **more})
        assert answer.status_code == 200, answer.text
        return Said(answer.headers["x-request-id"], answer.content)

    @asynccontextmanager
    async def watch(self, event_type: str = "test_polygon", **more: Any) -> AsyncIterator[Watching]:
        identifier = more.pop("identifier", {"time": "1200", "polygon": POLYGON})
        body = {"event_type": event_type, "identifier": identifier, **more}
        async with self.client.stream("POST", "/api/v1/watch", json=body) as response:
            assert response.status_code == 200, await response.aread()
            yield Watching(response)

    # -- what happens

    def pass_time(self, seconds: float) -> None:
        """Time goes by; what is due happens."""
        self.clock.advance(seconds)
        self.plane.now = self.clock.monotonic()  # else a connection made before its next round would seem to be old
        self.assembly.wheel.advance()


class Said:
    """Everything one stream said. `text` has `<id>` in the place of its request id."""

    def __init__(self, request_id: str, raw: bytes) -> None:
        self.request_id = request_id
        self.raw = raw

    @property
    def text(self) -> str:
        return self.raw.decode().replace(self.request_id, "<id>")

    @property
    def frames(self) -> list[tuple[str, str]]:
        """Event names with their data; other lines are not allowed."""
        frames = []
        for block in self.text.split("\n\n")[:-1]:
            name, data = block.split("\n")
            assert name.startswith("event: ")
            assert data.startswith("data: ")
            frames.append((name.removeprefix("event: "), data.removeprefix("data: ")))
        return frames

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.frames]


class Watching(Said):
    """A stream that is being read."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.headers["x-request-id"], b"")
        self.response = response
        self._chunks = response.aiter_raw()

    async def until(self, text: str, count: int = 1) -> Watching:
        """Read on until this was said so often."""
        async with asyncio.timeout(10):
            while self.raw.count(text.encode()) < count:
                self.raw += await anext(self._chunks)
        return self

    async def to_the_end(self) -> Watching:
        async with asyncio.timeout(10):
            async for chunk in self._chunks:
                self.raw += chunk
        return self


def options(schema: object = SCHEMA, *, strict: bool | None = None, **more: Any) -> NotifySettings:
    return NotifySettings(schema=read_schema(schema, strict=strict), **more)


@asynccontextmanager
async def running(
    settings: NotifySettings | None = None,
    *,
    kind: ServerKind = "ours",
    data: Path | None = None,
    environment: Mapping[str, str] | None = None,
    clock: ManualClock | None = None,
) -> AsyncIterator[NotifyRig]:
    """A rig whose server listens, on our data plane or as plain ASGI."""
    rig = NotifyRig(settings or options(), data=data, environment=environment, clock=clock)
    await asyncio.sleep(0)  # the streams of the schema are made
    served = _ours(rig) if kind == "ours" else _hypercorn(rig)
    async with served as base_url, httpx.AsyncClient(base_url=base_url, timeout=10) as rig.client:
        try:
            yield rig
        finally:
            await rig.assembly.drain()
    await rig.assembly.close()


@asynccontextmanager
async def _ours(rig: NotifyRig) -> AsyncIterator[str]:
    served = Config(build_asgi(rig.assembly.front), log_config=None, ws="none", server_header=False, lifespan="off")
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: rig.plane.protocol(served, state, {}), "127.0.0.1", 0
    )
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        rig.plane.drain()
        rig.plane.cut()
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _hypercorn(rig: NotifyRig) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    served = HypercornConfig()
    served.bind = [f"fd://{listener.fileno()}"]
    served.accesslog = served.errorlog = None
    served.graceful_timeout = 1
    ended = asyncio.Event()
    app = build_asgi(rig.assembly.front)
    serving = asyncio.create_task(serve(app, served, shutdown_trigger=ended.wait))  # type: ignore[arg-type]
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        await serving
        listener.detach()  # hypercorn has closed it
