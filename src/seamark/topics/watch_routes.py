"""Watching topics over HTTP: `POST /v0/watch` makes a session, `GET /v0/watch/{wid}` is its stream."""

from __future__ import annotations

import enum

import msgspec

from seamark.access.keys import KeyRing
from seamark.clock import Clock
from seamark.errors import BadInput, Forbidden, NotAcceptable, Unauthenticated
from seamark.limits import (
    HEARTBEAT_MS_DEFAULT,
    HEARTBEAT_MS_MAX,
    LEGS_PER_SESSION_MAX,
    PAGE_BYTES_DEFAULT,
    PAGE_BYTES_MAX,
    PAGE_RECORDS_DEFAULT,
    SMALL_BODY_BYTES_MAX,
    TOPIC_RECORDS_MAX,
    WATCH_BATCH_BYTES_DEFAULT,
    WATCH_SESSION_SECONDS,
)
from seamark.topics.body import clamped, flag, or_default, parse, query_fields
from seamark.topics.docs import whole
from seamark.topics.model import U32, U64, check_u64, topic_of
from seamark.topics.problem import topics_problem
from seamark.topics.render import Variant, answer
from seamark.topics.sessions import Wanted, WatchSession
from seamark.topics.watch import Start, Watches
from seamark.topics.watch_docs import OPERATIONS
from seamark.wire.exchange import Exchange, Handler, Route

_HEADERS = (
    (b"Content-Type", b"text/event-stream; charset=utf-8"),
    (b"Cache-Control", b"no-store"),
    (b"Connection", b"keep-alive"),
    (b"X-Accel-Buffering", b"no"),
)
_ACCEPTED = frozenset({b"text/event-stream", b"text/*", b"*/*"})


class Consistency(enum.StrEnum):
    EVENTUAL = "eventual"
    STRONG = "strong"


class TopicOptions(msgspec.Struct, frozen=True):
    """Where reading one topic begins."""

    from_seq: U64 = 0
    tail: bool = False

    def __post_init__(self) -> None:
        check_u64(self.from_seq, "from_seq")


class WatchBody(msgspec.Struct, frozen=True):
    """A subscription as a client sends it."""

    topics: dict[str, TopicOptions]
    node: str | tuple[str, ...] | None = None
    limit: U32 = PAGE_RECORDS_DEFAULT
    max_batch_bytes: U64 = WATCH_BATCH_BYTES_DEFAULT
    heartbeat_ms: U64 = HEARTBEAT_MS_DEFAULT
    include_meta: bool = True
    include_tags: bool = False
    include_data: bool = True
    consistency: Consistency = Consistency.EVENTUAL

    def __post_init__(self) -> None:
        check_u64(self.max_batch_bytes, "max_batch_bytes")
        check_u64(self.heartbeat_ms, "heartbeat_ms")


_BODY = msgspec.json.Decoder(WatchBody)


class WatchRoutes:
    """Handlers bound to the watches of one surface."""

    def __init__(
        self, watches: Watches, keys: KeyRing, clock: Clock, *, body_bytes_max: int = SMALL_BODY_BYTES_MAX
    ) -> None:
        self._body_bytes_max = min(body_bytes_max, SMALL_BODY_BYTES_MAX)
        self._watches = watches
        self._keys = keys
        self._clock = clock

    def table(self) -> list[Route]:
        """Rows of the route table. The stream asks for its key itself: which one it takes depends on the session."""
        return [
            self._route("POST", "/v0/watch", self.create, "read", reads=WatchBody),
            self._route("GET", "/v0/watch/{wid}", self.open, ""),
        ]

    async def create(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        body = parse(exchange, _BODY)
        if not 1 <= len(body.topics) <= LEGS_PER_SESSION_MAX:
            raise BadInput(f"topics must name 1 to {LEGS_PER_SESSION_MAX} topics, not {len(body.topics)}")
        for name in body.topics:
            if not exchange.principal.may("read", name):
                raise Forbidden(f"this key may not read topic {name!r}", topic=name)
        self._watches.sessions.collect()
        lenient = flag(query_fields(exchange.query), "lenient", False)
        states = await self._watches.states(list(body.topics), lenient=lenient)
        starts = []
        for name, state in states.items():
            options = body.topics[name]
            starts.append(Start(state, state.marks.head if options.tail else options.from_seq))
        wid = await self._watches.create(self._wanted(body, exchange.principal.name), starts)
        exchange.respond(200, answer(_created(wid, starts), self._clock.monotonic() - begun))

    async def open(self, exchange: Exchange) -> None:
        if not accepts_events(exchange):
            raise NotAcceptable("this is an event stream: ask for it with Accept: text/event-stream")
        watch = self._watches.sessions.find(exchange.params["wid"])
        self._check_key(exchange, watch)
        if exchange.method == "HEAD":
            exchange.stream(headers=_HEADERS)
            return
        last_event_id = exchange.header(b"last-event-id") or b""
        await self._watches.open(watch, last_event_id, lambda: exchange.stream(headers=_HEADERS))

    def _wanted(self, body: WatchBody, owner: str) -> Wanted:
        nodes = (body.node,) if isinstance(body.node, str) else body.node or ()
        return Wanted(
            owner=owner,
            nodes=nodes,
            variant=Variant(meta=body.include_meta, tags=body.include_tags, data=body.include_data),
            records_max=or_default(body.limit, PAGE_RECORDS_DEFAULT, TOPIC_RECORDS_MAX),
            bytes_max=or_default(body.max_batch_bytes, PAGE_BYTES_DEFAULT, PAGE_BYTES_MAX),
            heartbeat_ms=clamped(body.heartbeat_ms, self._watches.heartbeat_ms_min, HEARTBEAT_MS_MAX),
            strong=body.consistency is Consistency.STRONG,
        )

    def _route(self, method: str, path: str, handler: Handler, action: str, *, reads: type | None = None) -> Route:
        summary, operation = OPERATIONS[method, path]
        openapi = whole(operation, reads)
        return Route(method, path, handler, summary, action, topics_problem, self._body_bytes_max, True, openapi)

    def _check_key(self, exchange: Exchange, watch: WatchSession) -> None:
        """The key that made the session opens it, and no other. A server without keys asks nobody."""
        if not self._keys:
            return
        principal = self._keys.authenticate(exchange.headers, exchange.query, in_query=True)
        if principal.name != watch.wanted.owner:
            raise Unauthenticated("this session belongs to another key")
        for stream in watch.topics.streams:  # a restarted server may give the same key less
            if not principal.may("read", topic_of(stream)):
                raise Forbidden(f"this key may not read topic {topic_of(stream)!r}", topic=topic_of(stream))


def accepts_events(exchange: Exchange) -> bool:
    """Whether the client takes an event stream. One that does not say takes anything."""
    ranges = [part for name, value in exchange.headers if name == b"accept" for part in value.split(b",")]
    named = [part for part in ranges if part.strip()]
    return not named or any(_media(part) in _ACCEPTED for part in named)


def _media(media_range: bytes) -> bytes:
    """The media type of a range that is not refused by `q=0`."""
    media, *parameters = media_range.replace(b" ", b"").replace(b"\t", b"").lower().split(b";")
    for parameter in parameters:
        if parameter.startswith(b"q=") and not parameter[2:].strip(b"0."):
            return b""
    return media


def _created(wid: str, starts: list[Start]) -> dict[str, object]:
    return {
        "wid": wid,
        "stream_url": f"/v0/watch/{wid}",
        "session_ttl_ms": WATCH_SESSION_SECONDS * 1_000,
        "topics": {
            topic_of(start.state.name): {
                "from_seq": start.seq,
                "head_seq": start.state.marks.head,
                "earliest_seq": start.state.marks.earliest,
            }
            for start in starts
        },
    }
