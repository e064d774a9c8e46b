"""Tokens over HTTP: `/api/v1/tokens`. A secret is in one answer, the one that made it, and nowhere else."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from seamark import limits
from seamark.access.tokens import TYPES, Reach, Token, TokenHolder
from seamark.errors import BadRequest, TokenNotFound
from seamark.flags import instant
from seamark.flags.answer import answer, listed
from seamark.flags.body import check_line, json_body, page_wanted
from seamark.flags.caller import Callers, author_of
from seamark.flags.directory import Directory, Grant
from seamark.flags.docs import OPERATIONS
from seamark.flags.table import row
from seamark.flags.tenancy import token_shown
from seamark.manifest.paths import is_environment
from seamark.wire.exchange import Exchange, Route

ISSUE = "token.issue"
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token as a client asks for it."""

    type: Literal["namespace-read", "namespace-write", "namespace-client", "tenant-admin", "superadmin"]
    name: str
    tenant: str | None = None
    namespace: str | None = None
    environment: str | None = None
    expires_at: str | None = None
    allowed_origins: list[str] | None = None

    def grant(self) -> Grant:
        """Raises BadRequest."""
        if not self.name:
            raise BadRequest("name must say what the token is for", name="name")
        if self.environment is not None and not is_environment(self.environment):
            raise BadRequest(f"{self.environment[:80]!r} is no name of an environment", name="environment")
        return Grant(
            type=self.type,
            name=check_line(self.name, "name"),
            tenant=self.tenant or "",
            namespace=self.namespace or "",
            environment=self.environment or "",
            expires_at=None if self.expires_at is None else instant.parse(self.expires_at, name="expires_at"),
            allowed_origins=self._origins(),
        )

    def _origins(self) -> tuple[str, ...]:
        origins = self.allowed_origins or []
        if len(origins) > limits.TOKEN_ORIGINS_MAX:
            raise BadRequest(f"allowed_origins holds at most {limits.TOKEN_ORIGINS_MAX}", name="allowed_origins")
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                accepts = "a scheme, a host and perhaps a port, in lower case, as in https://shop.example.com; or *"
                raise BadRequest(f"{origin[:80]!r} is no origin; accepted: {accepts}", name="allowed_origins")
        return tuple(dict.fromkeys(origins))


_BODY = msgspec.json.Decoder(TokenBody)


class TokenRoutes:
    """Handlers bound to one directory."""

    def __init__(self, directory: Directory, callers: Callers) -> None:
        self._directory = directory
        self._callers = callers

    def table(self) -> list[Route]:
        """Rows of the route table."""
        return [
            row(OPERATIONS, "GET", "/api/v1/tokens", self.list),
            row(OPERATIONS, "POST", "/api/v1/tokens", self.mint),
            row(OPERATIONS, "GET", "/api/v1/tokens/{id}", self.get),
            row(OPERATIONS, "DELETE", "/api/v1/tokens/{id}", self.revoke),
        ]

    async def mint(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, ISSUE)
        grant = json_body(exchange, _BODY).grant()
        self._check_issues(holder, grant.type, grant.tenant)
        token, secret = await self._directory.mint(grant, author_of(exchange, holder))
        answer(exchange, {"token": token_shown(token), "secret": secret}, status=201)

    def get(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, ISSUE)
        answer(exchange, {"token": token_shown(self._seen(holder, exchange.params["id"]))})

    def list(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, ISSUE)
        wanted = page_wanted(exchange, "tenant", "namespace")
        tenant, namespace = wanted.fields.get("tenant"), wanted.fields.get("namespace")

        def shown(token: Token) -> bool:
            return (
                tenant in {None, token.tenant}
                and namespace in {None, token.namespace}
                and holder.permits(ISSUE, token.tenant)
            )

        tokens, more = self._directory.tokens(wanted.cursor, wanted.limit, shown)
        listed(exchange, "tokens", [token_shown(token) for token in tokens], tokens[-1].id if more else None)

    async def revoke(self, exchange: Exchange) -> None:
        holder = self._callers.anywhere(exchange, ISSUE)
        seen = self._seen(holder, exchange.params["id"])
        self._check_issues(holder, seen.type, seen.tenant)
        token = await self._directory.revoke(seen.id, author_of(exchange, holder))
        answer(exchange, {"token": token_shown(token)})

    def _seen(self, holder: TokenHolder, token_id: str) -> Token:
        """Those of others are not there at all. Raises TokenNotFound."""
        found = self._directory.holder(token_id)
        if found is None or not holder.permits(ISSUE, found.token.tenant):
            raise TokenNotFound("there is no such token", id=token_id)
        return found.token

    def _check_issues(self, holder: TokenHolder, token_type: str, tenant: str) -> None:
        """Whoever rules a tenant issues tokens for its namespaces, and those above come from above. Raises Forbidden."""
        within = tenant if TYPES[token_type].reach < Reach.TENANT else ""
        if not holder.permits(ISSUE, within):
            raise self._callers.forbidden(f"{ISSUE} of type {token_type}")
