"""The same routes as a plain ASGI application, for any server. On our own server it gets what the plane does not answer
itself; elsewhere it answers everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any
from urllib.parse import quote

from seamark.access.principal import Principal
from seamark.errors import BodyTooLarge, MethodNotAllowed, RouteNotFound, SeamarkError
from seamark.http.answer import BODILESS, unconnected
from seamark.http.front import UNROUTED, Front
from seamark.http.problems import media_of
from seamark.http.routing import Match
from seamark.stream.pipe import Pipe
from seamark.stream.sink import BufferPipe
from seamark.telemetry import events, logs
from seamark.wire.exchange import Headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Lifespan = Callable[[], AbstractAsyncContextManager[None]]


class Disconnected(Exception):
    """The client left before its request was complete. Nobody is there to be told."""


class AsgiExchange:
    """One request under any ASGI server. The route runs first; what it decided is sent afterwards."""

    def __init__(self, match: Match, *, method: str, query: bytes, headers: Headers, request_id: str) -> None:
        self.method = method
        self.path = match.path
        self.params: Mapping[str, str] = match.params
        self.query = query
        self.headers = headers
        self.body = b""
        self.request_id = request_id
        self.principal: Principal
        self.answer: tuple[int, bytes, list[tuple[bytes, bytes]]] | None = None
        self.pipe: BufferPipe | None = None
        self._answered = asyncio.Event()
        self._error: Exception | None = None

    def header(self, name: bytes) -> bytes | None:
        return next((value for given, value in self.headers if given == name), None)

    def respond(self, status: int, body: bytes, *, media: bytes = b"application/json", headers: Headers = ()) -> None:
        lines = list(headers)
        if status not in BODILESS:
            lines.append((b"Content-Length", b"%d" % len(body)))
            if media:
                lines.append((b"Content-Type", media))
        self._settle(status, body, lines)

    def stream(self, *, headers: Headers, status: int = 200) -> Pipe:
        self._settle(status, b"", list(headers))
        self.pipe = BufferPipe()
        if self.method == "HEAD":
            asyncio.get_running_loop().call_soon(self.pipe.abort)
        return self.pipe

    async def answered(self) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """What the route decided, whenever it does. Raises what the route raised instead of deciding."""
        await self._answered.wait()
        if self.answer is None:
            assert self._error is not None
            raise self._error
        return self.answer

    def fail(self, error: Exception) -> None:
        self._error = error
        self._answered.set()

    def _settle(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        if self.answer is not None:
            raise RuntimeError("this request is already answered")
        self.answer = (status, body, headers)
        self._answered.set()


def build_asgi(front: Front, *, fallback: ASGIApp | None = None, lifespan: Lifespan | None = None) -> ASGIApp:
    """`fallback` (a Starlette app: static files and the like) gets the paths that have no row in the table."""
    return _App(front, fallback, lifespan)


class _App:
    def __init__(self, front: Front, fallback: ASGIApp | None, lifespan: Lifespan | None) -> None:
        self._front = front
        self._fallback = fallback
        self._lifespan = lifespan
        self._log = logs.logger("http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            try:
                if self._lifespan is not None:
                    await stack.enter_async_context(self._lifespan())
            except Exception as error:
                self._log.error(events.TASK_FAILED, task="lifespan.startup", exc_info=error)
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
            try:
                await stack.aclose()
            except Exception as error:
                self._log.error(events.TASK_FAILED, task="lifespan.shutdown", exc_info=error)
                await send({"type": "lifespan.shutdown.failed", "message": str(error)})
                return
            await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        front = self._front
        request_id = front.new_id()
        begun = front.clock.monotonic()
        reply = _Reply(send, request_id, keeps=scope.get("http_version") == "1.1")
        raw_path = _raw_path(scope)
        pattern = UNROUTED
        try:
            try:
                match = front.table.resolve(scope["method"], raw_path)
            except RouteNotFound as error:
                await self._stray(scope, receive, reply, raw_path, error)
            except SeamarkError as error:
                await self._stray_problem(scope, reply, raw_path, error)
            else:
                pattern = match.route.path
                await self._routed(match, scope, receive, reply)
        except Disconnected:
            return
        finally:
            if reply.status:
                seconds = front.clock.monotonic() - begun
                tally = front.tally(pattern)
                front.answered(tally, scope["method"], reply.status, seconds, request_id=request_id, path=scope["path"])

    async def _stray(self, scope: Scope, receive: Receive, reply: _Reply, raw_path: str, error: RouteNotFound) -> None:
        """No row has this path: the fallback's business, if there is one."""
        if self._fallback is None or scope["method"] not in {"GET", "HEAD"}:
            await self._stray_problem(scope, reply, raw_path, error)
            return
        missed = False

        async def unless_missing(message: Message) -> None:
            """A page that is not there either is our 404 to tell, in our words."""
            nonlocal missed
            missed = missed or message.get("status") == 404
            if not missed:
                await reply.send(message)

        try:
            await self._fallback(scope, receive, unless_missing)
            if missed:
                await self._stray_problem(scope, reply, raw_path, error)
        except Exception as broken:
            self._front.report(broken, reply.request_id, UNROUTED)
            if not reply.status:
                await self._stray_problem(scope, reply, raw_path, broken)

    async def _stray_problem(self, scope: Scope, reply: _Reply, raw_path: str, error: Exception) -> None:
        headers = [(bytes(name).lower(), bytes(value)) for name, value in scope["headers"]]
        refusal = self._front.stray_refusal(scope["method"], raw_path, headers, scope.get("query_string", b""))
        error = refusal or error
        if scope["method"] == "OPTIONS" and isinstance(error, MethodNotAllowed) and not self._front.realm(raw_path):
            allow = ", ".join(error.fields["allow"]).encode()
            await reply.whole(scope["method"], 204, b"", [(b"Allow", allow)])
            return
        status, body, lines = self._front.stray_problem(raw_path, error, reply.request_id)
        await reply.problem(scope["method"], status, body, lines)

    async def _routed(self, match: Match, scope: Scope, receive: Receive, reply: _Reply) -> None:
        front, route = self._front, match.route
        exchange = AsgiExchange(
            match,
            method=scope["method"],
            query=scope.get("query_string", b""),
            headers=[(bytes(name).lower(), bytes(value)) for name, value in scope["headers"]],
            request_id=reply.request_id,
        )
        counted = False
        try:
            exchange.principal = front.authenticate(exchange.headers, exchange.query, route)
            counted = front.inflight.enter(exchange.principal)
            front.permit(exchange.principal, route, match.params)
            exchange.body = await _body(exchange, receive, front.body_bytes_max(route))
            result = route.handler(exchange)
            task = None if result is None else asyncio.ensure_future(self._attend(exchange, result, route.path))
            status, body, lines = await exchange.answered()
        except Disconnected:
            raise
        except Exception as error:
            if exchange.answer is not None:
                raise
            status, body, headers = front.problem(route, error, reply.request_id)
            extra = [(b"Connection", b"close")] if isinstance(error, BodyTooLarge) else []
            await reply.problem(exchange.method, status, body, [*headers, *extra])
            return
        finally:
            if counted:
                front.inflight.leave(exchange.principal)
        if exchange.pipe is None:
            await reply.whole(exchange.method, status, body, lines)
        else:
            await reply.stream(status, lines, exchange.pipe, receive)
        if task is not None:
            await task

    async def _attend(self, exchange: AsgiExchange, result: Awaitable[None], pattern: str) -> None:
        """A coroutine route may go on after it has answered; if it then fails, only the log and its stream can tell."""
        try:
            await result
        except Exception as error:
            if exchange.answer is None:
                exchange.fail(error)
                return
            self._front.report(error, exchange.request_id, pattern)
            if exchange.pipe is not None:
                exchange.pipe.abort()


class _Reply:
    """The sending side of one request: every answer carries its request id, whoever made it."""

    def __init__(self, send: Send, request_id: str, *, keeps: bool) -> None:
        """`keeps`: headers may speak of the connection, which HTTP/2 forbids and HTTP/1.0 understands differently."""
        self._send = send
        self._keeps = keeps
        self.request_id = request_id
        self.status = 0  # once the answer has begun

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = [(name, value) for name, value in message.get("headers", ()) if name.lower() != b"x-request-id"]
            given = given if self._keeps else unconnected(given)
            lines = [(name.lower(), value) for name, value in given]
            message = {**message, "headers": [*lines, (b"x-request-id", self.request_id.encode())]}
        await self._send(message)

    async def whole(self, method: str, status: int, body: bytes, lines: list[tuple[bytes, bytes]]) -> None:
        await self.send({"type": "http.response.start", "status": status, "headers": lines})
        bodiless = method == "HEAD" or status in BODILESS
        await self.send({"type": "http.response.body", "body": b"" if bodiless else body})

    async def problem(self, method: str, status: int, body: bytes, headers: Headers) -> None:
        media, others = media_of(headers)
        lines = [*others, (b"Content-Type", media), (b"Content-Length", b"%d" % len(body))]
        await self.whole(method, status, body, lines)

    async def stream(self, status: int, lines: list[tuple[bytes, bytes]], pipe: BufferPipe, receive: Receive) -> None:
        """Send until the pipe ends or the client leaves, whichever is first."""
        watcher = asyncio.ensure_future(_watch(receive, pipe))
        try:
            await self.send({"type": "http.response.start", "status": status, "headers": lines})
            async for chunk in pipe:
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watcher.cancel()
            pipe.abort()


async def _watch(receive: Receive, pipe: BufferPipe) -> None:
    """Tell the stream's owner when the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    pipe.abort()


async def _body(exchange: AsgiExchange, receive: Receive, most: int) -> bytes:
    """The whole body, or BodyTooLarge as soon as that is known."""
    declared = exchange.header(b"content-length")
    too_large = BodyTooLarge(f"the body is larger than {most} bytes", max=most)
    if declared is not None and declared.isdigit() and int(declared) > most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise too_large
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _raw_path(scope: Scope) -> str:
    """The path before percent-decoding, without a mount's prefix; not every server sends it."""
    raw = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"])
    root = scope.get("root_path", "")
    return path.removeprefix(root) if root else path
