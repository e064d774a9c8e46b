"""Tenants over HTTP: `/api/v1/tenants`."""

from __future__ import annotations

import re

import msgspec

from seamark.clock import Clock
from seamark.errors import BadRequest
from seamark.flags.answer import answer, listed
from seamark.flags.body import check_line, check_slug, json_body, page_wanted
from seamark.flags.caller import Callers, author_of
from seamark.flags.directory import Directory
from seamark.flags.docs import OPERATIONS
from seamark.flags.table import row
from seamark.flags.tenancy import LoginMode, Tenant, tenant_shown
from seamark.wire.exchange import Exchange, Route

_DOMAIN = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


class TenantBody(msgspec.Struct, forbid_unknown_fields=True):
    """A tenant as a client sends it."""

    slug: str
    login_mode: LoginMode
    display_name: str | None = None
    sso_provider: str | None = None
    email_domain: str | None = None
    initial_admin_user_ids: list[str] | None = None

    def tenant(self, now_ns: int) -> Tenant:
        """Raises BadRequest."""
        return Tenant(
            slug=check_slug(self.slug),
            login_mode=self.login_mode,
            created_at=now_ns,
            display_name=check_line(self.display_name or "", "display_name"),
            sso_provider=self._provider(),
            email_domain=self._domain(),
            initial_admin_user_ids=tuple(
                check_line(user, "initial_admin_user_ids") for user in self.initial_admin_user_ids or ()
            ),
        )

    def _provider(self) -> str | None:
        if (self.login_mode == "sso") != bool(self.sso_provider):
            raise BadRequest("sso_provider belongs to login_mode sso, which needs it", name="sso_provider")
        return check_line(self.sso_provider, "sso_provider") if self.sso_provider else None

    def _domain(self) -> str | None:
        if (self.login_mode == "email_domain") != bool(self.email_domain):
            raise BadRequest("email_domain belongs to login_mode email_domain, which needs it", name="email_domain")
        if not self.email_domain:
            return None
        domain = self.email_domain.lower()
        if not _DOMAIN.fullmatch(domain):
            raise BadRequest(f"{self.email_domain[:80]!r} is no domain of mail addresses", name="email_domain")
        return domain


_BODY = msgspec.json.Decoder(TenantBody)


class TenantRoutes:
    """Handlers bound to one directory."""

    def __init__(self, directory: Directory, callers: Callers, clock: Clock) -> None:
        self._directory = directory
        self._callers = callers
        self._clock = clock

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [
            row(OPERATIONS, "GET", "/api/v1/tenants", self.list),
            row(OPERATIONS, "POST", "/api/v1/tenants", self.create),
            row(OPERATIONS, "GET", "/api/v1/tenants/{tenant}", self.get),
        ]

    async def create(self, exchange: Exchange) -> None:
        holder = self._callers.require(exchange, "tenant.create")
        tenant = json_body(exchange, _BODY).tenant(self._clock.now_ns())
        await self._directory.create_tenant(tenant, author_of(exchange, holder))
        answer(exchange, {"tenant": tenant_shown(tenant, 0)}, status=201)

    def get(self, exchange: Exchange) -> None:
        _, tenant = self._callers.tenant(exchange, "tenant.read")
        answer(exchange, {"tenant": self._shown(tenant)})

    def list(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, "tenant.read")
        wanted = page_wanted(exchange)
        tenants, more = self._directory.tenants(
            wanted.cursor, wanted.limit, lambda tenant: holder.permits("tenant.read", tenant.slug)
        )
        listed(exchange, "tenants", [self._shown(one) for one in tenants], tenants[-1].slug if more else None)

    def _shown(self, tenant: Tenant) -> dict[str, object]:
        return tenant_shown(tenant, self._directory.namespace_count(tenant.slug))
