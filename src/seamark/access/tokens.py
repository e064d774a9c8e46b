"""Typed tokens: what each type is bound to, what it permits there, and who holds one. Secrets are kept as digests only.

Permissions add up and nothing takes one away: what no row grants is refused.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_LETTERS = 38
_FAIR = 256 - 256 % len(_LETTERS)  # bytes from here on would make some letters more frequent
_SHELF_BYTES = 8


class Reach(enum.IntEnum):
    """What a token is bound to; a wider reach covers all that is within."""

    ENVIRONMENT = 1
    NAMESPACE = 2
    TENANT = 3
    INSTALLATION = 4


class TokenType(NamedTuple):
    """One row."""

    name: str
    prefix: str  # of its secret
    reach: Reach
    permissions: frozenset[str]


_READ = frozenset({"namespace.read", "manifest.read", "evaluate"})
_WRITE = _READ | {"manifest.write", "rollback"}
_TENANT = _WRITE | {"tenant.read", "namespace.create", "token.issue", "audit.read"}

TYPES: Mapping[str, TokenType] = MappingProxyType(
    {
        row.name: row
        for row in (
            TokenType("namespace-read", "exd_read_", Reach.NAMESPACE, _READ),
            TokenType("namespace-write", "exd_write_", Reach.NAMESPACE, _WRITE),
            TokenType("namespace-client", "exd_client_", Reach.ENVIRONMENT, frozenset({"evaluate.public"})),
            TokenType("tenant-admin", "exd_tenant_", Reach.TENANT, _TENANT),
            TokenType("superadmin", "exd_admin_", Reach.INSTALLATION, _TENANT | {"tenant.create"}),
        )
    }
)
_SECRET = re.compile(rf"({'|'.join(row.prefix for row in TYPES.values())})[0-9A-Za-z]{{{_SECRET_LETTERS}}}")


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a token; it is stored like this. Times are nanoseconds since the epoch."""

    id: str
    type: str
    name: str
    digest: bytes  # sha256 of the whole secret
    created_at: int
    created_by: str
    tenant: str = ""
    namespace: str = ""
    environment: str = ""
    expires_at: int | None = None
    revoked_at: int | None = None
    allowed_origins: tuple[str, ...] = ()


class TokenHolder:
    """Whoever presents one token. It is one object for the token's whole life: a stream that keeps it learns by `live` when
    the token is revoked."""

    __slots__ = ("_type", "token")

    def __init__(self, token: Token) -> None:
        self.token = token
        self._type = TYPES[token.type]

    @property
    def name(self) -> str:
        return self.token.id

    def can(self, action: str) -> bool:
        """Whether it has a permission anywhere at all."""
        return action in self._type.permissions

    def may(self, action: str, resource: str) -> bool:
        """`resource` is `tenant`, or `tenant/namespace`."""
        tenant, _, namespace = resource.partition("/")
        return self.permits(action, tenant, namespace)

    def permits(self, permission: str, tenant: str = "", namespace: str = "") -> bool:
        """Whether it has a permission for a namespace; without `namespace` for the tenant as a whole, without both for the
        installation."""
        if permission not in self._type.permissions:
            return False
        return self._type.reach is Reach.INSTALLATION or self.covers(tenant, namespace)

    def covers(self, tenant: str, namespace: str = "") -> bool:
        """Whether a place is within its binding, whatever it may do there."""
        token, reach = self.token, self._type.reach
        if reach is Reach.INSTALLATION:
            return True
        if not tenant or tenant != token.tenant:
            return False
        return reach is Reach.TENANT or (bool(namespace) and namespace == token.namespace)

    def live(self, now_ns: int) -> bool:
        """Neither revoked nor expired."""
        token = self.token
        return token.revoked_at is None and (token.expires_at is None or now_ns < token.expires_at)


class TokenRing:
    """All tokens by the digests of their secrets."""

    __slots__ = ("_shelves",)

    def __init__(self, holders: Iterable[TokenHolder] = ()) -> None:
        self._shelves: dict[bytes, list[TokenHolder]] = {}
        for holder in holders:
            self.add(holder)

    def add(self, holder: TokenHolder) -> None:
        self._shelves.setdefault(holder.token.digest[:_SHELF_BYTES], []).append(holder)

    def find(self, secret: str) -> TokenHolder | None:
        """Whoever has this secret. The time that it takes says nothing about how close a wrong one was: where a digest
        leads cannot be chosen, and what stands there is compared in constant time."""
        digest = digest_of(secret)
        found = None
        for holder in self._shelves.get(digest[:_SHELF_BYTES], ()):
            if hmac.compare_digest(holder.token.digest, digest):
                found = holder
        return found


def new_secret(type_name: str, random_bytes: Callable[[int], bytes]) -> str:
    """A secret that nobody can guess: 38 letters of 62, about 226 bits."""
    letters: list[str] = []
    while len(letters) < _SECRET_LETTERS:
        letters += [_LETTERS[byte % len(_LETTERS)] for byte in random_bytes(_SECRET_LETTERS) if byte < _FAIR]
    return TYPES[type_name].prefix + "".join(letters[:_SECRET_LETTERS])


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def type_of(secret: str) -> str | None:
    """The type that a well-formed secret says it has, None for any other text."""
    found = _SECRET.fullmatch(secret)
    return None if found is None else next(row.name for row in TYPES.values() if row.prefix == found[1])
