"""`GET .../closure`: what a subscription holds at a version, as an archive. The checks come in the order of the contract."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl

from seamark.access.bearer import BEARER, presented
from seamark.clock import Clock
from seamark.errors import BadRequest, ClosureTokenInvalid, ClosureUnavailable, NamespaceNotFound
from seamark.flags import watch_docs
from seamark.flags.caller import Callers
from seamark.flags.directory import Directory
from seamark.flags.etag import matches
from seamark.flags.event_routes import READ
from seamark.flags.signing import Signer
from seamark.flags.table import row
from seamark.flags.tars import Tars
from seamark.flags.versions import Versions
from seamark.limits import SEQ_MAX
from seamark.manifest.subscription import FlagList, from_token
from seamark.wire.exchange import Exchange, Route

PATH = "/api/v1/tenants/{tenant}/namespaces/{namespace}/closure"
_NUMBER = re.compile(r"[1-9][0-9]*")
_SCHEMES = frozenset({BEARER})


class Wanted(NamedTuple):
    """What the query asks for. `subscription` is as it was written, which a signed token is held to."""

    version: int
    flags: FlagList
    subscription: str
    token: str | None


class ClosureRoutes:
    def __init__(
        self, versions: Versions, tars: Tars, *, directory: Directory, callers: Callers, signer: Signer, clock: Clock
    ) -> None:
        self._versions = versions
        self._tars = tars
        self._directory = directory
        self._callers = callers
        self._signer = signer
        self._clock = clock

    def table(self) -> list[Route]:
        return [row(watch_docs.OPERATIONS, "GET", PATH, self.closure, hot=True)]

    async def closure(self, exchange: Exchange) -> None:
        wanted = read_wanted(exchange.query)
        tenant, namespace = exchange.params["tenant"], exchange.params["namespace"]
        if wanted.token is None:
            self._callers.require(exchange, READ, tenant, namespace)
        else:
            self._check_token(exchange, wanted, wanted.token)
        self._callers.namespace_of(tenant, namespace)
        if wanted.version > await self._versions.head(tenant, namespace):
            raise NamespaceNotFound(f"there is no such version of {namespace}", tenant=tenant, namespace=namespace)
        version = await self._versions.at(tenant, namespace, wanted.version)
        if version is None:
            message = f"the files of version {wanted.version} are no longer kept"
            raise ClosureUnavailable(message, namespace=namespace, version=wanted.version)
        closure = version.closure(wanted.flags)
        tag = f'"v{version.number}-{closure.hash}"'.encode()
        headers = ((b"ETag", tag), (b"Cache-Control", b"private, max-age=60"))
        if matches(exchange, tag):
            exchange.respond(304, b"", headers=headers)
            return
        archive = await self._tars.archive(version, closure)
        exchange.respond(200, archive, media=b"application/x-tar", headers=headers)

    def _check_token(self, exchange: Exchange, wanted: Wanted, token: str) -> None:
        """A signed token decides alone; whoever sends a key of somebody else's beside it has mixed something up."""
        tenant, namespace = exchange.params["tenant"], exchange.params["namespace"]
        if wanted.subscription != wanted.flags.token:
            raise ClosureTokenInvalid("the token is not good for this closure, or not any more")
        principal = self._signer.principal_of(
            token, tenant=tenant, namespace=namespace, version=wanted.version, subscription=wanted.flags.canonical
        )
        holder = self._directory.holder(principal)
        if holder is None or not holder.live(self._clock.now_ns()) or not holder.permits(READ, tenant, namespace):
            raise ClosureTokenInvalid("whoever the token was made for may not have this closure any more")
        shown = presented(exchange.headers, _SCHEMES)
        bearer = None if shown is None else self._directory.known(shown.secret)
        if bearer is not None and bearer is not holder:
            raise ClosureTokenInvalid("the token was made for another caller")


def read_wanted(query: bytes) -> Wanted:
    """Raises BadRequest, MalformedList, TooManyFlags."""
    fields: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace"):
        if name in fields and name in {"version", "subscription", "token"}:
            raise BadRequest(f"{name} is given twice", name=name)
        fields[name] = value
    for name in ("version", "subscription"):
        if name not in fields:
            raise BadRequest(f"{name} is required", name=name)
    text = fields["version"]
    if not _NUMBER.fullmatch(text):
        raise BadRequest(f"version must be a whole number from 1 on, not {text[:80]!r}", name="version")
    version = int(text) if len(text) < len(str(SEQ_MAX)) else SEQ_MAX
    subscription = fields["subscription"]
    return Wanted(version, from_token(subscription), subscription, fields.get("token"))
