"""Where the closures of a server are, and who is told the secret: the server that was named, and nobody else."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seamark.client.address import Address, read_address
from seamark.client.flags.subscription import closure_target
from seamark.client.flags.track import Fetch
from seamark.errors import BadField
from seamark.manifest.paths import is_slug
from seamark.manifest.subscription import FlagList

_OWNER = re.compile(r".*/api/v1/tenants/([a-z][a-z0-9-]{0,62})/namespaces/[a-z][a-z0-9-]{0,62}/closure\?.*")
_SUPERADMIN = "exd_admin_"
_TOKEN = re.compile(r"[!-~]+")


class NoPlace(Exception):
    """Nobody said where a closure is, and the tenant that it could be asked for by is not known."""


class Server:
    """One server as one token sees it."""

    __slots__ = ("_base", "_token", "tenant")

    def __init__(self, url: str, token: str, tenant: str | None) -> None:
        try:
            address = read_address(url.rstrip("/"))
        except ValueError as error:
            raise BadField(f"the server's address: {error}", name="url") from None
        if "?" in address.target or not _TOKEN.fullmatch(token):
            raise BadField("a server has an address without a query, and a token of plain letters", name="url")
        if tenant is not None and not is_slug(tenant):
            raise BadField(f"{tenant!r:.80} cannot be the slug of a tenant", name="tenant")
        if tenant is None and token.startswith(_SUPERADMIN):
            raise BadField("a superadmin's token serves many tenants: say which", name="tenant")
        self._base = Address(address.origin, address.target.rstrip("/"))
        self._token = token
        self.tenant = tenant

    @property
    def owner(self) -> str | None:
        """The tenant, where a subscription has to name it."""
        return self.tenant if self._token.startswith(_SUPERADMIN) else None

    @property
    def name(self) -> str:
        return self._base.url

    def below(self, target: str) -> Address:
        return Address(self._base.origin, self._base.target + target)

    def headers(self, address: Address, **more: str) -> Mapping[str, str]:
        """What a request to this address may carry: whoever else is asked is not told who asks."""
        if address.origin != self._base.origin:
            return more
        return {"Authorization": f"Bearer {self._token}", **more}

    def closure(self, fetch: Fetch, slug: str, wanted: FlagList) -> Address:
        """Where to fetch from: the very address that was told, unless there is none, or it gives away what is encrypted
        everywhere else. Raises NoPlace."""
        if fetch.url is not None:
            try:
                told = read_address(fetch.url)
            except ValueError as error:
                raise NoPlace(f"the address of a snapshot: {error}") from None
            self._learn(told)
            if told.origin.is_secure or not self._base.origin.is_secure:
                return told
        if self.tenant is None:
            raise NoPlace("the tenant is not known, so a closure cannot be asked for by its version")
        return self.below(closure_target(self.tenant, slug, fetch.version, wanted))

    def _learn(self, told: Address) -> None:
        found = _OWNER.fullmatch(told.target)
        if found is not None and self.tenant is None:
            self.tenant = found[1]
