"""A real server in a thread with its own loop, a few routes of every kind, and a client that speaks raw bytes."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
import uvloop

from seamark.errors import Busy, Forbidden, StreamNotFound, Unauthenticated
from seamark.http.asgi import ASGIApp, build_asgi
from seamark.http.front import Front
from seamark.http.health import Readiness, health_routes
from seamark.http.plane import Patience, Plane
from seamark.http.server import Listening, Server
from seamark.stream.pipe import Block, Pipe
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Headers, Route
from seamark.wire.problem import plain_problem

T = TypeVar("T")
BODY_MAX = 100_000
SSE = ((b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-store"))


class Someone:
    """A principal that may do anything."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def can(self, action: str) -> bool:
        return True

    def may(self, action: str, resource: str) -> bool:
        return True


def authenticate(headers: Headers, query: bytes, route: Route) -> Someone:
    """The key "bad" is nobody, "poor" may nothing, everybody else is who they say."""
    key = next((value for name, value in headers if name == b"authorization"), b"anyone")
    if key == b"bad":
        raise Unauthenticated("no such key")
    if key == b"poor":
        raise Forbidden("not for you", action=route.action)
    return Someone(key.decode())


@dataclass
class Owner:
    """Counts what a pipe tells its owner."""

    pipe: Pipe
    said: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.said.append("pause")

    def resume(self) -> None:
        self.said.append("resume")

    def gone(self) -> None:
        self.said.append("gone")


class Routes:
    """Hot ones under /hot, the same ones for the ASGI side under /cold."""

    def __init__(self) -> None:
        self.owners: list[Owner] = []
        self.seen: list[str] = []
        self.finished: list[str] = []

    def rows(self) -> list[Route]:
        rows = []
        for prefix, hot in (("/hot", True), ("/cold", False)):
            for method, path, handler in (
                ("GET", "/echo/{name}", self.echo),
                ("POST", "/body", self.body),
                ("POST", "/later", self.later),
                ("POST", "/coroutine", self.coroutine),
                ("GET", "/slow", self.later),
                ("GET", "/stream", self.stream),
                ("GET", "/stream-later", self.stream_later),
                ("GET", "/boom", self.boom),
                ("GET", "/missing", self.missing),
                ("GET", "/busy", self.busy),
                ("GET", "/big", self.big),
                ("GET", "/nothing", self.nothing),
                ("GET", "/tail/{rest:path}", self.echo),
            ):
                row = Route(method, prefix + path, handler, path, "read", plain_problem, BODY_MAX, hot)
                rows.append(row)
        return rows

    def echo(self, exchange: Exchange) -> None:
        facts = {
            "method": exchange.method,
            "path": exchange.path,
            "params": exchange.params,
            "query": exchange.query.decode(),
            "x": (exchange.header(b"x-thing") or b"").decode(),
            "who": exchange.principal.name,
            "request_id": exchange.request_id,
        }
        exchange.respond(200, msgspec.json.encode(facts))

    def body(self, exchange: Exchange) -> None:
        digest = hashlib.sha256(exchange.body).hexdigest()
        exchange.respond(200, msgspec.json.encode({"bytes": len(exchange.body), "sha256": digest}))

    def later(self, exchange: Exchange) -> None:
        """Answers from a callback, after as many milliseconds as the query says."""
        self.seen.append(exchange.query.decode())
        answer = exchange.query + b":" + exchange.body
        delay = int(exchange.query or b"0") / 1_000
        asyncio.get_running_loop().call_later(delay, lambda: exchange.respond(201, answer, media=b"text/plain"))

    async def coroutine(self, exchange: Exchange) -> None:
        await asyncio.sleep(int(exchange.query or b"0") / 1_000)
        if exchange.body == b"boom":
            raise RuntimeError("secret")
        exchange.respond(200, exchange.body, media=b"text/plain")
        self.finished.append(exchange.request_id)

    def stream(self, exchange: Exchange) -> None:
        pipe = exchange.stream(headers=SSE)
        owner = Owner(pipe)
        pipe.owner = owner
        self.owners.append(owner)
        pipe.write(Block(b": hello\n\n"))

    async def stream_later(self, exchange: Exchange) -> None:
        await asyncio.sleep(0.01)
        self.stream(exchange)
        if exchange.query == b"boom":
            raise RuntimeError("secret")

    def boom(self, exchange: Exchange) -> None:
        raise RuntimeError("secret")

    def missing(self, exchange: Exchange) -> None:
        raise StreamNotFound("no such stream", stream="s")

    def busy(self, exchange: Exchange) -> None:
        raise Busy("later", retry_after_seconds=7)

    def big(self, exchange: Exchange) -> None:
        exchange.respond(200, b"x" * int(exchange.query), media=b"text/plain")

    def nothing(self, exchange: Exchange) -> None:
        exchange.respond(204, b"")


class Running:
    """A server that is up. Everything it owns lives in its thread; `call` reaches in."""

    def __init__(
        self,
        *,
        loop: str = "uvloop",
        patience: Patience | None = None,
        listening: Listening | None = None,
        extra: Iterable[Route] = (),
        fallback: ASGIApp | None = None,
        drain_streams: bool = True,
        metrics_port: bool = False,
        front: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.routes = Routes()
        self.metrics = Metrics()
        self.readiness = Readiness()
        self.closed = False
        self.cut: bool | None = None
        self.error: BaseException | None = None
        self._drain_streams = drain_streams
        self._factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
        self._patience = patience
        self._listening = listening or Listening(port=0, grace_seconds=5)
        self._extra = list(extra)
        self._fallback = fallback
        self._metrics_port = metrics_port
        self._front_options = {"authenticate": authenticate, "metrics": self.metrics, **front}
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._up.wait(10), "the server did not start"
        if self.error is not None:
            raise self.error
        self.port = int(self.server.base_url.rpartition(":")[2])

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._factory) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self.error = error
        finally:
            self._up.set()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        clocked = Front([], authenticate=authenticate, metrics=Metrics())
        rows = [*self.routes.rows(), *self._extra]
        rows += health_routes(self.readiness, metrics=self.metrics, clock=clocked.clock)
        self.front = Front(rows, **self._front_options)
        self.plane = Plane(self.front, patience=self._patience)
        self.server = Server(
            build_asgi(self.front, fallback=self._fallback),
            self.plane,
            listening=self._listening,
            readiness=self.readiness,
            drain=self._drain,
            close=self._close,
            on_ready=lambda url: self._up.set(),
            metrics_plane=Plane(Front(rows[-1:], authenticate=authenticate, metrics=Metrics()))
            if self._metrics_port
            else None,
        )
        await self.server.serve()

    async def _drain(self) -> None:
        if self._drain_streams:
            for owner in self.routes.owners:
                owner.pipe.close(Block(b"event: bye\n\n"))

    async def _close(self) -> None:
        self.closed = True

    def call(self, function: Callable[[], T]) -> T:
        """Run in the server's loop and bring back what came of it."""
        done: list[T] = []
        event = threading.Event()

        def run() -> None:
            done.append(function())
            event.set()

        self.loop.call_soon_threadsafe(run)
        assert event.wait(10)
        return done[0]

    def until(self, condition: Callable[[], object], seconds: float = 10) -> None:
        """Wait until the server's side of things is so."""
        deadline = time.monotonic() + seconds
        while not self.call(condition):
            assert time.monotonic() < deadline, "it never became so"
            time.sleep(0.005)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.server.stop()
            self._thread.join(15)
        assert not self._thread.is_alive(), "the server did not stop"
        if self.error is not None:
            raise self.error

    def client(self) -> Client:
        return Client(self.port)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A blocking socket that reads whole answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._buffer = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def get(self, path: str, *lines: str, method: str = "GET") -> Answer:
        self.send(request(method, path, *lines))
        return self.answer(head_only=method == "HEAD")

    def post(self, path: str, body: bytes, *lines: str) -> Answer:
        self.send(request("POST", path, f"Content-Length: {len(body)}", *lines), body)
        return self.answer()

    def read_until(self, mark: bytes) -> bytes:
        """Up to and including `mark`."""
        while mark not in self._buffer:
            data = self.socket.recv(65_536)
            assert data, f"the connection ended after {self._buffer!r}"
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(mark)
        return found + mark

    def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.socket.recv(65_536)
            assert data, "the connection ended inside a body"
            self._buffer += data
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def head(self) -> Answer:
        first, *lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")[:-2]
        version, status, _ = first.split(" ", 2)
        assert version == "HTTP/1.1"
        pairs = [line.split(": ", 1) for line in lines]
        names = [name.lower() for name, _ in pairs]
        assert len(names) == len(set(names)), f"a header is there twice: {names}"
        return Answer(int(status), {name.lower(): value for name, value in pairs}, b"")

    def answer(self, *, head_only: bool = False) -> Answer:
        answer = self.head()
        if not head_only and answer.status not in (100, 204, 304):
            if "content-length" in answer.headers:
                answer.body = self.read(int(answer.headers["content-length"]))
            else:
                answer.body = self.chunks()
        return answer

    def chunk(self) -> bytes:
        size = int(self.read_until(b"\r\n"), 16)
        return self.read(size + 2)[:-2]

    def chunks(self) -> bytes:
        parts = []
        while part := self.chunk():
            parts.append(part)
        return b"".join(parts)

    def ended(self) -> bool:
        """Whether the server closed in an orderly way, with nothing more to say."""
        try:
            return self._buffer == b"" and self.socket.recv(65_536) == b""
        except ConnectionResetError:
            return True

    def answers(self) -> Iterator[Answer]:
        """Whole answers until the server closes."""
        while self._buffer or self.socket.recv(1, socket.MSG_PEEK):
            yield self.answer()

    def all(self) -> bytes:
        """Whatever still comes, and be it cut off."""
        try:
            return self.rest()
        except ConnectionResetError:
            return self._buffer

    def rest(self) -> bytes:
        """Everything until the server closes."""
        while data := self.socket.recv(65_536):
            self._buffer += data
        found, self._buffer = self._buffer, b""
        return found


def request(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *lines, "", ""]).encode("latin-1")


def code(answer: Answer) -> str:
    """The code in a plain problem body, whose shape is checked on the way."""
    body = msgspec.json.decode(answer.body)
    assert body["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    return str(body["error"]["code"])
