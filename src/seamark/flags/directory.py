"""The directory of the flags surface: tenants, their namespaces, and the tokens that open them.

All of it is in memory; what changes is written to the log's shelf first, in one commit with its record in the audit log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from seamark import limits
from seamark.access.tokens import TYPES, Reach, Token, digest_of, new_secret
from seamark.clock import Clock
from seamark.errors import (
    BadRequest,
    Corrupt,
    HeadConflict,
    NamespaceExists,
    NamespaceNotFound,
    QuotaExceeded,
    TenantExists,
    TenantNotFound,
    TokenNotFound,
)
from seamark.flags import audit, tenancy, ulid
from seamark.flags.audit import Author
from seamark.flags.roster import Roster
from seamark.flags.tenancy import Namespace, Tenant, namespace_shown, tenant_shown, token_shown
from seamark.log.protocol import Log, News, Put, Shelf
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.telemetry.supervise import supervise

T = TypeVar("T")

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


class Directory(Roster):
    """Belongs to the loop it was made in. Everything but `load` needs it to be loaded.

    Other processes may change the same log. Every change is a record of the audit log, made over the one before it: so this
    process has seen all of them before it adds one, and hears of the others by the log's news.
    """

    def __init__(self, log: Log, clock: Clock, *, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        assert isinstance(log, Shelf), "the flags surface needs an engine that keeps small values"
        super().__init__(clock)
        self._log: Log = log
        self._shelf: Shelf = log
        self._random_bytes = random_bytes
        self._lock = asyncio.Lock()
        self._seen = 0  # the last record of the audit log whose change is known here
        self._follows = False  # whether news counts: only once the rows before it are known
        self._behind = False
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe = log.wakeup.subscribe(self._hear)

    # -- coming up

    async def load(self) -> None:
        """Read everything. What is damaged keeps the whole surface shut: a token that is only half known must not open
        anything, and neither must its neighbours be lost."""
        seen = await audit.head(self._log)  # before the rows: a change while they are read is then seen twice
        try:
            for row in await self._rows(tenancy.TENANTS):
                self._learn_tenant(tenancy.tenant_row.decode(row))
            for row in await self._rows(tenancy.NAMESPACES):
                self._learn_namespace(tenancy.namespace_row.decode(row))
            for row in await self._rows(tenancy.TOKENS):
                self._learn_token(tenancy.token_row.decode(row))
        except Corrupt as damage:
            self._shut(damage)
            return
        self._seen, self._follows = seen, True
        await self._catch_up()
        if self.loading:
            self._trouble = None

    async def close(self) -> None:
        """Nothing is heard any longer. May be called again."""
        self._unsubscribe()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _rows(self, space: str) -> list[bytes]:
        rows: list[bytes] = []
        for _, row in self._shelf.scan(space):
            rows.append(row)
            if len(rows) % _ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return rows

    def _shut(self, damage: Corrupt) -> None:
        _log.error(events.CORRUPT_VALUE, space="flags", error=damage.message)
        self._trouble = damage

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
            owned = self.namespace_count(namespace.tenant)
            _check_room(owned, "NAMESPACES_PER_TENANT_MAX", limits.NAMESPACES_PER_TENANT_MAX)
            _check_room(len(self._namespaces), "NAMESPACES_MAX", limits.NAMESPACES_MAX)
            shown = namespace_shown(namespace)
            entry = author.entry("namespace.create", place[1], tenant=place[0], namespace=place[1], after=shown)
            await self._write(tenancy.namespace_put(namespace), entry)
            return namespace

        return await self._change(create)

    async def mint(self, grant: Grant, author: Author, *, secret: str | None = None) -> tuple[Token, str]:
        """A new token and its secret, which nobody can be told again; `secret` is one that was made elsewhere. Raises
        BadRequest, TenantNotFound, NamespaceNotFound, QuotaExceeded."""

        async def create() -> tuple[Token, str]:
            self._check_grant(grant)
            if grant.tenant:
                issued = self.token_count(grant.tenant)
                _check_room(issued, "TOKENS_PER_TENANT_MAX", limits.TOKENS_PER_TENANT_MAX)
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
            return token

        return await self._change(revoke)

    # -- within

    async def _change(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """One at a time, and to its end also when whoever asked for it has left."""
        self.check()

        async def alone() -> T:
            async with self._lock:
                while True:
                    try:
                        return await change()
                    except HeadConflict:
                        await self._catch_up()  # somebody else was faster: with what they changed, it is judged again

        return await asyncio.shield(alone())

    def _new_id(self, now_ns: int) -> str:
        last = self._token_order[-1].removeprefix(_ID) if self._token_order else ""
        return _ID + ulid.made(now_ns, self._random_bytes(ulid.RANDOM_BYTES), after=last)

    async def _write(self, put: Put, entry: audit.Entry) -> None:
        """Durable and known here when it returns. Raises HeadConflict when not all that came before is known here."""
        receipt = await self._log.append(audit.append(entry, [put], expect_head=self._seen))
        self._advance(receipt.last, entry)
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
                raise BadRequest(f"a {grant.type} token {'needs' if needed else 'takes no'} {name}", name=name)
        if grant.allowed_origins and reach is not Reach.ENVIRONMENT:
            raise BadRequest(f"a {grant.type} token has no allowed_origins", name="allowed_origins")
        if grant.expires_at is not None and grant.expires_at <= self._clock.now_ns():
            raise BadRequest("expires_at is in the past", name="expires_at")
        if grant.tenant:
            self._check_tenant(grant.tenant)
        if grant.namespace and (grant.tenant, grant.namespace) not in self._namespaces:
            message = f"tenant {grant.tenant} has no namespace {grant.namespace}"
            raise NamespaceNotFound(message, tenant=grant.tenant, namespace=grant.namespace)

    # -- hearing

    def _hear(self, news: Sequence[News]) -> None:
        for one in news:
            if one.stream != audit.STREAM or not self._follows:
                continue
            if one.records is None:
                self._fall_behind()
            for record in one.records or ():
                self._advance(record.seq, audit.entry_of(record))

    def _advance(self, seq: int, entry: audit.Entry) -> None:
        if seq > self._seen + 1:
            self._fall_behind()
        elif seq == self._seen + 1:
            self._seen = seq
            try:
                self._refresh(entry)
            except Corrupt as damage:
                self._shut(damage)

    def _refresh(self, entry: audit.Entry) -> None:
        """Learn what the shelf says now of whatever a change was about."""
        thing = entry.action.partition(".")[0]
        if thing == "tenant" and (row := self._shelf.fetch(tenancy.TENANTS, entry.subject.encode())):
            self._learn_tenant(tenancy.tenant_row.decode(row))
        elif thing == "namespace" and (row := self._shelf.fetch(tenancy.NAMESPACES, entry.place.encode())):
            self._learn_namespace(tenancy.namespace_row.decode(row))
        elif thing == "token" and (row := self._shelf.fetch(tenancy.TOKENS, entry.subject.encode())):
            self._learn_token(tenancy.token_row.decode(row))

    def _fall_behind(self) -> None:
        self._behind = True
        if self._task is None or self._task.done():
            self._task = supervise("flags.directory", self._keep_up)

    async def _keep_up(self) -> None:
        while self._behind:
            self._behind = False
            await self._catch_up()

    async def _catch_up(self) -> None:
        async for record in audit.records(self._log, self._seen):
            self._advance(record.seq, audit.entry_of(record))


def _entry_of(author: Author, action: str, before: Token | None, after: Token) -> audit.Entry:
    return author.entry(
        action,
        after.id,
        tenant=after.tenant,
        namespace=after.namespace,
        before=None if before is None else token_shown(before),
        after=token_shown(after),
    )


def _check_room(count: int, name: str, most: int) -> None:
    if count >= most:
        raise QuotaExceeded(f"there are {count} already, and no more may be made", limit=name.lower(), max=most)
