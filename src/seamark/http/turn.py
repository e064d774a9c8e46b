"""Turns: the requests of one connection in the order they came, which is the order in which they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from seamark import limits
from seamark.access.principal import Principal
from seamark.errors import BodyTooLarge, Busy
from seamark.http import answer
from seamark.http.problems import media_of
from seamark.http.routing import Match
from seamark.http.transport_pipe import TransportPipe
from seamark.stream.pipe import Pipe
from seamark.wire.exchange import Headers

if TYPE_CHECKING:
    from seamark.http.connection import PlaneProtocol


class Turn:
    """A place in the order. `answer` is what to write when the place is reached; `last` ends the connection after it.

    Defaults live on the classes: turns are short-lived and many, and most never change most of these.
    """

    answer: bytes | None = None
    last = False
    pipe: TransportPipe | None = None
    started = False

    def start(self) -> None:
        """Begin working on it. Called once, when the connection has room."""
        self.started = True

    def deserted(self) -> None:
        """The client has stopped speaking: it may wait for its answer, but has most likely left."""

    def lost(self) -> None:
        """The connection ended before this turn was over."""


class ReadyTurn(Turn):
    """An answer that the connection gives by itself."""

    def __init__(self, connection: PlaneProtocol, data: bytes, *, last: bool) -> None:
        self.connection = connection
        self.data = data
        self.last = last

    def start(self) -> None:
        self.started = True
        self.answer = self.data
        self.connection.answered(self)


class AsgiTurn(Turn):
    """A request that uvicorn hands to the ASGI app. It writes its own answer, so it starts when its place is reached."""

    def __init__(self, connection: PlaneProtocol, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self.connection = connection
        self.cycle = cycle
        self.app = app

    def start(self) -> None:
        self.started = True
        self.connection.start_cycle(self)

    def lost(self) -> None:
        self.cycle.disconnected = True
        self.cycle.message_event.set()


class PlaneExchange(Turn):
    """A hot request: the `Exchange` that routes are written against, answered inside the protocol."""

    principal: Principal  # set before the route runs
    body = b""
    body_bytes = 0
    parts: list[bytes] | None = None
    held = 0  # of the body, as counted by the plane
    counted = False  # among the requests that its key has in flight
    error: Exception | None = None
    begun = 0.0
    _http10 = False

    def __init__(self, connection: PlaneProtocol, match: Match, *, method: str, query: bytes, headers: Headers) -> None:
        self.connection: PlaneProtocol | None = connection
        self.match = match
        self.path = match.path
        self.params: Mapping[str, str] = match.params
        self.method = method
        self.query = query
        self.headers = headers
        self.body_bytes_max = match.route.body_bytes_max
        self.request_id = connection.front.new_id()
        self._tally = connection.front.tally(match.route.path)
        self._head_only = method == "HEAD"

    # -- Exchange
    def header(self, name: bytes) -> bytes | None:
        for given, value in self.headers:
            if given == name:
                return value
        return None

    def respond(self, status: int, body: bytes, *, media: bytes = b"application/json", headers: Headers = ()) -> None:
        if self.answer is not None:
            raise RuntimeError("this request is already answered")
        connection = self.connection
        if connection is None:
            self.answer = b""
            return  # the client left; what was asked for is done, nobody is there to be told
        if self.counted:
            self._leave(connection)
        extra = answer.header_lines(headers) if headers else b""
        if connection.plane.draining:
            self.last = True
        if self.last:
            extra += answer.CLOSE
        elif self._http10:
            extra += answer.KEEP_ALIVE
        marks = b"X-Request-ID: %b\r\n%b" % (self.request_id.encode(), connection.plane.date_line)
        self.answer = answer.whole(status, body, media=media, marks=marks, extra=extra, head_only=self._head_only)
        self._count(connection, status)
        connection.answered(self)

    def stream(self, *, headers: Headers, status: int = 200) -> Pipe:
        if self.answer is not None:
            raise RuntimeError("this request is already answered")
        connection = self.connection
        chunked = not self._http10
        if connection is None:
            self.answer = b""
            return _orphan()
        if self.counted:
            self._leave(connection)
        marks = b"X-Request-ID: %b\r\n%b" % (self.request_id.encode(), connection.plane.date_line)
        if self._head_only or not chunked:
            headers = answer.unconnected(headers)  # the connection ends with this answer, whatever the surface says
        extra = answer.header_lines(headers)
        if self._head_only and chunked:
            extra += answer.CLOSE
        head = answer.stream_head(status, chunked=chunked, marks=marks, extra=extra)
        self._count(connection, status)
        if self._head_only:
            self.answer, self.last = head, True
            connection.answered(self)
            return _orphan()
        self.answer = b""
        self.pipe = TransportPipe(connection.plane, head, chunked=chunked)
        connection.answered(self)
        return self.pipe

    # -- the connection's side
    def admit(self) -> None:
        """Who is asking, whether they have room, and whether they may. Raises what says no."""
        assert self.connection is not None
        front, route = self.connection.front, self.match.route
        self.principal = front.authenticate(self.headers, self.query, route)
        self.counted = front.inflight.enter(self.principal)
        front.permit(self.principal, route, self.params)

    def http10(self) -> None:
        self._http10 = True

    def take(self, data: bytes) -> bool:
        """Part of the body. False: it is beyond a bound, nothing more need be read, and `error` says why."""
        self.body_bytes += len(data)
        if self.body_bytes > self.body_bytes_max:
            self.refuse_body()
            return False
        if self.error is not None:
            return True
        if not self.body:
            self.body = data
            return True
        if self.parts is None:
            self.parts = [self.body]
        self.parts.append(data)
        return self._hold()

    def refuse_body(self) -> None:
        most = self.body_bytes_max
        self._refuse(self.error or BodyTooLarge(f"the body is larger than {most} bytes", max=most))

    def _refuse(self, error: Exception) -> None:
        self.error = error
        self.body, self.parts = b"", None
        self._release()

    def _hold(self) -> bool:
        """Have the plane count what has arrived. False: there is no room for it."""
        connection = self.connection
        assert connection is not None
        plane = connection.plane
        plane.body_bytes += self.body_bytes - self.held
        self.held = self.body_bytes
        if plane.body_bytes <= limits.BODIES_BYTES_MAX:
            return True
        self._refuse(Busy("too many large bodies arrive at once", limit="bodies_bytes", max=limits.BODIES_BYTES_MAX))
        return False

    def _release(self) -> None:
        if self.held and self.connection is not None:
            self.connection.plane.body_bytes -= self.held
            self.held = 0

    def complete(self) -> None:
        """The last byte of the request is here."""
        if self.parts is not None:
            self.body, self.parts = b"".join(self.parts), None

    def start(self) -> None:
        self.started = True
        connection = self.connection
        assert connection is not None
        if self.held:
            self._release()
        self.begun = connection.monotonic()
        if self.error is not None:
            self.fail(self.error)
            return
        try:
            result = self.match.route.handler(self)
        except Exception as error:
            self.fail(error)
        else:
            if result is not None:
                connection.attend(self, result)

    def fail(self, error: Exception) -> None:
        """Answer with what went wrong; if the answer is already under way, cut it."""
        connection = self.connection
        if connection is None:
            return
        front = connection.front
        if self.answer is not None:
            front.report(error, self.request_id, self.match.route.path)
            if self.pipe is not None:
                self.pipe.abort()
            return
        status, body, headers = front.problem(self.match.route, error, self.request_id)
        media, headers = media_of(headers)
        self.respond(status, body, media=media, headers=headers)

    def deserted(self) -> None:
        if self.counted and self.connection is not None:
            self._leave(self.connection)

    def lost(self) -> None:
        self._release()
        self.deserted()
        self.connection = None
        if self.pipe is not None:
            self.pipe.lost()

    def _leave(self, connection: PlaneProtocol) -> None:
        self.counted = False
        connection.front.inflight.leave(self.principal)

    def _count(self, connection: PlaneProtocol, status: int) -> None:
        front = connection.front
        seconds = connection.monotonic() - self.begun
        if front.access_log is None:
            self._tally.count(self.method, status, seconds)
        else:
            front.answered(self._tally, self.method, status, seconds, request_id=self.request_id, path=self.path)


def _orphan() -> TransportPipe:
    """A pipe that leads nowhere, for a HEAD request or a client that has left: its owner hears at once that it is gone."""
    pipe = TransportPipe.unattached()
    asyncio.get_running_loop().call_soon(pipe.lost)
    return pipe
