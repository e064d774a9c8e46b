"""The same routes under servers that are not ours: uvicorn's stock protocol, and Hypercorn."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import uvicorn
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config as HypercornConfig
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route as StarletteRoute

from seamark.clock import SystemClock
from seamark.http.asgi import ASGIApp, Message, build_asgi
from seamark.http.front import Front
from seamark.http.health import Readiness, health_routes
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Metrics
from tests.http.rig import BODY_MAX, Client, Routes, authenticate, code, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Foreign:
    """The route table behind somebody else's server, in a thread."""

    def __init__(self, kind: str) -> None:
        self.routes = Routes()
        self.lives: list[str] = []
        self.error: BaseException | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run = {"uvicorn": self._uvicorn, "hypercorn": self._hypercorn}[kind]
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()
        self._await()

    def app(self) -> ASGIApp:
        readiness = Readiness()
        metrics = Metrics()

        @asynccontextmanager
        async def lifespan() -> AsyncIterator[None]:
            readiness.started()
            self.lives.append("up")
            yield
            self.lives.append("down")

        rows = [*self.routes.rows(), *health_routes(readiness, metrics=metrics, clock=SystemClock())]
        front = Front(rows, authenticate=authenticate, metrics=metrics)
        page = StarletteRoute("/page", lambda request: PlainTextResponse("static"))
        return build_asgi(front, fallback=Starlette(routes=[page]), lifespan=lifespan)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(15)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def call(self, function: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(function)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self.error = error

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self._run()

    async def _uvicorn(self) -> None:
        config = uvicorn.Config(
            self.app(), port=self.port, http="httptools", ws="none", log_config=None, access_log=False, lifespan="on"
        )
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        await self._stop.wait()
        server.should_exit = True
        await serving

    async def _hypercorn(self) -> None:
        config = HypercornConfig()
        config.bind = [f"127.0.0.1:{self.port}"]
        config.accesslog = config.errorlog = None
        config.graceful_timeout = 1
        await hypercorn_serve(self.app(), config, shutdown_trigger=self._stop.wait)  # type: ignore[arg-type]

    def _await(self) -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < deadline
                assert self.error is None, self.error
                time.sleep(0.02)
            else:
                return


@pytest.fixture(scope="module", params=["uvicorn", "hypercorn"])
def foreign(request: pytest.FixtureRequest) -> Iterator[Foreign]:
    running = Foreign(request.param)
    yield running
    running.stop()
    assert running.lives == ["up", "down"]


@pytest.fixture
def client(foreign: Foreign) -> Iterator[Client]:
    with Client(foreign.port) as client:
        yield client


PREFIXES = pytest.mark.parametrize("prefix", ["/hot", "/cold"])


@PREFIXES
def test_requests_arrive_as_on_the_plane(client: Client, prefix: str) -> None:
    answer = client.get(f"{prefix}/echo/a%20b%2Fc?x=%20y", "X-Thing: one", "Authorization: me", "X-Request-ID: mine")
    assert msgspec.json.decode(answer.body) == {
        "method": "GET",
        "path": f"{prefix}/echo/a b/c",
        "params": {"name": "a b/c"},
        "query": "x=%20y",
        "x": "one",
        "who": "me",
        "request_id": answer.headers["x-request-id"],
    }
    assert answer.headers["date"]


@PREFIXES
def test_bodies_and_their_bound(foreign: Foreign, client: Client, prefix: str) -> None:
    assert msgspec.json.decode(client.post(f"{prefix}/body", b"x" * BODY_MAX).body)["bytes"] == BODY_MAX
    client.send(request("POST", f"{prefix}/body", "Transfer-Encoding: chunked"), b"3\r\nabc\r\n0\r\n\r\n")
    assert msgspec.json.decode(client.answer().body)["bytes"] == 3
    with Client(foreign.port) as other:
        answer = other.post(f"{prefix}/body", b"x" * (BODY_MAX + 1))
        assert (answer.status, code(answer)) == (413, "body_too_large")


@PREFIXES
def test_answers_later_from_coroutines_and_of_every_kind(client: Client, prefix: str) -> None:
    assert client.post(f"{prefix}/later?5", b"x").body == b"5:x"
    assert client.post(f"{prefix}/coroutine?5", b"y").body == b"y"
    assert client.get(f"{prefix}/nothing").status == 204
    answer = client.get(f"{prefix}/big?500", method="HEAD")
    assert (answer.status, answer.headers["content-length"]) == (200, "500")
    assert client.get(f"{prefix}/tail/a/b").status == 200


@PREFIXES
def test_errors_look_as_on_the_plane(client: Client, prefix: str) -> None:
    for path, status, expected in (
        ("missing", 404, "stream_not_found"),
        ("boom", 500, "internal"),
        ("busy", 429, "busy"),
        ("unknown", 404, "route_not_found"),
    ):
        answer = client.get(f"{prefix}/{path}")
        assert (answer.status, code(answer)) == (status, expected)
        assert b"secret" not in answer.body
    answer = client.post(f"{prefix}/coroutine", b"boom")
    assert (answer.status, code(answer)) == (500, "internal")
    answer = client.get(f"{prefix}/echo/a", "Authorization: bad")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    answer = client.get(f"{prefix}/body")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    assert client.get(f"{prefix}/body", method="OPTIONS").status == 204


@PREFIXES
def test_streams_end_with_their_last_block(foreign: Foreign, client: Client, prefix: str) -> None:
    client.send(request("GET", f"{prefix}/stream"))
    assert client.head().headers["content-type"] == "text/event-stream"
    assert client.chunk() == b": hello\n\n"
    owner = foreign.routes.owners[-1]
    foreign.call(lambda: owner.pipe.write(Block(b"data: 1\n\n")))
    assert client.chunk() == b"data: 1\n\n"
    foreign.call(lambda: owner.pipe.close(Block(b"event: bye\n\n")))
    assert client.chunks() == b"event: bye\n\n"
    until(lambda: owner.said == ["gone"])


@PREFIXES
def test_a_stream_hears_that_its_client_left(foreign: Foreign, prefix: str) -> None:
    with Client(foreign.port) as client:
        client.send(request("GET", f"{prefix}/stream"))
        assert client.head().status == 200
        assert client.chunk() == b": hello\n\n"
        owner = foreign.routes.owners[-1]
    until(lambda: owner.said == ["gone"])


def test_health_and_the_fallback(client: Client) -> None:
    assert client.get("/ready").status == 200
    assert b"seamark_http_requests_total" in client.get("/metrics").body
    page = client.get("/page")
    assert (page.status, page.body) == (200, b"static")
    assert len(page.headers["x-request-id"]) == 36
    assert client.get("/no-page").status == 404


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- without any server
async def drive(app: ASGIApp, scope: dict[str, Any], *messages: Message) -> list[Message]:
    waiting = list(messages)
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def front() -> Front:
    return Front(Routes().rows(), authenticate=authenticate, metrics=Metrics())


async def test_a_failing_start_is_reported_to_the_server() -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        raise RuntimeError("no disk")
        yield

    sent = await drive(build_asgi(front(), lifespan=lifespan), {"type": "lifespan"}, {"type": "lifespan.startup"})
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]


async def test_websockets_are_declined() -> None:
    sent = await drive(build_asgi(front()), {"type": "websocket"}, {"type": "websocket.connect"})
    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_a_client_that_leaves_during_its_body_is_not_answered() -> None:
    scope = {"type": "http", "method": "POST", "path": "/hot/body", "headers": []}
    assert await drive(build_asgi(front()), scope, {"type": "http.disconnect"}) == []


async def test_a_server_without_raw_path_and_with_a_mount_is_served() -> None:
    scope = {"type": "http", "method": "GET", "path": "/m/hot/echo/a b", "root_path": "/m", "headers": []}
    sent = await drive(build_asgi(front()), scope, {"type": "http.request"})
    assert sent[0]["status"] == 200
    assert msgspec.json.decode(sent[1]["body"])["params"] == {"name": "a b"}
