"""What a raw watch says. Every record is an event of its own, and its id is a place to resume from: `<seq>@<instance>`,
so that a stream which was removed and made again is recognised."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Gap
from seamark.raw.model import ENCODER, PREFIX, record_json
from seamark.stream.dialect import Close, Span

RETRY_MS = 2_000
HEARTBEAT = b": hb\n\n"


def parse_id(text: str) -> Cursor | None:
    """The cursor in an event id, None when it is not one."""
    digits, at, instance = text.partition("@")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or (at and not instance):
        return None
    return Cursor(int(digits), instance or None)


class RawDialect:
    """Equal for all watches of one stream instance, so they share every byte."""

    __slots__ = ("_instance", "projection")

    def __init__(self, instance: str) -> None:
        self._instance = instance.encode()
        self.projection: Hashable = ("raw", instance)

    def fragment(self, record: Record, live: bool) -> bytes:
        return b"id: %d@%b\nevent: record\ndata: %b\n\n" % (record.seq, self._instance, record_json(record))

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        return b"".join(fragments)


class RawScript:
    """One raw watch."""

    __slots__ = ("_instance", "dialect")

    personal = False

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self.dialect = RawDialect(instance)

    def opening(self) -> bytes:
        return b"retry: %d\n\n" % RETRY_MS

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        return None

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes:
        body = {
            "first": gap.first,
            "last": gap.last,
            "loss": gap.loss,
            "earliest": span.marks.earliest,
            "head": span.marks.head,
        }
        return self._event("gap", body, seq=gap.last)

    def caught_up(self, span: Span) -> bytes:
        if span.live:
            return b""
        return self._event("caught-up", {"head": span.marks.head}, seq=span.to)

    def dropped(self, stream: str, head: int) -> bytes:
        return self._event("dropped", {"stream": stream.removeprefix(PREFIX), "head": head})

    def heartbeat(self) -> bytes:
        return HEARTBEAT

    def closing(self, reason: Close) -> bytes:
        return self._event("closing", {"reason": reason})

    def _event(self, name: str, body: dict[str, object], seq: int | None = None) -> bytes:
        place = "" if seq is None else f"id: {seq}@{self._instance}\n"
        return f"{place}event: {name}\ndata: ".encode() + ENCODER.encode(body) + b"\n\n"
