"""The reading half of a connection: what the parser reports, the guards that uvicorn leaves to a proxy, and how long
anything may take. Hot routes are answered in here; the rest is handed to uvicorn's ASGI cycle."""

from __future__ import annotations

import asyncio

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from seamark import limits
from seamark.errors import BodyTooLarge, SeamarkError
from seamark.http import answer, guards
from seamark.http.front import UNROUTED
from seamark.http.guards import GUARDED, Guarded, Refusal, Refused
from seamark.http.heads import Head
from seamark.http.ordered import DEAF, OrderedProtocol, Phase
from seamark.http.problems import media_of
from seamark.http.routing import Match
from seamark.http.turn import AsgiTurn, PlaneExchange, ReadyTurn, Turn
from seamark.wire.exchange import Headers

IDLE = Phase.IDLE
HEAD = Phase.HEAD
BODY = Phase.BODY
_METHODS = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_HEAD_BYTES_MAX = limits.HEADER_BYTES_MAX + limits.TARGET_BYTES_MAX + limits.PARSE_SLICE_BYTES
_FRAMING_PER_BYTE = 16  # chunk sizes, extensions and trailers that one byte of body may bring along


class PlaneProtocol(OrderedProtocol):
    """Requests become turns."""

    reading: Turn | None = None  # whose message is arriving
    head: Head | None = None  # of the last message, if it is worth knowing again
    head_bytes = 0  # of the head in progress, from earlier slices
    raw_bytes = 0  # of the body in progress, with its framing
    body_bytes = 0
    body_bytes_max = 0
    url = b""
    match: Match | None = None  # the row of a request that goes to the app
    trailers = 0
    guarded: Guarded

    # -- asyncio.Protocol
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        fits = self.plane.join(self)
        self.since = self.plane.now
        if not fits and self.plane.crowded:
            transport.abort()
        elif not fits:
            self._refuse(guards.CONNECTIONS_FULL)
            self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self.plane.leave(self)
        self.phase = Phase.CLOSING
        if self.reading is not None:
            self.reading.lost()
            self.reading = None
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.phase >= DEAF:
            self._discard(data)
        elif self.unfed or self.waiting:
            self.unfed += data
            self.flow.pause_reading()
        else:
            head = self.plane.heads.find(data) if self.phase <= IDLE else None
            if head is None:
                self._feed(data)
            else:
                self._repeat(head, data)
            turns = self.turns
            if turns and (turns[0].answer is not None or self.waiting):
                self._advance()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client may stop speaking and still wait for its answers; only hot turns can promise one."""
        if self.scheme == "https" or not self.turns or self.unfed:
            return False
        if any(isinstance(turn, AsgiTurn) for turn in self.turns):
            return False
        self.turns[-1].last = self.deserted = True
        for turn in self.turns:
            turn.deserted()
        self.phase = DEAF
        return True

    # -- the parser's callbacks
    def on_message_begin(self) -> None:
        if self.phase >= DEAF:
            raise Refused(guards.MALFORMED)  # stops the parser; a deaf connection says nothing
        self.phase = HEAD
        self.since = self.plane.now
        self.url = b""
        self.headers = []
        self.guarded = Guarded()
        self.head = None
        self.head_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if self.phase is not HEAD:
            self._pass_trailer()
            return
        if name in GUARDED:
            self.guarded.see(name, value)
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        self.guarded.judge(version)
        if self.head_bytes or len(self.headers) > limits.HEADER_COUNT_MAX:
            guards.judge_head(self.url, self.headers)
        raw_method = self.parser.get_method()
        last = not self.parser.should_keep_alive()
        if self.parser.should_upgrade():
            self.guarded.judge_upgrade(raw_method)
            last = True
        if not self.url.startswith(b"/"):
            self.url = guards.origin_form(raw_method, self.url)
        if b"#" in self.url:
            raise Refused(guards.TARGET_INVALID)
        self.phase = BODY
        self.since = self.plane.now
        self.raw_bytes = self.body_bytes = self.trailers = 0
        if self.url == b"*":
            self._begin_ready(last=last)
            return
        method = _METHODS.get(raw_method) or raw_method.decode("ascii")
        path, _, query = self.url.partition(b"?")
        try:
            match = self.front.table.find(method, path.decode("ascii"))
        except SeamarkError:
            match = None  # a path that cannot be decoded: the app will say so
        if match is not None and match.route.hot:
            self._begin_hot(match, method, query, last=last, http10=version == "1.0")
        else:
            self._begin_cycle(match, last=last)

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        reading = self.reading
        if type(reading) is PlaneExchange:
            if not reading.take(body):
                self._stop_reading(reading)
        elif self.body_bytes > self.body_bytes_max:
            self._refuse_body()
        elif type(reading) is AsgiTurn:
            super().on_body(body)

    def on_message_complete(self) -> None:
        reading = self.reading
        assert reading is not None
        self.reading = None
        self.phase = DEAF if reading.last else IDLE
        self.since = self.plane.now
        if type(reading) is PlaneExchange:
            reading.complete()
            self._admit(reading)
        elif type(reading) is AsgiTurn:
            super().on_message_complete()
        else:
            self._admit(reading)

    # -- parsing
    def _repeat(self, head: Head, data: bytes) -> None:
        """One whole request whose head was here before: what the parser would report of it is known."""
        self.busy = True
        try:
            exchange = PlaneExchange(self, head.match, method=head.method, query=head.query, headers=head.headers)
            exchange.body = data[len(data) - head.length :]
            self._let_in(exchange)
            self.phase = IDLE
            self.since = self.plane.now
            self._admit(exchange)
        except Exception as error:
            self._refuse_for(error)
        finally:
            self.busy = False

    def _feed(self, data: bytes) -> None:
        learns = self.phase is IDLE
        self.busy = True
        try:
            if len(data) <= limits.PARSE_SLICE_BYTES:
                self._parse(data)
            else:
                self._feed_slices(data)
        finally:
            self.busy = False
        if learns and self.head is not None and self.phase is IDLE and not self.unfed:
            self.plane.heads.learn(data, self.head)

    def _feed_slices(self, data: bytes) -> None:
        """A slice at a time, because the parser cannot be stopped halfway through one."""
        view = memoryview(data)
        for at in range(0, len(data), limits.PARSE_SLICE_BYTES):
            if self.phase >= DEAF:
                return
            if self.waiting:
                self.unfed = data[at:]
                return
            self._parse(view[at : at + limits.PARSE_SLICE_BYTES])

    def _parse(self, data: bytes | memoryview) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # the request was answered as if it had not asked; its connection takes no further one
        except httptools.HttpParserCallbackError as error:
            self._refuse_for(error.__context__)
        except httptools.HttpParserError:
            self.url = self.url or guards.target_in(data)  # the parser may have stopped before it told
            self._refuse(guards.MALFORMED)
        if self.phase is HEAD:
            self._judge_progress(len(data))
        elif self.phase is BODY:
            self.raw_bytes += len(data)
            if self.raw_bytes > limits.HEADER_BYTES_MAX + _FRAMING_PER_BYTE * (self.body_bytes + len(data)):
                self._refuse(guards.MALFORMED)

    def _judge_progress(self, received: int) -> None:
        """A head that is still arriving: what is already too much need not be waited for."""
        self.head_bytes += received
        if len(self.url) > limits.TARGET_BYTES_MAX:
            self._refuse(guards.TARGET_TOO_LONG)
        elif len(self.headers) > limits.HEADER_COUNT_MAX or self.head_bytes > _HEAD_BYTES_MAX:
            self._refuse(guards.HEADERS_TOO_LARGE)

    def _pass_trailer(self) -> None:
        """Trailers are not headers: nobody may smuggle a Host or an Authorization in behind the body."""
        self.trailers += 1
        if self.trailers > limits.HEADER_COUNT_MAX:
            raise Refused(guards.HEADERS_TOO_LARGE)

    # -- beginnings
    def _begin_hot(self, match: Match, method: str, query: bytes, *, last: bool, http10: bool) -> None:
        exchange = PlaneExchange(self, match, method=method, query=query, headers=self.headers)
        exchange.last = last
        if http10:
            exchange.http10()
        self.reading = exchange
        self.body_bytes_max = exchange.body_bytes_max
        self._let_in(exchange)
        guarded = self.guarded
        if not (last or http10 or guarded.chunked or guarded.expects):
            self.head = Head(match, method, query, self.headers, guarded.length)
        if guarded.length > self.body_bytes_max:
            exchange.refuse_body()
            self._stop_reading(exchange)
        elif guarded.continues:
            if exchange.error is not None:
                self._stop_reading(exchange)
            elif self.turns:
                self.continue_due = True
            elif not self.transport.is_closing():
                self.transport.write(answer.CONTINUE)

    def _let_in(self, exchange: PlaneExchange) -> None:
        try:
            exchange.admit()
        except Exception as error:
            exchange.error = error

    def _begin_ready(self, *, last: bool) -> None:
        """`OPTIONS *` asks whether anybody is there."""
        marks = b"X-Request-ID: %b\r\n%b" % (self.front.new_id().encode(), self.plane.date_line)
        data = answer.whole(204, b"", media=b"", marks=marks, extra=answer.CLOSE if last else b"")
        self.reading = ReadyTurn(self, data, last=last)
        self.body_bytes_max = 0

    def _begin_cycle(self, match: Match | None, *, last: bool) -> None:
        self.match = match
        self.body_bytes_max = self.front.body_bytes_max(None if match is None else match.route)
        if self.guarded.length > self.body_bytes_max:
            self._refuse_body()
        url, headers = self.url, self.headers
        HttpToolsProtocol.on_message_begin(self)  # makes the scope, which hot requests do without
        self.url, self.headers, self.scope["headers"] = url, headers, headers
        self.expect_100_continue = self.guarded.continues
        self.cycle = None  # type: ignore[assignment]  # the order is kept by turns, not by uvicorn's own pipeline
        try:
            super().on_headers_complete()
        except httptools.HttpParserInvalidURLError:
            raise Refused(guards.TARGET_INVALID) from None
        if last:
            assert self.reading is not None
            self.reading.last = True
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Uvicorn would start the app; it starts when its turn comes."""
        turn = AsgiTurn(self, cycle, app)
        if self.plane.draining:
            turn.last = True
            cycle.keep_alive = False
        self.reading = turn
        self._admit(turn)

    # -- refusals
    def _refuse_for(self, cause: BaseException | None) -> None:
        if isinstance(cause, Refused):
            self._refuse(cause.refusal)
            return
        if self.phase < DEAF:
            self.front.report(cause or RuntimeError("parser"), self.front.new_id(), UNROUTED)
        self._refuse(guards.BROKEN)

    def _refuse(self, refusal: Refusal) -> None:
        """The connection's own answer, in its turn, and the end of the connection."""
        if self.phase >= DEAF:
            return
        request_id = self.front.new_id()
        path = self.url.partition(b"?")[0].decode("latin-1")
        body, lines = self.front.refused(path, refusal.status, refusal.code, refusal.message, request_id)
        self._refuse_with(refusal.status, body, lines, request_id)
        self.plane.refused(refusal.code)

    def _refuse_body(self) -> None:
        """A body beyond its bound, for a request that would have gone to the app. What would have been in its way
        without the body is in its way first."""
        request_id = self.front.new_id()
        path, _, query = self.url.partition(b"?")
        method, most = self.parser.get_method().decode("ascii"), self.body_bytes_max
        too_large = BodyTooLarge(f"the body is larger than {most} bytes", max=most)
        status, body, lines = self.front.unread(
            self.match, too_large, method=method, path=path.decode("ascii"), headers=self.headers, query=query,
            request_id=request_id,
        )  # fmt: skip
        self._refuse_with(status, body, lines, request_id)
        raise Refused(guards.BODY_TOO_LARGE)

    def _refuse_with(self, status: int, body: bytes, lines: Headers, request_id: str) -> None:
        marks = b"X-Request-ID: %b\r\n%b" % (request_id.encode(), self.plane.date_line)
        media, lines = media_of(lines)
        extra = answer.header_lines(lines) + answer.CLOSE
        data = answer.whole(status, body, media=media, marks=marks, extra=extra)
        self._drop_reading()
        self.phase = DEAF
        self.since = self.plane.now
        self.midway = True
        self._admit(ReadyTurn(self, data, last=True))

    def _stop_reading(self, exchange: PlaneExchange) -> None:
        """Answer now and read no further."""
        exchange.last = True
        self.reading = None
        self.phase = DEAF
        self.midway = True
        self._admit(exchange)
        raise Refused(guards.BODY_TOO_LARGE)

    def _drop_reading(self) -> None:
        """Whoever waits for the rest of the refused message waits in vain. An answer that has begun cannot be mended."""
        reading, self.reading = self.reading, None
        if not isinstance(reading, AsgiTurn):
            if reading is not None:
                reading.lost()
            return
        if reading.cycle.response_started:
            self.transport.abort()
        if reading in self.turns:
            self.turns.remove(reading)
            self.waiting -= not reading.started
        reading.lost()

    # -- deadlines
    def inspect(self, now: float) -> None:
        """Once a round. Waiting for our own answers costs the client nothing."""
        patience, age = self.plane.patience, now - self.since
        if self.flow.write_paused or self.phase is Phase.CLOSING:
            self._inspect_unsent(now, age)
        elif self.phase is Phase.FRESH:
            if age > patience.header_seconds:
                self._close()
        elif self.phase is IDLE:
            if not self.turns and age > patience.keep_alive_seconds:
                self._close()
        elif self.phase is HEAD:
            if age > patience.header_seconds:
                self._refuse(guards.HEADERS_TOO_SLOW)
        elif self.phase is BODY:
            if self.flow.read_paused:
                self.since = now
                self.raw_bytes = 0
            elif age > patience.body_grace_seconds + self.body_bytes / patience.body_bytes_per_second:
                self._refuse(guards.BODY_TOO_SLOW)
        elif not self.turns and age > patience.linger_seconds:
            self.transport.abort()
        if self.turns:
            self._advance()
