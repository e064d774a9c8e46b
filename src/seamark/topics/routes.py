"""Topics and their records over HTTP: `/v0/topics`."""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec

from seamark import limits
from seamark.clock import Clock
from seamark.errors import BadInput, BadRequest
from seamark.log.protocol import Selector
from seamark.topics.body import flag, number, parse, parse_or, query_fields
from seamark.topics.diff import DiffBody, Diffs
from seamark.topics.docs import OPERATIONS, whole
from seamark.topics.match import parse_match
from seamark.topics.model import U64, TopicConfig, check_u64, config_of, stream_of
from seamark.topics.problem import topics_problem
from seamark.topics.render import ENCODER, answer, config_dict, list_row, state_dict
from seamark.topics.service import Topics
from seamark.topics.write import WriteBody
from seamark.topics.writes import Writes
from seamark.wire.exchange import Exchange, Handler, Route


class DeleteBody(msgspec.Struct):
    """Which records to delete: what is given must hold, and something must be given."""

    before_seq: U64 | None = None
    match: Any = None

    def __post_init__(self) -> None:
        check_u64(self.before_seq or 0, "before_seq")


class _After(msgspec.Struct):
    """What a list's cursor says."""

    after: str


_CONFIG = msgspec.json.Decoder(TopicConfig)
_DELETE = msgspec.json.Decoder(DeleteBody)
_CURSOR = msgspec.json.Decoder(_After)
_ALL_DEFAULTS = TopicConfig()


class TopicRoutes:
    """Handlers bound to the topics of one log."""

    def __init__(self, topics: Topics, clock: Clock, *, body_bytes_max: int = limits.BODY_BYTES_MAX) -> None:
        self._topics = topics
        self._clock = clock
        self._writes = Writes(topics, clock)
        self._diffs = Diffs(topics, clock)
        self._body_bytes_max = body_bytes_max

    def table(self) -> list[Route]:
        """Rows of the route table."""
        one = "/v0/topics/{topic}"
        return [
            self._route("GET", "/v0/topics", self.list, "read"),
            self._route("PUT", one, self.configure, "admin", reads=TopicConfig),
            self._route("GET", one, self.state, "read", hot=True),
            self._route("DELETE", one, self.remove, "delete"),
            self._route("POST", one, self.write, "write", hot=True, reads=WriteBody),
            self._route("POST", f"{one}/diff", self.diff, "read", hot=True, reads=DiffBody),
            self._route("POST", f"{one}/delete", self.delete, "delete", reads=DeleteBody),
        ]

    # -- records

    def write(self, exchange: Exchange) -> Awaitable[None] | None:
        return self._writes.handle(exchange, exchange.params["topic"])

    def diff(self, exchange: Exchange) -> Awaitable[None] | None:
        return self._diffs.handle(exchange, exchange.params["topic"])

    async def delete(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["topic"]
        body = parse(exchange, _DELETE)
        if body.before_seq is None and body.match is None:
            raise BadInput("give before_seq or match, or both")
        selector = Selector(
            before=None if body.before_seq is None else min(body.before_seq, limits.SEQ_MAX),
            tag=None if body.match is None else parse_match(body.match),
        )
        deleted = await self._topics.log.delete(stream_of(name), selector)
        state = deleted.state
        self._topics.on_deletion(state.name)
        facts: dict[str, object] = {
            "topic": name,
            "deleted": deleted.count,
            "earliest_seq": state.marks.earliest,
            "head_seq": state.marks.head,
            "count": state.count,
            "bytes": state.bytes,
        }
        exchange.respond(200, answer(facts, self._since(begun)))

    # -- topics

    async def configure(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["topic"]
        done = await self._topics.configure(name, parse_or(exchange, _CONFIG, _ALL_DEFAULTS))
        config = config_dict(config_of(done.state.settings))
        facts: dict[str, object] = {"topic": name, "created": done.created, "config": config}
        exchange.respond(201 if done.created else 200, answer(facts, self._since(begun)))

    async def state(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["topic"]
        touch = flag(query_fields(exchange.query), "touch", True)
        topics, activity = self._topics, self._topics.activity
        state = await topics.state(name)
        if touch:
            activity.touch(state.name)
        config = config_of(state.settings)
        facts = state_dict(state, activity.priority(state.name, config), activity.last_read_ms(state.name))
        if config.is_queue:
            facts["queue"] = await topics.queue_facts(state)
        exchange.respond(200, answer(facts, self._since(begun)))

    async def list(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        fields = query_fields(exchange.query)
        size = number(fields, "page_size", limits.TOPICS_LISTED_DEFAULT, 1, limits.TOPICS_LISTED_MAX)
        may = partial(exchange.principal.may, "read")
        states, more = await self._topics.page(fields.get("prefix", ""), after_of(fields.get("cursor", "")), size, may)
        activity = self._topics.activity
        if flag(fields, "touch", False):
            for state in states:
                activity.touch(state.name)
        rows = [list_row(state, activity.priority(state.name, config_of(state.settings))) for state in states]
        facts: dict[str, object] = {"topics": rows}
        if more:
            facts["next_cursor"] = cursor_after(str(rows[-1]["topic"]))
        exchange.respond(200, answer(facts, self._since(begun)))

    async def remove(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["topic"]
        if_empty = flag(query_fields(exchange.query), "if_empty", False)
        existed, routers = await self._topics.remove(name, if_empty=if_empty)
        facts: dict[str, object] = {"topic": name, "deleted": existed, "routers_removed": sorted(routers)}
        exchange.respond(200, answer(facts, self._since(begun)))

    # -- inside

    def _since(self, begun: float) -> float:
        return self._clock.monotonic() - begun

    def _route(
        self, method: str, path: str, handler: Handler, action: str, *, hot: bool = False, reads: type | None = None
    ) -> Route:
        summary, operation = OPERATIONS[method, path]
        openapi, named = whole(operation, reads), "topic" if "{topic}" in path else ""
        return Route(method, path, handler, summary, action, topics_problem, self._body_bytes_max, hot, openapi, named)


def cursor_after(name: str) -> str:
    """The cursor of the page after this name. In an alphabet that means the same in a query."""
    return urlsafe_b64encode(ENCODER.encode({"after": name})).decode()


def after_of(cursor: str) -> str:
    """The name that a cursor says, "" for none. Takes both alphabets, padded or not. Raises BadRequest."""
    if not cursor:
        return ""
    try:
        text = cursor.replace("-", "+").replace("_", "/").replace(" ", "+").rstrip("=")
        return _CURSOR.decode(b64decode(text + "=" * (-len(text) % 4), validate=True)).after
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise BadRequest("the cursor is not one that a list gave out") from None
