"""Tenants, namespaces and tokens in memory: what is known, and how it is found. Learning something twice changes nothing."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import TypeVar

from seamark.access.tokens import Token, TokenHolder, TokenRing
from seamark.clock import Clock
from seamark.errors import NotReady, SeamarkError
from seamark.flags.tenancy import Namespace, Tenant
from seamark.telemetry.metrics import Metrics

T = TypeVar("T")
K = TypeVar("K", str, tuple[str, str])


class Roster:
    """Nothing can be found before all of it is known, nor when some of it cannot be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tenants: dict[str, Tenant] = {}
        self._namespaces: dict[tuple[str, str], Namespace] = {}
        self._holders: dict[str, TokenHolder] = {}
        self._tenant_order: list[str] = []
        self._namespace_order: list[tuple[str, str]] = []
        self._token_order: list[str] = []
        self._owned: dict[str, int] = {}  # namespaces of each tenant
        self._issued: dict[str, int] = {}  # and tokens, revoked ones among them
        self._clients: dict[tuple[str, str], list[TokenHolder]] = {}  # those of browsers, by namespace
        self._ring = TokenRing()
        self._listeners: list[Callable[[TokenHolder], None]] = []
        self._trouble: SeamarkError | None = NotReady("tenants and tokens are being loaded")

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

    def token_count(self, tenant: str) -> int:
        return self._issued.get(tenant, 0)

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

    # -- learning

    def _learn_tenant(self, tenant: Tenant) -> None:
        if tenant.slug not in self._tenants:
            self._tenants[tenant.slug] = tenant
            insort(self._tenant_order, tenant.slug)

    def _learn_namespace(self, namespace: Namespace) -> None:
        place = (namespace.tenant, namespace.slug)
        if place not in self._namespaces:
            self._namespaces[place] = namespace
            self._owned[namespace.tenant] = self._owned.get(namespace.tenant, 0) + 1
            insort(self._namespace_order, place)

    def _learn_token(self, token: Token) -> None:
        """A new one, or that one was revoked: nothing else about it ever changes."""
        holder = self._holders.get(token.id)
        if holder is None:
            holder = self._holders[token.id] = TokenHolder(token)
            insort(self._token_order, token.id)
            self._ring.add(holder)
            self._issued[token.tenant] = self._issued.get(token.tenant, 0) + 1
            if token.allowed_origins:
                self._clients.setdefault((token.tenant, token.namespace), []).append(holder)
        elif token.revoked_at is not None and holder.token.revoked_at is None:
            holder.token = token
            for listener in tuple(self._listeners):
                listener(holder)


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
