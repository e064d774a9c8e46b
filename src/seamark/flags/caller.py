"""Who is calling, and whether they may. In this order: who they are (401), whether their token permits it there (403), and only
then whether the place exists (404): whoever may not look is told nothing about what there is."""

from __future__ import annotations

from seamark.access.bearer import BEARER, presented
from seamark.access.tokens import TokenHolder
from seamark.errors import Forbidden, NamespaceNotFound, TenantNotFound, Unauthenticated
from seamark.flags import ulid
from seamark.flags.audit import Author
from seamark.flags.directory import Directory
from seamark.flags.tenancy import Namespace, Tenant
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange

_SCHEMES = frozenset({BEARER})


class Callers:
    """Asked by every route of the surface, also at a server that is open otherwise."""

    def __init__(self, directory: Directory, metrics: Metrics) -> None:
        self._directory = directory
        self._strangers = metrics.counter("seamark_flags_denied_total", "unauthorized")
        self._denied = metrics.counter("seamark_flags_denied_total", "forbidden")

    def authenticate(self, exchange: Exchange) -> TokenHolder:
        """Raises Unauthenticated, in the same words whatever is wrong with a token."""
        shown = presented(exchange.headers, _SCHEMES)
        holder = None if shown is None else self._directory.find(shown.secret)
        if holder is None:
            self._strangers.value += 1
            if shown is None:
                raise Unauthenticated("a token is required: send it as 'Authorization: Bearer <token>'")
            raise Unauthenticated("the token is not known here, has expired, or was revoked")
        return holder

    def require(self, exchange: Exchange, permission: str, tenant: str = "", namespace: str = "") -> TokenHolder:
        """Raises Unauthenticated, Forbidden."""
        holder = self.authenticate(exchange)
        if not holder.permits(permission, tenant, namespace):
            raise self.forbidden(permission)
        return holder

    def anywhere(self, exchange: Exchange, permission: str) -> TokenHolder:
        """For lists, which show what the caller may see: it has to have the permission for something. Raises
        Unauthenticated, Forbidden."""
        holder = self.authenticate(exchange)
        if not holder.can(permission):
            raise self.forbidden(permission)
        return holder

    def forbidden(self, permission: str) -> Forbidden:
        """The refusal, counted. It says what is missing and nothing about the place."""
        self._denied.value += 1
        return Forbidden(f"this token does not permit {permission} here", action=permission)

    def tenant(self, exchange: Exchange, permission: str) -> tuple[TokenHolder, Tenant]:
        """The caller, and the tenant of the path. Raises Unauthenticated, Forbidden, TenantNotFound."""
        slug = exchange.params["tenant"]
        holder = self.require(exchange, permission, slug)
        tenant = self._directory.tenant(slug)
        if tenant is None:
            raise TenantNotFound(f"there is no tenant {slug}", tenant=slug)
        return holder, tenant

    def namespace(self, exchange: Exchange, permission: str) -> tuple[TokenHolder, Namespace]:
        """The caller, and the namespace of the path. Raises Unauthenticated, Forbidden, NamespaceNotFound."""
        tenant, slug = exchange.params["tenant"], exchange.params["namespace"]
        holder = self.require(exchange, permission, tenant, slug)
        return holder, self.namespace_of(tenant, slug)

    def namespace_of(self, tenant: str, slug: str) -> Namespace:
        """For callers that may look. Raises NamespaceNotFound."""
        namespace = self._directory.namespace(tenant, slug)
        if namespace is None:
            message = f"there is no namespace {slug} in tenant {tenant}"
            raise NamespaceNotFound(message, tenant=tenant, namespace=slug)
        return namespace


def author_of(exchange: Exchange, holder: TokenHolder) -> Author:
    """Whom the audit log names for a change."""
    return Author(holder.name, ulid.of_request(exchange.request_id))
