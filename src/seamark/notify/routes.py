"""The notify surface over HTTP: publishing, watching, replaying, and which event types there are."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from seamark import limits
from seamark.clock import Clock
from seamark.errors import SeamarkError
from seamark.log.protocol import Receipt
from seamark.notify.catalogue import Catalogue
from seamark.notify.clocktext import seconds_text
from seamark.notify.docs import OPERATIONS
from seamark.notify.eventtype import EventType
from seamark.notify.gate import Gatekeeper, may
from seamark.notify.measures import Kind, Measures
from seamark.notify.problem import Endpoint, catalogue_problem, request_problem
from seamark.notify.request import Request, parse
from seamark.notify.service import Notifications
from seamark.notify.validate import Operation, check_notification, interest
from seamark.notify.watch import Streams
from seamark.wire.exchange import Exchange, Route

BODY_BYTES_MAX = limits.SMALL_BODY_BYTES_MAX
_OPERATIONS: dict[Endpoint, Operation] = {Endpoint.WATCH: "watch", Endpoint.REPLAY: "replay"}


class NotifyRoutes:
    """Handlers. Where the gate decides nothing, API keys do: by scope in front of the routes, by prefix in here."""

    def __init__(
        self, notifications: Notifications, streams: Streams, *, gate: Gatekeeper, measures: Measures, clock: Clock
    ) -> None:
        self._notifications = notifications
        self._streams = streams
        self._schema = notifications.schema
        self._catalogue = Catalogue(notifications.schema)
        self._gate = gate
        self._measures = measures
        self._clock = clock

    def table(self) -> list[Route]:
        """Rows of the route table."""
        notification = partial(request_problem, Endpoint.NOTIFICATION)
        watch, replay = partial(request_problem, Endpoint.WATCH), partial(request_problem, Endpoint.REPLAY)
        read, write = ("", "") if self._gate.decides else ("read", "write")
        rows = (
            ("POST", "/api/v1/notification", self.notification, write, notification, BODY_BYTES_MAX),
            ("POST", "/api/v1/watch", self.watch, read, watch, BODY_BYTES_MAX),
            ("POST", "/api/v1/replay", self.replay, read, replay, BODY_BYTES_MAX),
            ("GET", "/api/v1/schema", self.schemas, "", catalogue_problem, BODY_BYTES_MAX),
            ("GET", "/api/v1/schema/{event_type}", self.schema, "", catalogue_problem, BODY_BYTES_MAX),
        )
        return [
            Route(method, path, handler, OPERATIONS[method, path][0], action, problem, body, True, OPERATIONS[method, path][1])
            for method, path, handler, action, problem, body in rows
        ]  # fmt: skip

    # -- publishing

    def notification(self, exchange: Exchange) -> Awaitable[None] | None:
        """A coroutine only when somebody has to be asked who is calling."""
        if self._gate.decides:
            return self._guarded_notification(exchange)
        event, request = self._checked(exchange)
        try:
            may(exchange, "write", request.event_type)
        except SeamarkError:
            self._measures.of(event).rejected.value += 1
            raise
        self._store(exchange, event, request)
        return None

    async def _guarded_notification(self, exchange: Exchange) -> None:
        await self._gate.identify(exchange)
        event, request = self._checked(exchange)
        try:
            await self._gate.writer(exchange, event)
        except SeamarkError:
            self._measures.of(event).rejected.value += 1
            raise
        self._store(exchange, event, request)

    def _checked(self, exchange: Exchange) -> tuple[EventType | None, Request]:
        """What is refused before anybody asks whether the caller may."""
        kind = self._measures.unknown
        try:
            request = parse(exchange.body)
            event = self._schema.find(request.event_type)
            kind = self._measures.of(event)
            check_notification(request)
        except SeamarkError:
            kind.rejected.value += 1
            raise
        return event, request

    def _store(self, exchange: Exchange, event: EventType | None, request: Request) -> None:
        answer = _Answer(exchange, self._measures, self._measures.of(event), self._clock)
        try:
            self._notifications.submit(event, request, answer)
        except SeamarkError as error:
            answer.refuse(error)

    # -- reading

    async def watch(self, exchange: Exchange) -> None:
        await self._read(exchange, Endpoint.WATCH)

    async def replay(self, exchange: Exchange) -> None:
        await self._read(exchange, Endpoint.REPLAY)

    async def _read(self, exchange: Exchange, endpoint: Endpoint) -> None:
        gate, measures = self._gate, self._measures
        measures.posts.value += 1
        try:
            if gate.decides:
                await gate.identify(exchange)
            request = parse(exchange.body)
            event = self._schema.find(request.event_type)
            if gate.decides:
                await gate.reader(exchange, event)
            else:
                may(exchange, "read", request.event_type)
            wanted = interest(event, request, _OPERATIONS[endpoint])
            if gate.decides:
                await gate.release(exchange, event, wanted.values)
            await self._streams.open(exchange, endpoint, event, name=request.event_type, wanted=wanted)
        finally:
            measures.posts.value -= 1

    # -- discovery

    def schemas(self, exchange: Exchange) -> None:
        exchange.respond(200, self._catalogue.everything)

    def schema(self, exchange: Exchange) -> None:
        status, body = self._catalogue.one(exchange.params["event_type"], exchange.request_id)
        exchange.respond(status, body)


class _Answer:
    """What is done with the log's verdict on one notification."""

    __slots__ = ("_begun", "_clock", "_exchange", "_kind", "_measures")

    def __init__(self, exchange: Exchange, measures: Measures, kind: Kind, clock: Clock) -> None:
        self._exchange = exchange
        self._measures = measures
        self._kind = kind
        self._clock = clock
        self._begun = clock.monotonic()
        measures.posts.value += 1

    def __call__(self, outcome: Receipt | SeamarkError) -> None:
        stored = isinstance(outcome, Receipt)
        self._measures.operation("publish", self._clock.monotonic() - self._begun, ok=stored)
        if not isinstance(outcome, Receipt):
            self.refuse(outcome)
            return
        self._measures.posts.value -= 1
        self._kind.success.value += 1
        self._exchange.respond(
            200,
            b'{"status":"success","request_id":"%b","processed_at":"%b"}'
            % (self._exchange.request_id.encode(), seconds_text(outcome.ts).encode()),
        )

    def refuse(self, error: SeamarkError) -> None:
        self._measures.posts.value -= 1
        status, body, headers = request_problem(Endpoint.NOTIFICATION, error, self._exchange.request_id)
        counter = self._kind.rejected if status == 400 else self._kind.error
        counter.value += 1
        self._exchange.respond(status, body, headers=headers)
