"""Opening a raw watch: where it starts, what it wants, and the session that serves it."""

from __future__ import annotations

from seamark.errors import BadRequest
from seamark.log.protocol import StreamState
from seamark.log.watermarks import Cursor
from seamark.raw.filters import EVERYTHING, parse_filter
from seamark.raw.script import RawScript, parse_id
from seamark.stream.hub import Hub
from seamark.stream.leg import LegSpec
from seamark.stream.session import Session
from seamark.wire import query
from seamark.wire.exchange import Exchange

_QUERY = frozenset({"after", "synced", "filter"})
_HEADERS = (
    (b"Content-Type", b"text/event-stream; charset=utf-8"),
    (b"Cache-Control", b"no-store"),
    (b"X-Accel-Buffering", b"no"),
)


class Watches:
    """Opens sessions on one hub."""

    def __init__(self, hub: Hub, *, heartbeat_seconds: float) -> None:
        self._hub = hub
        self._heartbeat_seconds = heartbeat_seconds

    async def open(self, exchange: Exchange, stream: str) -> None:
        """Answer with an event stream. Raises before anything is sent when the watch cannot be."""
        fields = query.parse(exchange.query, _QUERY)
        wanted = parse_filter(fields["filter"]) if "filter" in fields else EVERYTHING
        synced = query.flag(fields, "synced")
        state = await self._hub.log.state(stream)
        cursor = _start(exchange, fields, state, synced=synced)
        self._hub.admit()
        leg = LegSpec(stream=stream, cursor=cursor, filter=wanted, synced=synced)
        pipe = exchange.stream(headers=_HEADERS)
        script = RawScript(state.instance)
        Session(self._hub, pipe, script, [leg], surface="raw", heartbeat_seconds=self._heartbeat_seconds).open()


def _start(exchange: Exchange, fields: dict[str, str], state: StreamState, *, synced: bool) -> Cursor:
    """A reconnecting client's own place wins over the parameter; with neither, only what is new is sent."""
    resume = exchange.header(b"last-event-id")
    if resume:
        if sum(name == b"last-event-id" for name, _ in exchange.headers) > 1:
            raise BadRequest("Last-Event-ID is given twice")
        cursor = parse_id(resume.decode("utf-8", "replace"))
        if cursor is None:
            raise BadRequest("Last-Event-ID is not an id that this surface gave out")
        return cursor
    if "after" in fields:
        return Cursor(query.number(fields, "after", 0))
    return Cursor(state.marks.synced if synced else state.marks.head, state.instance)
