"""Opening a watch or a replay: where its history starts and ends, and the session that serves it."""

from __future__ import annotations

from functools import partial

import msgspec

from seamark.access.principal import Principal
from seamark.clock import NS_PER_MS, Clock
from seamark.errors import SeamarkError
from seamark.limits import HISTORY_BURST_RECORDS, SEQ_MAX
from seamark.log.protocol import StreamState
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.notify.cloudevent import Renderer
from seamark.notify.eventtype import EventType
from seamark.notify.measures import Measures, Reading
from seamark.notify.options import NotifySettings
from seamark.notify.problem import Endpoint
from seamark.notify.script import EventDialect, EventScript, History
from seamark.notify.service import Notifications
from seamark.notify.start import Edge
from seamark.notify.validate import Interest
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.leg import LegSpec
from seamark.stream.session import Session
from seamark.wire.exchange import Exchange

SURFACE = "notify"
_HEADERS = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-cache"),
    (b"Connection", b"keep-alive"),
    (b"Access-Control-Allow-Origin", b"*"),
    (b"X-Accel-Buffering", b"no"),
)
_FAILURES = frozenset({Close.FAULT, Close.DROPPED, Close.REVOKED, Close.SLOW})


class Window(msgspec.Struct, frozen=True):
    """What of a stream is history to one reader: the seqs `after+1 .. until`. `until` None: nothing is."""

    after: int
    until: int | None = None


class Streams:
    """Opens sessions on one hub. Raises before anything is sent when there cannot be one."""

    def __init__(
        self, notifications: Notifications, hub: Hub, *, options: NotifySettings, measures: Measures, clock: Clock
    ) -> None:
        self._notifications = notifications
        self._hub = hub
        self._options = options
        self._measures = measures
        self._clock = clock
        self._dialects = {
            (event.name, endpoint): self._dialect(event.name, event, endpoint)
            for event in options.schema
            for endpoint in (Endpoint.WATCH, Endpoint.REPLAY)
        }

    async def open(self, exchange: Exchange, endpoint: Endpoint, event: EventType | None, *, name: str, wanted: Interest) -> None:  # fmt: skip
        """Answer with an event stream; `name` is the event type's, also where it has no schema."""
        watches = endpoint is Endpoint.WATCH
        try:
            legs, window = await self._legs(event, wanted, then_live=watches)
            self._hub.admit()
        except SeamarkError as error:
            error.fields["topic"] = wanted.topic
            raise
        dialect = self._dialects.get((name, endpoint)) or self._dialect(name, event, endpoint)
        script = EventScript(
            dialect,
            topic=wanted.topic,
            request_id=exchange.request_id,
            clock=self._clock,
            history=self._history(event, wanted, window),
            beats=watches,
            void=not legs,
            duration_seconds=self._options.duration_seconds,
        )
        reading = self._reading(event, endpoint)
        Session(
            self._hub,
            exchange.stream(headers=_HEADERS),
            script,
            legs,
            surface=SURFACE,
            heartbeat_seconds=self._options.heartbeat_seconds if watches else 0.0,
            heartbeat_always=True,
            deadline_seconds=self._options.duration_seconds if watches else 0.0,
            finite=not watches,
            on_close=self._counting(reading, exchange.principal),
        ).open()

    # -- where it starts and ends

    async def _legs(
        self, event: EventType | None, wanted: Interest, *, then_live: bool
    ) -> tuple[list[LegSpec], Window]:
        """What is read, and the part of it that is history. To replay is to read: what nobody has named before stays unnamed."""
        state: StreamState | None
        if then_live:
            state = await self._notifications.state(wanted.stream, event)
        else:
            state = await self._notifications.found(wanted.stream)
        if state is None:
            return [], Window(0, 0)
        window = await self._window(state, wanted)
        return [self._leg(state, window, event, wanted, then_live=then_live)], window

    async def _window(self, state: StreamState, wanted: Interest) -> Window:
        """What is there now is history, if any was asked for; what comes from now on is live."""
        marks = state.marks
        if wanted.start is None:
            return Window(marks.head)
        after = await self._first(state, wanted.start) - 1
        until = marks.head if wanted.end is None else await self._last(state, wanted.end)
        return Window(min(after, marks.head), max(until, marks.earliest - 1))

    async def _first(self, state: StreamState, start: Edge) -> int:
        if start.seq is not None:
            return max(start.seq, 1)
        assert start.ns is not None, "an edge is a seq or a moment"
        first = await self._notifications.log.seq_at(state.name, _within_clock(start.ns))
        if first == state.marks.earliest and _may_have_lost(state.settings, start.ns, self._clock.now_ns()):
            return 1  # what was lost at the front may be of that time: the reader is told
        return first

    async def _last(self, state: StreamState, end: Edge) -> int:
        if end.seq is not None:
            return min(end.seq, state.marks.head)
        assert end.ns is not None, "an edge is a seq or a moment"
        following = await self._notifications.log.seq_at(state.name, _within_clock(end.ns + 1))
        return min(following - 1, state.marks.head)

    def _leg(
        self, state: StreamState, window: Window, event: EventType | None, wanted: Interest, *, then_live: bool
    ) -> LegSpec:
        options = self._options
        return LegSpec(
            stream=state.name,
            cursor=Cursor(window.after, state.instance),
            filter=wanted.filter,
            until=window.until,
            history_max=None if window.until is None else self._history_max(event),
            limit_ends=True,
            then_live=then_live,
            pause_seconds=options.batch_pause_seconds,
        )

    def _history_max(self, event: EventType | None) -> int:
        return (event and event.history_max) or self._options.history_max

    def _history(self, event: EventType | None, wanted: Interest, window: Window) -> History | None:
        start = wanted.start
        if start is None or window.until is None:
            return None
        return History(
            batch_size=self._options.batch_size,
            most=self._history_max(event),
            seq=start.seq,
            ns=start.ns,
            end=None if wanted.end is None else window.until,
        )

    # -- how it is served

    def _dialect(self, name: str, event: EventType | None, endpoint: Endpoint) -> EventDialect:
        options, reading = self._options, self._reading(event, endpoint)
        renderer = Renderer(name, event, base_url=options.base_url)
        return EventDialect(
            renderer,
            name,
            route=reading.route,
            deliveries=reading.sent,
            batches=self._measures.batches(),
            records_max=options.batch_size if options.batch_pause_seconds else HISTORY_BURST_RECORDS,
        )

    def _reading(self, event: EventType | None, endpoint: Endpoint) -> Reading:
        kind = self._measures.of(event)
        return kind.watch if endpoint is Endpoint.WATCH else kind.replay

    def _counting(self, reading: Reading, caller: Principal) -> partial[None]:
        self._measures.opened(reading, caller)
        return partial(self._closed, reading, caller, self._clock.monotonic())

    def _closed(self, reading: Reading, caller: Principal, begun: float, reason: Close | None) -> None:
        if reason in _FAILURES:
            reading.failed.value += 1
        self._measures.closed(reading, caller, self._clock.monotonic() - begun)


def _within_clock(ns: int) -> int:
    """Moments may lie centuries away; the log's are 64-bit."""
    return min(max(ns, 0), SEQ_MAX)


def _may_have_lost(settings: StreamSettings, ns: int, now: int) -> bool:
    """Whether records from `ns` on may be among those that the stream has lost at its front."""
    if settings.cap_records or settings.cap_bytes or not settings.ttl_ms:
        return True
    return ns <= now - settings.ttl_ms * NS_PER_MS
