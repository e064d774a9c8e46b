"""Taking notifications out: one by its id, those of one event type, or all. Watchers are not disturbed, and numbers go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from seamark import limits
from seamark.clock import Clock
from seamark.errors import BadInput, BadRequest, Denied, Missing, NotJson, SeamarkError, WrongShape
from seamark.notify.docs import OPERATIONS
from seamark.notify.gate import Gatekeeper, may
from seamark.notify.measures import Measures
from seamark.notify.problem import admin_body, admin_problem
from seamark.notify.service import Notifications
from seamark.notify.start import parse_id
from seamark.wire.exchange import Exchange, Handler, Route
from seamark.wire.strictjson import decode

_WIPE_BYTES_MAX = 2 * limits.MIB


class WipeBody(msgspec.Struct):
    stream_name: str


_ANY = msgspec.json.Decoder(Any)
_WIPE = msgspec.json.Decoder(WipeBody)


class AdminRoutes:
    """Handlers."""

    def __init__(self, notifications: Notifications, *, gate: Gatekeeper, measures: Measures, clock: Clock) -> None:
        self._notifications = notifications
        self._gate = gate
        self._measures = measures
        self._clock = clock

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [
            self._route("/api/v1/admin/notification/{id}", self.delete, limits.SMALL_BODY_BYTES_MAX),
            self._route("/api/v1/admin/wipe/stream", self.wipe, _WIPE_BYTES_MAX),
            self._route("/api/v1/admin/wipe/all", self.wipe_all, limits.SMALL_BODY_BYTES_MAX),
        ]

    async def delete(self, exchange: Exchange) -> None:
        await self._gate.admin(exchange)
        given, request_id = exchange.params["id"], exchange.request_id
        try:
            name, seq = _parsed(given)
            self._permit(exchange, name)
            if not await self._timed("delete_message", lambda: self._notifications.delete(name, seq)):
                raise Missing("Notification not found")
        except Denied:
            raise
        except SeamarkError as error:
            status, _, headers = admin_problem(error, request_id)
            body = admin_body(False, error.message, request_id, notification_id=given)
            exchange.respond(status, body, headers=headers)
            return
        exchange.respond(200, admin_body(True, "Notification deleted", request_id, notification_id=given))

    async def wipe(self, exchange: Exchange) -> None:
        await self._gate.admin(exchange)
        name = _wipe_body(exchange).stream_name
        self._permit(exchange, name)
        if not await self._timed("wipe_stream", lambda: self._notifications.wipe(name)):
            known = ", ".join(self._notifications.schema.names)
            raise Missing(f"No stream or event type named '{name}'. Configured event types: [{known}]")
        body = admin_body(True, f"Successfully wiped stream: {name}", exchange.request_id)
        exchange.respond(200, body)

    async def wipe_all(self, exchange: Exchange) -> None:
        await self._gate.admin(exchange)
        self._permit(exchange, "")
        await self._timed("wipe_all", self._everything)
        exchange.respond(200, admin_body(True, "Successfully wiped all data", exchange.request_id))

    def _permit(self, exchange: Exchange, name: str) -> None:
        """The prefixes of API keys hold here as well. No name is everything, which no prefix covers. Raises Forbidden."""
        if not self._gate.decides:
            event = self._notifications.schema.resolve(name)
            may(exchange, "admin", name if event is None else event.name)

    async def _everything(self) -> bool:
        await self._notifications.wipe_all()
        return True

    async def _timed(self, operation: str, work: Callable[[], Awaitable[bool]]) -> bool:
        begun = self._clock.monotonic()
        done = False
        self._measures.deletes.value += 1
        try:
            found = await work()
            done = True
        finally:
            self._measures.deletes.value -= 1
            self._measures.operation(operation, self._clock.monotonic() - begun, ok=done)
        return found

    def _route(self, path: str, handler: Handler, body: int) -> Route:
        summary, openapi = OPERATIONS["DELETE", path]
        action = "" if self._gate.decides else "admin"
        return Route("DELETE", path, handler, summary, action, admin_problem, body, openapi=openapi)


def _parsed(given: str) -> tuple[str, int]:
    """The name and the seq in the id of a notification. Raises BadInput."""
    name, at, digits = given.partition("@")
    name, digits = name.strip(), digits.strip()
    if not at or not name or not digits:
        raise BadInput("notification_id must be in '<stream>@<sequence>' format")
    try:
        seq = parse_id(digits, "notification_id sequence")
    except BadInput:
        raise BadInput("notification_id sequence must be a positive integer") from None
    if seq == 0:
        raise BadInput("notification_id sequence must be greater than zero")
    if seq > limits.SEQ_MAX:
        raise Missing("Notification not found")
    return name, seq


def _wipe_body(exchange: Exchange) -> WipeBody:
    """Read as a framework would: a body of another type is not looked at, and fields beside the one are nobody's business.
    Raises NotJson, WrongShape."""
    media = (exchange.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if media != b"application/json" and not (media.startswith(b"application/") and media.endswith(b"+json")):
        raise NotJson("Content type error")
    try:
        decode(exchange.body, _ANY)
    except BadRequest as error:
        raise NotJson(f"Json deserialize error: {error.message}") from None
    try:
        return decode(exchange.body, _WIPE)
    except BadRequest as error:
        raise WrongShape(f"Json deserialize error: {error.message}") from None
