"""What the event streams of this surface say, byte for byte: `event`, `data`, compact JSON with sorted keys, LF only, no ids.

A loss that nobody asked for is told by an event of our own, `replay-control` of type `history_gap`: clients of the contract ignore
control events of types that they do not know, and the stream goes on behind it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from seamark.clock import Clock
from seamark.limits import HISTORY_BURST_BYTES, HISTORY_BURST_RECORDS
from seamark.log.record import Record
from seamark.log.watermarks import Gap
from seamark.notify.clocktext import seconds_text
from seamark.notify.cloudevent import Renderer
from seamark.notify.scalars import ENCODER
from seamark.stream.dialect import Close, Span
from seamark.telemetry.metrics import Counter

LIVE = "live-notification"
CONTROL = "replay-control"
CLOSING = "connection-closing"
_REASONS = {  # clients know three
    Close.DEADLINE: ("max_duration_reached", "Connection reached maximum duration"),
    Close.SHUTDOWN: ("server_shutdown", "Server is shutting down gracefully"),
}
_END = ("end_of_stream", "Stream completed")
_FAILURES = {  # told in an event of their own, because no reason says as much
    Close.FAULT: ("stream_processing_failed", "the stored notifications could not be read"),
    Close.DROPPED: ("stream_processing_failed", "the stream was removed"),
    Close.REVOKED: ("stream_processing_failed", "the credentials of this stream are not valid any more"),
    Close.SLOW: ("stream_processing_failed", "nothing was read for too long"),
}


def frame(name: str, body: dict[str, object]) -> bytes:
    """One event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), ENCODER.encode(body))


class EventDialect:
    """The notifications of one event type. All streams of a route share the bytes; both routes share what they are made of.
    A burst of history is a page of the log: it is read once, and written at once."""

    __slots__ = ("_batches", "_render", "burst_records_max", "deliveries", "form", "projection")
    burst_bytes_max = HISTORY_BURST_BYTES

    def __init__(
        self,
        renderer: Renderer,
        name: str,
        *,
        route: str,
        deliveries: Counter,
        batches: Counter,
        records_max: int = HISTORY_BURST_RECORDS,
    ) -> None:
        self._render = renderer.event
        self._batches = batches
        self.form: Hashable = ("notify", name)
        self.projection: Hashable = ("notify", name, route)
        self.deliveries = deliveries
        self.burst_records_max = records_max

    def fragment(self, record: Record, live: bool) -> bytes:
        if live:
            return b"event: live-notification\ndata: %b\n\n" % self._render(record)
        return b"event: replay\ndata: %b\n\n" % self._render(record)

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        if not span.live:
            self._batches.value += 1
        return b"".join(fragments)


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Where a stream's history starts and ends, as it is told. `end` None: no end was asked for."""

    batch_size: int
    most: int
    seq: int | None = None  # as it was asked for
    ns: int | None = None
    end: int | None = None


class EventScript:
    """One watch or replay. `history` None: live only. `beats`: it says heartbeats, the first one at once. `void`: there is
    nothing to read, so its history is over when it begins."""

    __slots__ = ("_beats", "_clock", "_completed", "_history", "_request_id", "_seconds", "_topic", "_void", "dialect")

    personal = False

    def __init__(
        self,
        dialect: EventDialect,
        *,
        topic: str,
        request_id: str,
        clock: Clock,
        history: History | None,
        beats: bool,
        duration_seconds: float = 0.0,
        void: bool = False,
    ) -> None:
        self.dialect = dialect
        self._void = void
        self._topic = topic
        self._request_id = request_id
        self._clock = clock
        self._history = history
        self._beats = beats
        self._seconds = duration_seconds
        self._completed = history is None

    def opening(self) -> bytes:
        first = self._established() if self._history is None else self._started(self._history)
        if self._beats:
            first += self.heartbeat()
        return first + self._said(CONTROL, {"type": "replay_completed"}) if self._void else first

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        return None

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes:
        body = {
            "first_sequence": gap.first,
            "last_sequence": gap.last,
            "message": f"Notifications {gap.first} to {gap.last} are no longer stored.",
            "reason": gap.loss,
            "type": "history_gap",
        }
        return self._said(CONTROL, body)

    def caught_up(self, span: Span) -> bytes:
        if self._completed:
            return b""
        self._completed = True
        return self._said(CONTROL, {"type": "replay_completed"})

    def limited(self, span: Span) -> bytes:
        assert self._history is not None, "only history has a limit"
        most = self._history.most
        message = (
            f"Historical replay limited to {most} messages."
            " Additional historical messages may be available but were not retrieved."
        )
        body = {"max_allowed": most, "message": message, "type": "notification_replay_limit_reached"}
        return self._said(CONTROL, body)

    def dropped(self, stream: str, head: int) -> bytes:
        return b""

    def heartbeat(self) -> bytes:
        return self._said("heartbeat", {})

    def closing(self, reason: Close) -> bytes:
        word, message = _REASONS.get(reason, _END)
        body = {"message": message, "reason": word, "request_id": self._request_id}
        return self._failure(reason) + self._said(CLOSING, body)

    def _established(self) -> bytes:
        body = {
            "connection_will_close_in_seconds": int(self._seconds),
            "request_id": self._request_id,
            "type": "connection_established",
        }
        return self._said(LIVE, body)

    def _started(self, history: History) -> bytes:
        body: dict[str, object] = {
            "batch_size": history.batch_size,
            "from_date": None if history.ns is None else seconds_text(history.ns),
            "from_sequence": history.seq,
            "request_id": self._request_id,
            "type": "replay_started",
        }
        if history.end is not None:
            body["end_sequence"] = history.end
        return self._said(CONTROL, body)

    def _failure(self, reason: Close) -> bytes:
        if reason not in _FAILURES:
            return b""
        word, message = _FAILURES[reason]
        body = {"error": word, "message": message, "request_id": self._request_id, "topic": self._topic}
        return frame("error", dict(body))

    def _said(self, name: str, body: dict[str, object] | dict[str, str]) -> bytes:
        return frame(name, {**body, "timestamp": seconds_text(self._clock.now_ns()), "topic": self._topic})
