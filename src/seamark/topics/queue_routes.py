"""Queues over HTTP: `/v0/topics/{topic}/claim` and what comes after it."""

from __future__ import annotations

from functools import partial

import msgspec

from seamark import limits
from seamark.clock import Clock
from seamark.errors import Forbidden, NotAcceptable
from seamark.stream.hub import Hub
from seamark.topics.body import number, parse, query_fields
from seamark.topics.docs import whole
from seamark.topics.problem import topics_problem
from seamark.topics.queue import Queue, Want
from seamark.topics.queue_docs import OPERATIONS
from seamark.topics.queue_model import (
    ClaimBody,
    ExtendBody,
    HeldBody,
    NackBody,
    checked_node,
    claimed_json,
    job_event,
    jobs_wanted,
    tokens_of,
)
from seamark.topics.queues import Queues
from seamark.topics.render import answer
from seamark.topics.slots import StreamSlots
from seamark.topics.watch_routes import accepts_events
from seamark.wire.exchange import Exchange, Handler, Route

_CLAIM = msgspec.json.Decoder(ClaimBody)
_HELD = msgspec.json.Decoder(HeldBody)
_NACK = msgspec.json.Decoder(NackBody)
_EXTEND = msgspec.json.Decoder(ExtendBody)
_STREAM_HEADERS = (
    (b"Content-Type", b"text/event-stream; charset=utf-8"),
    (b"Cache-Control", b"no-store"),
    (b"Connection", b"keep-alive"),
    (b"X-Accel-Buffering", b"no"),
)


class QueueRoutes:
    """Handlers bound to the queues of one log."""

    def __init__(self, queues: Queues, hub: Hub, slots: StreamSlots, clock: Clock, *, body_bytes_max: int) -> None:
        self._queues = queues
        self._hub = hub
        self._slots = slots
        self._clock = clock
        self._body_bytes_max = body_bytes_max

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [
            self._route("POST", "claim", self.claim, "read+write", reads=ClaimBody),
            self._route("POST", "ack", self.ack, "write", reads=HeldBody),
            self._route("POST", "nack", self.nack, "write", reads=NackBody),
            self._route("POST", "extend", self.extend, "write", reads=ExtendBody),
            self._route("GET", "work", self.work, "read+write"),
        ]

    async def claim(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = _allowed(exchange, "read", "write")
        body = parse(exchange, _CLAIM)
        want = Want(checked_node(body.node), jobs_wanted(body.max), body.lease_ms)
        jobs, standing = await self._queues.claim(name, want)
        exchange.respond(200, claimed_json(name, jobs, standing.ready, self._since(begun)))

    async def ack(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = _allowed(exchange, "write")
        body = parse(exchange, _HELD)
        node, tokens = checked_node(body.node), tokens_of(body)
        queue = await self._queues.open(name)
        skipped = await queue.ack(node, body.seqs, tokens)
        facts = {"topic": name, "acked": len(body.seqs) - len(skipped), "skipped": skipped}
        await self._settled(exchange, queue, facts, begun)

    async def nack(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = _allowed(exchange, "write")
        body = parse(exchange, _NACK)
        node, tokens = checked_node(body.node), tokens_of(body)
        queue = await self._queues.open(name)
        delay_ms = min(body.delay_ms, limits.NACK_DELAY_MS_MAX)
        skipped = await queue.nack(node, body.seqs, tokens, delay_ms=delay_ms)
        facts = {"topic": name, "nacked": len(body.seqs) - len(skipped), "skipped": skipped}
        await self._settled(exchange, queue, facts, begun)

    async def extend(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = _allowed(exchange, "write")
        body = parse(exchange, _EXTEND)
        node, tokens = checked_node(body.node), tokens_of(body)
        queue = await self._queues.open(name)
        deadlines, skipped = await queue.extend(node, body.seqs, tokens, lease_ms=body.lease_ms)
        facts = {
            "topic": name,
            "extended": len(body.seqs) - len(skipped),
            "skipped": skipped,
            "deadlines": {str(seq): deadline for seq, deadline in deadlines.items()},
        }
        exchange.respond(200, answer(facts, self._since(begun)))

    async def work(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "read", "write")
        if not accepts_events(exchange):
            raise NotAcceptable("this is an event stream: ask for it with Accept: text/event-stream")
        fields = query_fields(exchange.query)
        most = number(fields, "max", 1, 1, limits.CLAIM_JOBS_MAX)
        lease_ms = number(fields, "lease_ms", -1, 0, limits.SEQ_MAX)
        want = Want(checked_node(fields.get("node", "")), most, None if lease_ms < 0 else lease_ms)
        await self._queues.open(name)  # what is no queue is told before that there is no room
        if exchange.method == "HEAD":
            exchange.stream(headers=_STREAM_HEADERS)
            return
        self._hub.admit()
        owner = exchange.principal.name
        self._slots.take(owner)
        try:
            pipe = partial(exchange.stream, headers=_STREAM_HEADERS)
            released = partial(self._slots.release, owner)
            await self._queues.work(name, want, partial(job_event, name), pipe, released)
        except BaseException:
            self._slots.release(owner)
            raise

    async def _settled(self, exchange: Exchange, queue: Queue, facts: dict[str, object], begun: float) -> None:
        """Answer with how the queue stands afterwards."""
        standing = await self._queues.standing(queue)
        facts |= {"ready": standing.ready, "in_flight": standing.in_flight}
        exchange.respond(200, answer(facts, self._since(begun)))

    def _since(self, begun: float) -> float:
        return self._clock.monotonic() - begun

    def _route(self, method: str, verb: str, handler: Handler, action: str, *, reads: type | None = None) -> Route:
        path = f"/v0/topics/{{topic}}/{verb}"
        summary, operation = OPERATIONS[method, path]
        size = self._body_bytes_max if reads else limits.SMALL_BODY_BYTES_MAX
        return Route(
            method, path, handler, summary, action, topics_problem, size, hot=True, openapi=whole(operation, reads), named="topic",
            key_in_query=verb == "work",
        )  # fmt: skip


def _allowed(exchange: Exchange, *actions: str) -> str:
    """The queue's name, if the caller may do all this to it."""
    name = exchange.params["topic"]
    for action in actions:
        if not exchange.principal.may(action, name):
            raise Forbidden(f"this key may not {action} topic {name}", action=action, resource=name)
    return name
