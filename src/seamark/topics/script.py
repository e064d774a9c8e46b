"""What a topics watch says, byte for byte: `id`, `event`, `data`, one line each, LF only, compact JSON in a fixed order.

A session on one topic has nothing of its own to say: its id is made of the topic and the place alone, so the dialect
writes it into the burst that all such sessions share. A session on several puts its own id before the shared rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from seamark.limits import WATCH_INLINE_TOPICS_MAX
from seamark.log.record import Record
from seamark.log.watermarks import Gap, Loss, Watermarks
from seamark.stream.dialect import Close, Span
from seamark.stream.pipe import Block
from seamark.topics.cursor import TopicSet, solo_id
from seamark.topics.model import topic_of
from seamark.topics.render import REASONS, Variant
from seamark.topics.sessions import WatchSession

RETRY_MS = 2_000
OPENING = b"retry: %d\n\n" % RETRY_MS
HEARTBEAT = b": hb\n\n"
TOO_OLD = "from_seq_too_old"
_SAID_MAX = 16  # kept of one burst, whose bytes each of them holds again
_ENCODE = msgspec.json.Encoder().encode


class _Ending(NamedTuple):
    """Why the server ended a stream, for clients: with an HTTP status, and when to come back if that helps."""

    code: int
    error: str
    message: str
    retry_after_ms: int | None = None

    def frame(self) -> bytes:
        body = {name: value for name, value in self._asdict().items() if value is not None}
        return b"event: error\ndata: %b\n\n" % _ENCODE(body)


# Where nothing is said the stream simply ends: what there was to say was said.
_ENDINGS = {
    Close.SHUTDOWN: _Ending(503, "shutting_down", "the server is stopping; reconnect to go on", RETRY_MS).frame(),
    Close.REPLACED: _Ending(409, "replaced", "a newer connection took this session over").frame(),
    Close.REVOKED: _Ending(410, "session_gone", "this session is no more; POST /v0/watch makes another").frame(),
    Close.SLOW: _Ending(408, "slow_reader", "nothing was read for too long; reconnect to go on", RETRY_MS).frame(),
    Close.FAULT: _Ending(500, "internal", "something went wrong on our side; reconnect to go on", RETRY_MS).frame(),
}  # fmt: skip


class Shape(NamedTuple):
    """What decides the bytes of a record frame, beside the topic."""

    variant: Variant
    records_max: int
    bytes_max: int
    strong: bool

    def reach(self, marks: Watermarks) -> int:
        """The head as this reader may know it."""
        return marks.synced if self.strong else marks.head


class TopicsDialect:
    """Record frames without their id, for sessions that each put their own before it."""

    __slots__ = ("_burst", "_said", "_shape", "burst_bytes_max", "burst_records_max", "projection")

    def __init__(self, shape: Shape) -> None:
        self._burst: Block | None = None
        self._said: dict[tuple[TopicSet, bytes], Block] = {}
        self._shape = shape
        self.projection: Hashable = (type(self).__name__, shape)
        self.burst_records_max = shape.records_max
        self.burst_bytes_max = shape.bytes_max

    @property
    def form(self) -> Hashable:
        """As in a diff, which shows records the same way."""
        return self._shape.variant

    def fragment(self, record: Record, live: bool) -> bytes:
        return self._shape.variant.record(record)

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        return b'event: record\ndata: {"topic":"%b","records":[%b],"from_seq":%d,"to_seq":%d,"head_seq":%d}\n\n' % (
            topic_of(span.stream).encode(), b",".join(fragments), span.after, span.to, self._shape.reach(span.marks),
        )  # fmt: skip

    def said(self, burst: Block) -> dict[tuple[TopicSet, bytes], Block]:
        """What sessions have made of this live burst so far, by where they stood before it."""
        if self._burst is not burst:
            self._burst = burst
            self._said = {}
        return self._said


class SoloDialect(TopicsDialect):
    """Whole frames, for sessions on one topic. A live burst that reaches the head says so at once."""

    __slots__ = ()

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        id_line = b"id: %b\n" % solo_id(topic_of(span.stream).encode(), span.to)
        frame = id_line + super().assemble(fragments, span)
        if span.live and span.to >= self._shape.reach(span.marks):
            frame += id_line + _caught_up(span, self._shape)
        return frame


@lru_cache(WATCH_INLINE_TOPICS_MAX)
def _dialect(shape: Shape, *, solo: bool) -> TopicsDialect:
    """Few shapes are in use at a time."""
    return SoloDialect(shape) if solo else TopicsDialect(shape)


def script_for(watch: WatchSession) -> WatchScript:
    return SoloScript(watch) if len(watch.topics) == 1 else WatchScript(watch)


class WatchScript:
    """One watch on several topics. The session's own places are what its ids are made of."""

    __slots__ = ("_shape", "_watch", "dialect")

    personal = True

    def __init__(self, watch: WatchSession) -> None:
        wanted = watch.wanted
        self._watch = watch
        self._shape = Shape(wanted.variant, wanted.records_max, wanted.bytes_max, wanted.strong)
        self.dialect = _dialect(self._shape, solo=not self.personal)

    def opening(self) -> bytes:
        return OPENING

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        return self._id_line(span.stream, span.to) + burst

    def live(self, block: Block, span: Span, *, last: bool) -> Block:
        """Readers of the same topics move together, as long as none of them is slow: what one says is said by all."""
        watch = self._watch
        if watch.wanted.nodes:
            watch.settle()
        said = self.dialect.said(block)
        state = (watch.topics, watch.seqs.tobytes())
        found = said.get(state)
        if found is not None:
            watch.seqs[watch.topics.position(span.stream)] = span.to
            return found
        id_line = self._id_line(span.stream, span.to)
        raw = id_line + block.raw
        if last and span.to >= self._shape.reach(span.marks):
            raw += id_line + _caught_up(span, self._shape)
        made = Block(raw)
        if len(said) < _SAID_MAX:
            said[state] = made
        return made

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes:
        """At the start of a connection what was lost at the front is told as a cursor that came too late, unless the topic is
        another. A hole behind records that the reader has seen has its own reason."""
        too_old = first_read and gap.loss is not Loss.RECREATED and gap.first < span.marks.evict_floor
        body = {
            "topic": topic_of(span.stream),
            "reason": TOO_OLD if too_old else REASONS[gap.loss],
            "gap_from": gap.first,
            "gap_to": gap.last,
            "earliest_seq": span.marks.earliest,
            "head_seq": self._shape.reach(span.marks),
        }
        return b"%bevent: tombstone\ndata: %b\n\n" % (self._id_line(span.stream, span.to), _ENCODE(body))

    def caught_up(self, span: Span) -> bytes:
        if span.to < self._shape.reach(span.marks):
            return b""
        return self._id_line(span.stream, span.to) + _caught_up(span, self._shape)

    def dropped(self, stream: str, head: int) -> bytes:
        """A topic that was gone before this connection came had its head where the session stands."""
        self._watch.settle()  # one that was empty has no head, and where the session began is not where it stands
        head = head or self._watch.seqs[self._watch.topics.position(stream)]
        body = {"topic": topic_of(stream), "head_seq": head, "reason": "deleted"}
        return b"%bevent: topic-deleted\ndata: %b\n\n" % (self._id_line(stream, head), _ENCODE(body))

    def heartbeat(self) -> bytes:
        return HEARTBEAT

    def closing(self, reason: Close) -> bytes:
        """What was handed over comes before this, so its id is where to go on."""
        if reason not in _ENDINGS:
            return b""
        self._watch.settle()
        return b"id: %b\n%b" % (self._watch.topics.event_id(self._watch.seqs), _ENDINGS[reason])

    def _id_line(self, stream: str, seq: int) -> bytes:
        """Where the session stands once it has this stream up to `seq`."""
        watch = self._watch
        if watch.wanted.nodes:
            watch.settle()  # records of its own node moved it on without a word
        watch.seqs[watch.topics.position(stream)] = seq
        return b"id: %b\n" % watch.topics.event_id(watch.seqs)


class SoloScript(WatchScript):
    """One watch on one topic."""

    __slots__ = ()

    personal = False

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        return None

    def _id_line(self, stream: str, seq: int) -> bytes:
        return b"id: %b\n" % solo_id(topic_of(stream).encode(), seq)


def _caught_up(span: Span, shape: Shape) -> bytes:
    return b'event: caught-up\ndata: {"topic":"%b","head_seq":%d}\n\n' % (
        topic_of(span.stream).encode(), shape.reach(span.marks),
    )  # fmt: skip
