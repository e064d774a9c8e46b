"""Namespaces over HTTP: `/api/v1/tenants/{tenant}/namespaces`, and all that a caller may see at `/api/v1/namespaces`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from seamark.clock import Clock
from seamark.errors import BadRequest
from seamark.flags.answer import answer, listed
from seamark.flags.body import Wanted, check_line, check_slug, json_body, page_wanted
from seamark.flags.caller import Callers, author_of
from seamark.flags.directory import Directory
from seamark.flags.docs import OPERATIONS
from seamark.flags.table import row
from seamark.flags.tenancy import Namespace, namespace_shown
from seamark.wire.exchange import Exchange, Route

Head = Callable[[str, str], Awaitable[int]]
"""Tenant, namespace -> the current version of its manifest, 0 while there is none."""


class NamespaceBody(msgspec.Struct, forbid_unknown_fields=True):
    """A namespace as a client sends it."""

    slug: str
    display_name: str | None = None
    description: str | None = None

    def namespace(self, tenant: str, now_ns: int) -> Namespace:
        """Raises BadRequest."""
        return Namespace(
            tenant=tenant,
            slug=check_slug(self.slug),
            created_at=now_ns,
            display_name=check_line(self.display_name or "", "display_name"),
            description=check_line(self.description or "", "description"),
        )


_BODY = msgspec.json.Decoder(NamespaceBody)


class NamespaceRoutes:
    """Handlers bound to one directory."""

    def __init__(self, directory: Directory, callers: Callers, clock: Clock, *, head: Head) -> None:
        self._directory = directory
        self._callers = callers
        self._clock = clock
        self._head = head

    def table(self) -> list[Route]:
        """Rows of the route table."""
        owned = "/api/v1/tenants/{tenant}/namespaces"
        return [
            row(OPERATIONS, "GET", "/api/v1/namespaces", self.list),
            row(OPERATIONS, "GET", owned, self.list_owned),
            row(OPERATIONS, "POST", owned, self.create),
            row(OPERATIONS, "GET", f"{owned}/{{namespace}}", self.get),
        ]

    async def create(self, exchange: Exchange) -> None:
        holder, tenant = self._callers.tenant(exchange, "namespace.create")
        namespace = json_body(exchange, _BODY).namespace(tenant.slug, self._clock.now_ns())
        await self._directory.create_namespace(namespace, author_of(exchange, holder))
        answer(exchange, {"namespace": {**namespace_shown(namespace), "current_version": 0}}, status=201)

    async def get(self, exchange: Exchange) -> None:
        _, namespace = self._callers.namespace(exchange, "namespace.read")
        answer(exchange, {"namespace": await self._shown(namespace)})

    async def list(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, "namespace.read")
        wanted = page_wanted(exchange, "tenant")
        tenant = wanted.fields.get("tenant")

        def shown(one: Namespace) -> bool:
            return tenant in {None, one.tenant} and holder.permits("namespace.read", one.tenant, one.slug)

        await self._list(exchange, wanted, shown)

    async def list_owned(self, exchange: Exchange) -> None:
        _, tenant = self._callers.tenant(exchange, "namespace.read")
        await self._list(exchange, page_wanted(exchange), lambda one: one.tenant == tenant.slug)

    async def _list(self, exchange: Exchange, wanted: Wanted, shown: Callable[[Namespace], bool]) -> None:
        namespaces, more = self._directory.namespaces(_after(wanted.cursor), wanted.limit, shown)
        rows = [await self._shown(one) for one in namespaces]
        listed(exchange, "namespaces", rows, f"{namespaces[-1].tenant}/{namespaces[-1].slug}" if more else None)

    async def _shown(self, namespace: Namespace) -> dict[str, object]:
        version = await self._head(namespace.tenant, namespace.slug)
        return {**namespace_shown(namespace), "current_version": version}


def _after(cursor: str) -> tuple[str, str]:
    tenant, slash, slug = cursor.partition("/")
    if cursor and not slash:
        raise BadRequest("the cursor is not one that a list gave out", name="cursor")
    return tenant, slug
