"""Routers over HTTP: `/v0/routers`."""

from __future__ import annotations

from typing import Any

import msgspec

from seamark import limits
from seamark.access.principal import Principal
from seamark.clock import Clock
from seamark.errors import Forbidden
from seamark.topics.body import number, parse, query_fields
from seamark.topics.docs import whole
from seamark.topics.match import match_tuple, parse_match
from seamark.topics.problem import topics_problem
from seamark.topics.render import answer
from seamark.topics.router_book import RouterBook
from seamark.topics.router_docs import OPERATIONS
from seamark.topics.routers import Guarantee, Router
from seamark.topics.routes import after_of, cursor_after
from seamark.wire.exchange import Exchange, Handler, Route


class RouterBody(msgspec.Struct):
    """A router as a client sends it; what is left out goes back to its default."""

    source: str
    dest: str
    preserve_node: bool = True
    preserve_tag: bool = True
    create_dest: bool = True
    filter: Any = None
    allow_cycle: bool = False
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE

    def router(self, name: str) -> Router:
        """Raises BadInput."""
        return Router(
            name=name,
            source=self.source,
            dest=self.dest,
            preserve_node=self.preserve_node,
            preserve_tag=self.preserve_tag,
            filter=None if self.filter is None else parse_match(self.filter),
            allow_cycle=self.allow_cycle,
            guarantee=self.guarantee,
        )


_BODY = msgspec.json.Decoder(RouterBody)


class RouterRoutes:
    """Handlers bound to the routers of one log."""

    def __init__(self, book: RouterBook, clock: Clock, *, body_bytes_max: int = limits.SMALL_BODY_BYTES_MAX) -> None:
        self._book = book
        self._clock = clock
        self._body_bytes_max = min(body_bytes_max, limits.SMALL_BODY_BYTES_MAX)

    def table(self) -> list[Route]:
        """Rows of the route table."""
        one = "/v0/routers/{router}"
        return [
            self._route("GET", "/v0/routers", self.list, "read"),
            self._route("PUT", one, self.put, "admin", reads=RouterBody),
            self._route("GET", one, self.get, "read"),
            self._route("DELETE", one, self.remove, "delete"),
        ]

    async def put(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["router"]
        _check_allowed(exchange, "admin", name, name)
        body = parse(exchange, _BODY)
        for topic in (body.source, body.dest):
            _check_allowed(exchange, "admin", topic, name)
        router = body.router(name)
        created = await self._book.put(router, create_dest=body.create_dest)
        facts = {"router": name, "created": created, **_definition(router)}
        exchange.respond(201 if created else 200, answer(facts, self._since(begun)))

    async def get(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["router"]
        _check_allowed(exchange, "read", name, name)
        router = self._book.get(name).router
        _check_ends(exchange, "read", router)
        await self._book.forwarding.catch_up(router.source)
        await self._book.forwarding.reach(name)
        standing = self._book.get(name)
        facts = {"router": name, **_definition(standing.router), "forwarded_total": standing.forwarded}
        exchange.respond(200, answer(facts, self._since(begun)))

    async def list(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        fields = query_fields(exchange.query)
        size = number(fields, "page_size", limits.TOPICS_LISTED_DEFAULT, 1, limits.TOPICS_LISTED_MAX)
        prefix, source, dest = fields.get("prefix", ""), fields.get("source"), fields.get("dest")

        def shown(router: Router) -> bool:
            return (
                router.name.startswith(prefix)
                and source in (None, router.source)
                and dest in (None, router.dest)
                and _may(exchange.principal, "read", router)
            )

        found, more = self._book.page(after_of(fields.get("cursor", "")), size, shown)
        rows = [
            {
                "router": router.name,
                "source": router.source,
                "dest": router.dest,
                "guarantee": router.guarantee,
                "forwarded_total": forwarded,
            }
            for router, forwarded in found
        ]
        facts: dict[str, object] = {"routers": rows}
        if more:
            facts["next_cursor"] = cursor_after(found[-1].router.name)
        exchange.respond(200, answer(facts, self._since(begun)))

    async def remove(self, exchange: Exchange) -> None:
        begun = self._clock.monotonic()
        name = exchange.params["router"]
        _check_allowed(exchange, "delete", name, name)
        router = self._book.roster.find(name)
        if router is not None:
            _check_ends(exchange, "delete", router)
        deleted = await self._book.remove(name)
        exchange.respond(200, answer({"router": name, "deleted": deleted}, self._since(begun)))

    # -- inside

    def _since(self, begun: float) -> float:
        return self._clock.monotonic() - begun

    def _route(self, method: str, path: str, handler: Handler, action: str, *, reads: type | None = None) -> Route:
        summary, operation = OPERATIONS[method, path]
        openapi = whole(operation, reads)
        named = "router" if "{router}" in path else ""
        return Route(
            method, path, handler, summary, action, topics_problem, self._body_bytes_max, openapi=openapi, named=named
        )


def _definition(router: Router) -> dict[str, object]:
    """A router in the words of its body, except for what is only an instruction there."""
    return {
        "source": router.source,
        "dest": router.dest,
        "preserve_node": router.preserve_node,
        "preserve_tag": router.preserve_tag,
        "filter": None if router.filter is None else match_tuple(router.filter),
        "allow_cycle": router.allow_cycle,
        "guarantee": router.guarantee,
    }


def _may(principal: Principal, action: str, router: Router) -> bool:
    return all(principal.may(action, name) for name in (router.name, router.source, router.dest))


def _check_ends(exchange: Exchange, action: str, router: Router) -> None:
    """A router belongs to whoever may see both its topics. Raises Forbidden."""
    for topic in (router.source, router.dest):
        _check_allowed(exchange, action, topic, router.name)


def _check_allowed(exchange: Exchange, action: str, name: str, router: str) -> None:
    if exchange.principal.may(action, name):
        return
    if name == router:
        raise Forbidden(f"this key may not {action} router {name}", action=action, resource=name)
    raise Forbidden(f"this key may not {action} topic {name}", action=action, resource=name, topic=name)
