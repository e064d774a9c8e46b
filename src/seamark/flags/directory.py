"""The directory of the flags surface: tenants, their namespaces, and the tokens that open them.

All of it is in memory; what changes is written to the log's shelf first, in one commit with its record in the audit log.
"""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right, insort
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from seamark import limits
from seamark.access.tokens import TYPES, Reach, Token, TokenHolder, TokenRing, digest_of, new_secret
from seamark.clock import Clock
from seamark.errors import (
    BadRequest,
    Corrupt,
    NamespaceExists,
    NamespaceNotFound,
    NotReady,
    QuotaExceeded,
    SeamarkError,
    TenantExists,
    TenantNotFound,
    TokenNotFound,
)
from seamark.flags import audit, tenancy, ulid
from seamark.flags.audit import Author
from seamark.flags.tenancy import Namespace, Tenant, namespace_shown, tenant_shown, token_shown
from seamark.log.protocol import Log, Put, Shelf
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.telemetry.metrics import Metrics

T = TypeVar("T")
K = TypeVar("K", str, tuple[str, str])

_ID = "tok_"
_ROWS_AT_ONCE = 256  # read from the shelf before the loop goes on
_log = logger("flags")


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a new token is to be. Times are nanoseconds since the epoch."""

    type: str
    name: str = ""
    tenant: str = ""
    namespace: str = ""
    environment: str = ""
    expires_at: int | None = None
    allowed_origins: tuple[str, ...] = ()


class Directory:
    """Belongs to the loop it was made in. Everything but `load` needs it to be loaded."""

    def __init__(self, log: Log, clock: Clock, *, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        assert isinstance(log, Shelf), "the flags surface needs an engine that keeps small values"
        self._log: Log = log
        self._shelf: Shelf = log
        self._clock = clock
        self._random_bytes = random_bytes
        self._lock = asyncio.Lock()
        self._tenants: dict[str, Tenant] = {}
        self._namespaces: dict[tuple[str, str], Namespace] = {}
        self._holders: dict[str, TokenHolder] = {}
        self._tenant_order: list[str] = []
        self._namespace_order: list[tuple[str, str]] = []
        self._token_order: list[str] = []
        self._owned: dict[str, int] = {}  # namespaces of each tenant
        self._clients: dict[tuple[str, str], list[TokenHolder]] = {}  # those of browsers, by namespace
        self._ring = TokenRing()
        self._listeners: list[Callable[[TokenHolder], None]] = []
        self._trouble: SeamarkError | None = NotReady("tenants and tokens are being loaded")

    # -- coming up

    async def load(self) -> None:
        """Read everything. What is damaged keeps the whole surface shut: a token that is only half known must not open
        anything, and neither must its neighbours be lost."""
        try:
            for row in await self._rows(tenancy.TENANTS):
                self._learn_tenant(tenancy.tenant_row.decode(row))
            for row in await self._rows(tenancy.NAMESPACES):
                self._learn_namespace(tenancy.namespace_row.decode(row))
            for row in await self._rows(tenancy.TOKENS):
                self._learn_token(tenancy.token_row.decode(row))
        except Corrupt as damage:
            _log.error(events.CORRUPT_VALUE, space="flags", error=damage.message)
            self._trouble = damage
            return
        self._trouble = None

    def check(self) -> None:
        """Raises NotReady before it is loaded, Corrupt when it cannot be."""
        if self._trouble is not None:
            raise self._trouble

    @property
    def loading(self) -> bool:
        return isinstance(self._trouble, NotReady)

    @property
    def usable(self) -> bool:
        return self._trouble is None

    def measure(self, metrics: Metrics) -> None:
        metrics.gauge("seamark_flags_tenants").value = len(self._tenants)
        metrics.gauge("seamark_flags_namespaces").value = len(self._namespaces)
        metrics.gauge("seamark_flags_tokens").value = len(self._holders)

    async def _rows(self, space: str) -> list[bytes]:
        rows: list[bytes] = []
        for _, row in self._shelf.scan(space):
            rows.append(row)
            if len(rows) % _ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return rows

    # -- looking up

    def find(self, secret: str) -> TokenHolder | None:
        """Whoever has this secret, unless the token is revoked or expired."""
        self.check()
        holder = self._ring.find(secret)
        return holder if holder is not None and holder.live(self._clock.now_ns()) else None

    def known(self, secret: str) -> TokenHolder | None:
        """The same whatever became of the token."""
        self.check()
        return self._ring.find(secret)

    def holder(self, token_id: str) -> TokenHolder | None:
        """By id, whatever became of the token."""
        self.check()
        return self._holders.get(token_id)

    def tenant(self, slug: str) -> Tenant | None:
        self.check()
        return self._tenants.get(slug)

    def namespace(self, tenant: str, slug: str) -> Namespace | None:
        self.check()
        return self._namespaces.get((tenant, slug))

    def namespace_count(self, tenant: str) -> int:
        return self._owned.get(tenant, 0)

    def tenants(
        self, after: str, size: int, may: Callable[[Tenant], bool] = lambda tenant: True
    ) -> tuple[list[Tenant], bool]:
        """Up to `size` that `may` lets through, in order of slug, and whether there are more."""
        self.check()
        return _page(self._tenant_order, after, size, self._tenants.__getitem__, may)

    def namespaces(
        self, after: tuple[str, str], size: int, may: Callable[[Namespace], bool] = lambda namespace: True
    ) -> tuple[list[Namespace], bool]:
        """The same, in order of tenant and slug."""
        self.check()
        return _page(self._namespace_order, after, size, self._namespaces.__getitem__, may)

    def tokens(self, after: str, size: int, may: Callable[[Token], bool]) -> tuple[list[Token], bool]:
        """The same, the oldest first."""
        self.check()
        return _page(self._token_order, after, size, lambda token_id: self._holders[token_id].token, may)

    def live_superadmins(self) -> list[Token]:
        now = self._clock.now_ns()
        holders = self._holders.values()
        return [holder.token for holder in holders if holder.token.type == "superadmin" and holder.live(now)]

    def origin_allowed(self, tenant: str, namespace: str, origin: str) -> bool:
        """Whether pages from there may use some token of a namespace: all that a preflight can ask."""
        now = self._clock.now_ns()
        holders = self._clients.get((tenant, namespace), ())
        return any(allows(holder.token, origin) and holder.live(now) for holder in holders)

    def on_revoke(self, listener: Callable[[TokenHolder], None]) -> Callable[[], None]:
        """Call `listener` at once when a token is revoked. Returns the way to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # -- changing

    async def create_tenant(self, tenant: Tenant, author: Author) -> Tenant:
        """Raises TenantExists, QuotaExceeded."""

        async def create() -> Tenant:
            if tenant.slug in self._tenants:
                raise TenantExists(f"there is a tenant {tenant.slug} already", tenant=tenant.slug)
            _check_room(len(self._tenants), "TENANTS_MAX", limits.TENANTS_MAX)
            shown = tenant_shown(tenant, 0)
            entry = author.entry("tenant.create", tenant.slug, tenant=tenant.slug, after=shown)
            await self._write(tenancy.tenant_put(tenant), entry)
            self._learn_tenant(tenant)
            return tenant

        return await self._change(create)

    async def create_namespace(self, namespace: Namespace, author: Author) -> Namespace:
        """Raises TenantNotFound, NamespaceExists, QuotaExceeded."""
        place = (namespace.tenant, namespace.slug)

        async def create() -> Namespace:
            self._check_tenant(namespace.tenant)
            if place in self._namespaces:
                message = f"tenant {namespace.tenant} has a namespace {namespace.slug} already"
                raise NamespaceExists(message, tenant=namespace.tenant, namespace=namespace.slug)
            _check_room(len(self._namespaces), "NAMESPACES_MAX", limits.NAMESPACES_MAX)
            shown = namespace_shown(namespace)
            entry = author.entry("namespace.create", place[1], tenant=place[0], namespace=place[1], after=shown)
            await self._write(tenancy.namespace_put(namespace), entry)
            self._learn_namespace(namespace)
            return namespace

        return await self._change(create)

    async def mint(self, grant: Grant, author: Author, *, secret: str | None = None) -> tuple[Token, str]:
        """A new token and its secret, which nobody can be told again; `secret` is one that was made elsewhere. Raises
        BadRequest, TenantNotFound, NamespaceNotFound, QuotaExceeded."""

        async def create() -> tuple[Token, str]:
            self._check_grant(grant)
            _check_room(len(self._holders), "TOKENS_MAX", limits.TOKENS_MAX)
            now, shown_once = self._clock.now_ns(), secret or new_secret(grant.type, self._random_bytes)
            token = Token(
                id=self._new_id(now),
                digest=digest_of(shown_once),
                created_at=now,
                created_by=author.name,
                **msgspec.structs.asdict(grant),
            )
            await self._write(tenancy.token_put(token), _entry_of(author, "token.mint", None, token))
            self._learn_token(token)
            return token, shown_once

        return await self._change(create)

    async def revoke(self, token_id: str, author: Author) -> Token:
        """From now on it opens nothing. Once more changes nothing. Raises TokenNotFound."""

        async def revoke() -> Token:
            holder = self._holders.get(token_id)
            if holder is None:
                raise TokenNotFound("there is no such token", id=token_id)
            before = holder.token
            if before.revoked_at is not None:
                return before
            token = msgspec.structs.replace(before, revoked_at=self._clock.now_ns())
            await self._write(tenancy.token_put(token), _entry_of(author, "token.revoke", before, token))
            holder.token = token
            for listener in tuple(self._listeners):
                listener(holder)
            return token

        return await self._change(revoke)

    # -- within

    async def _change(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """One at a time, and to its end also when whoever asked for it has left."""
        self.check()

        async def alone() -> T:
            async with self._lock:
                return await change()

        return await asyncio.shield(alone())

    def _new_id(self, now_ns: int) -> str:
        last = self._token_order[-1].removeprefix(_ID) if self._token_order else ""
        return _ID + ulid.made(now_ns, self._random_bytes(ulid.RANDOM_BYTES), after=last)

    async def _write(self, put: Put, entry: audit.Entry) -> None:
        await self._log.append(audit.append(entry, [put]))
        _log.info(events.FLAGS_CHANGED, action=entry.action, subject=entry.subject, actor=entry.actor)

    def _check_tenant(self, slug: str) -> None:
        if slug not in self._tenants:
            raise TenantNotFound(f"there is no tenant {slug}", tenant=slug)

    def _check_grant(self, grant: Grant) -> None:
        reach = TYPES[grant.type].reach
        for name, value, needed in (
            ("tenant", grant.tenant, reach <= Reach.TENANT),
            ("namespace", grant.namespace, reach <= Reach.NAMESPACE),
            ("environment", grant.environment, reach is Reach.ENVIRONMENT),
        ):
            if bool(value) != needed:
                raise BadRequest(f"a {grant.type} token {'needs a' if needed else 'has no'} {name}", name=name)
        if grant.allowed_origins and reach is not Reach.ENVIRONMENT:
            raise BadRequest(f"a {grant.type} token has no allowed_origins", name="allowed_origins")
        if grant.expires_at is not None and grant.expires_at <= self._clock.now_ns():
            raise BadRequest("expires_at is in the past", name="expires_at")
        if grant.tenant:
            self._check_tenant(grant.tenant)
        if grant.namespace and (grant.tenant, grant.namespace) not in self._namespaces:
            message = f"tenant {grant.tenant} has no namespace {grant.namespace}"
            raise NamespaceNotFound(message, tenant=grant.tenant, namespace=grant.namespace)

    def _learn_tenant(self, tenant: Tenant) -> None:
        self._tenants[tenant.slug] = tenant
        insort(self._tenant_order, tenant.slug)

    def _learn_namespace(self, namespace: Namespace) -> None:
        place = (namespace.tenant, namespace.slug)
        self._namespaces[place] = namespace
        self._owned[namespace.tenant] = self._owned.get(namespace.tenant, 0) + 1
        insort(self._namespace_order, place)

    def _learn_token(self, token: Token) -> None:
        holder = self._holders[token.id] = TokenHolder(token)
        insort(self._token_order, token.id)
        self._ring.add(holder)
        if token.allowed_origins:
            self._clients.setdefault((token.tenant, token.namespace), []).append(holder)


def _entry_of(author: Author, action: str, before: Token | None, after: Token) -> audit.Entry:
    return author.entry(
        action,
        after.id,
        tenant=after.tenant,
        namespace=after.namespace,
        before=None if before is None else token_shown(before),
        after=token_shown(after),
    )


def allows(token: Token, origin: str) -> bool:
    """Whether pages from `origin` may use a token."""
    return origin in token.allowed_origins or "*" in token.allowed_origins


def _page(
    order: Sequence[K], after: K, size: int, get: Callable[[K], T], may: Callable[[T], bool]
) -> tuple[list[T], bool]:
    found: list[T] = []
    for at in range(bisect_right(order, after), len(order)):
        one = get(order[at])
        if may(one):
            if len(found) == size:
                return found, True
            found.append(one)
    return found, False


def _check_room(count: int, name: str, most: int) -> None:
    if count >= most:
        raise QuotaExceeded(f"there are {count} already, and no more may be made", limit=name.lower(), max=most)
