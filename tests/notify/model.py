"""What a notify server has to deliver, worked out naively: lists, loops and whole numbers. Nothing here knows how the server does
it, and no value is ever parsed: whoever asks says what is meant, and writes it down in some other way for the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

SECOND = 1_000_000_000
BASE_URL = "http://localhost"
WILD = "*"

Place = tuple[Fraction, Fraction]
Ring = tuple[Place, ...]  # corners of a convex polygon, in order, the first one not repeated
Event = tuple[str, dict[str, Any]]  # what the stream says: event name and data


@dataclass(frozen=True)
class Kind:
    """An event type: its base, the fields of its key in order, and how its notifications are kept. `cap` 0 and `ttl` 0: no bound."""

    name: str
    base: str
    keys: tuple[str, ...]
    place: str | None = None  # the field that says where
    required: frozenset[str] = frozenset()  # of whoever reads
    cap: int = 0
    ttl: int = 0  # nanoseconds
    latest: bool = False
    history_max: int = 6
    free: bool = False  # it has no schema


@dataclass(frozen=True)
class Condition:
    """On the number or the word of one field."""

    operator: str
    operands: tuple[Fraction | str, ...]

    def holds(self, token: str) -> bool:
        if token in ("", WILD):
            return False
        value = token if isinstance(self.operands[0], str) else Fraction(token)
        first = self.operands[0]
        if self.operator in ("eq", "in"):
            return value in self.operands
        assert not isinstance(value, str)
        assert not isinstance(first, str)
        if self.operator == "between":
            last = self.operands[1]
            assert not isinstance(last, str)
            return first <= value <= last
        return {"gt": value > first, "gte": value >= first, "lt": value < first, "lte": value <= first}[self.operator]


@dataclass(frozen=True)
class Where:
    """What a notification is about: a convex polygon, or some points."""

    corners: Ring
    area: bool
    written: Any  # as its producer wrote it


@dataclass(frozen=True)
class Wish:
    """What a reader wants: by key one word, or a condition, or nothing; and a polygon or a point."""

    words: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    polygon: Ring | None = None
    point: Place | None = None

    def pattern(self, keys: Sequence[str]) -> list[str]:
        return [self.words.get(key, WILD) for key in keys]


@dataclass(frozen=True)
class Stored:
    seq: int
    ts: int
    keys: tuple[str, ...]
    tokens: tuple[str, ...]
    where: Where | None
    event: dict[str, Any]


@dataclass
class Stream:
    head: int = 0
    floor: int = 1  # below it, something went that nobody had asked to remove
    records: list[Stored] = field(default_factory=list)

    @property
    def first(self) -> int:
        return self.records[0].seq if self.records else self.head + 1


@dataclass(frozen=True)
class Span:
    """Which history is asked for. Moments are nanoseconds."""

    from_id: int | None = None
    from_date: int | None = None
    to_id: int | None = None
    to_date: int | None = None

    @property
    def starts(self) -> bool:
        return self.from_id is not None or self.from_date is not None

    @property
    def ends(self) -> bool:
        return self.to_id is not None or self.to_date is not None


class Model:
    """The server as it should be."""

    def __init__(self, kinds: Sequence[Kind], now: int) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.streams = {kind.name: Stream() for kind in kinds if not kind.free}
        self.now = now

    # -- what happens

    def publish(
        self, kind: Kind, tokens: Mapping[str, str], where: Where | None, payload: Any, *, told: bool
    ) -> Stored:
        """`told`: the place is part of the identifier, not of the payload."""
        stream = self.streams.setdefault(kind.name, Stream())
        stream.head += 1
        keys = tuple(sorted(tokens)) if kind.free else kind.keys
        identifier: dict[str, Any] = {key: tokens[key] for key in keys if tokens[key] != WILD}
        if where is not None and told:
            assert kind.place is not None
            identifier[kind.place] = where.written
        event = {
            "data": {"identifier": identifier, "payload": payload},
            "datacontenttype": "application/json",
            "dataschema": f"{BASE_URL}/schema/{kind.name}",
            "id": f"{kind.name}@{stream.head}",
            "sequence": stream.head,
            "source": BASE_URL,
            "specversion": "1.0",
            "time": moment_text(self.now),
            "type": f"int.ecmwf.aviso.{kind.name}",
        }
        stored = Stored(stream.head, self.now, keys, tuple(tokens[key] for key in keys), where, event)
        if kind.latest:
            stream.records = [record for record in stream.records if record.tokens != stored.tokens]
        stream.records.append(stored)
        if kind.cap and len(stream.records) > kind.cap:
            stream.floor = stream.records.pop(0).seq + 1
        return stored

    def delete(self, kind: Kind, seq: int) -> bool:
        stream = self.streams.get(kind.name, Stream())
        before = len(stream.records)
        stream.records = [record for record in stream.records if record.seq != seq]
        return len(stream.records) < before

    def wipe(self, kind: Kind) -> bool:
        if kind.name not in self.streams:
            return False
        self.streams[kind.name].records.clear()
        return True

    def pass_time(self, nanoseconds: int) -> None:
        self.now += nanoseconds
        for name, stream in self.streams.items():
            ttl = self.kinds[name].ttl
            while ttl and stream.records and stream.records[0].ts < self.now - ttl:
                stream.floor = stream.records.pop(0).seq + 1

    # -- what is asked

    def wants(self, wish: Wish, kind: Kind, record: Stored) -> bool:
        if kind.free:
            pattern = [wish.words[key] for key in sorted(wish.words)]
            return len(pattern) == len(record.tokens) and all(map(_fits, pattern, record.tokens))
        if not all(map(_fits, wish.pattern(kind.keys), record.tokens)):
            return False
        tokens = dict(zip(record.keys, record.tokens, strict=True))
        if not all(condition.holds(tokens[key]) for key, condition in wish.conditions.items()):
            return False
        if wish.polygon is None and wish.point is None:
            return True
        where = record.where
        if where is None:
            return False
        if wish.point is not None:
            return where.area and _inside(wish.point, where.corners, strictly=True)
        assert wish.polygon is not None
        if where.area:
            return _touch(where.corners, wish.polygon)
        return any(_inside(place, wish.polygon, strictly=False) for place in where.corners)

    def told(self, kind: Kind, wish: Wish, span: Span, request_id: str, *, watch: bool) -> tuple[list[Event], bool]:
        """All that a stream says when it is opened, but for heartbeats, and whether it goes on with what is live."""
        stream = self.streams.setdefault(kind.name, Stream()) if watch else self.streams.get(kind.name, Stream())
        said = _Said(self.topic(kind, wish), second_text(self.now), request_id)
        if not span.starts:
            said.established()
            return said.events, True
        first, last = self._first(kind, stream, span), self._last(stream, span)
        said.started(span, last if span.ends else None)
        if first < stream.floor:
            said.gap(first, stream.floor - 1, "cap" if kind.cap else "ttl")
        found = [record for record in stream.records if first <= record.seq <= last]
        found = [record for record in found if self.wants(wish, kind, record)]
        said.events += [("replay", record.event) for record in found[: kind.history_max]]
        if len(found) > kind.history_max:
            said.limited(kind.history_max)
            said.closing("end_of_stream")
            return said.events, False
        said.completed()
        if not watch:
            said.closing("end_of_stream")
        return said.events, watch

    def shutdown(self, kind: Kind, wish: Wish, request_id: str) -> Event:
        said = _Said(self.topic(kind, wish), second_text(self.now), request_id)
        said.closing("server_shutdown")
        return said.events[0]

    def topic(self, kind: Kind, wish: Wish) -> str:
        if kind.free:
            return ".".join([kind.name, *(wish.words[key] for key in sorted(wish.words))])
        return ".".join([kind.base, *wish.pattern(kind.keys)])

    def _first(self, kind: Kind, stream: Stream, span: Span) -> int:
        if span.from_id is not None:
            return max(1, span.from_id)
        moment = span.from_date
        assert moment is not None
        found = next((record.seq for record in stream.records if record.ts >= moment), stream.head + 1)
        # What went at the front may have been of that time; with a ttl it is known when it was not.
        recent = kind.ttl and moment > self.now - kind.ttl
        return 1 if found == stream.first and not recent else found

    def _last(self, stream: Stream, span: Span) -> int:
        last = stream.head
        if span.to_id is not None:
            last = min(span.to_id, last)
        if span.to_date is not None:
            after = next((record.seq for record in stream.records if record.ts > span.to_date), stream.head + 1)
            last = after - 1
        return max(last, stream.first - 1)


class _Said:
    def __init__(self, topic: str, timestamp: str, request_id: str) -> None:
        self.events: list[Event] = []
        self._always = {"timestamp": timestamp, "topic": topic}
        self._request = {"request_id": request_id}

    def established(self) -> None:
        body = {"connection_will_close_in_seconds": 3600, "type": "connection_established"}
        self.events.append(("live-notification", {**self._always, **self._request, **body}))

    def started(self, span: Span, last: int | None) -> None:
        body: dict[str, Any] = {
            "batch_size": 100,
            "from_date": None if span.from_date is None else second_text(span.from_date),
            "from_sequence": span.from_id,
            "type": "replay_started",
        }
        if last is not None:
            body["end_sequence"] = last
        self._control({**self._request, **body})

    def gap(self, first: int, last: int, reason: str) -> None:
        self._control(
            {
                "first_sequence": first,
                "last_sequence": last,
                "message": f"Notifications {first} to {last} are no longer stored.",
                "reason": reason,
                "type": "history_gap",
            }
        )

    def limited(self, most: int) -> None:
        message = (
            f"Historical replay limited to {most} messages. Additional historical messages may be available but were not"
            " retrieved."
        )
        self._control({"max_allowed": most, "message": message, "type": "notification_replay_limit_reached"})

    def completed(self) -> None:
        self._control({"type": "replay_completed"})

    def closing(self, reason: str) -> None:
        message = {
            "end_of_stream": "Stream completed",
            "server_shutdown": "Server is shutting down gracefully",
        }[reason]
        self.events.append(
            ("connection-closing", {**self._always, **self._request, "message": message, "reason": reason})
        )

    def _control(self, body: dict[str, Any]) -> None:
        self.events.append(("replay-control", {**self._always, **body}))


# -- texts


def second_text(ns: int) -> str:
    return datetime.fromtimestamp(ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_text(ns: int) -> str:
    """All moments here are whole milliseconds."""
    milliseconds = ns % SECOND // 1_000_000
    text = second_text(ns)
    return text if not milliseconds else f"{text[:-1]}.{milliseconds:03d}Z"


def event_text(event: Event) -> str:
    name, data = event
    body = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"event: {name}\ndata: {body}"


# -- words and places


def _fits(wanted: str, token: str) -> bool:
    return wanted in (WILD, token)


def _side(start: Place, end: Place, place: Place) -> Fraction:
    """Positive to the one side of a line, negative to the other, zero on it."""
    return (end[0] - start[0]) * (place[1] - start[1]) - (end[1] - start[1]) * (place[0] - start[0])


def _edges(ring: Ring) -> list[tuple[Place, Place]]:
    return [(ring[at - 1], ring[at]) for at in range(len(ring))]


def _inside(place: Place, ring: Ring, *, strictly: bool) -> bool:
    sides = [_side(start, end, place) for start, end in _edges(ring)]
    if strictly:
        return all(side > 0 for side in sides) or all(side < 0 for side in sides)
    return all(side >= 0 for side in sides) or all(side <= 0 for side in sides)


def _touch(one: Ring, other: Ring) -> bool:
    """Two convex polygons do not touch exactly when an edge of one of them has the other wholly on its far side."""
    for ring, rest in ((one, other), (other, one)):
        for start, end in _edges(ring):
            within = [_side(start, end, place) for place in ring]
            beyond = [_side(start, end, place) for place in rest]
            if max(within) < min(beyond) or max(beyond) < min(within):
                return False
    return True
