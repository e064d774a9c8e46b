"""Tenants and namespaces: what is known of each, how it is kept, and how it is shown."""

from __future__ import annotations

from typing import Literal

import msgspec

from seamark.access.tokens import Token
from seamark.flags import instant
from seamark.log.protocol import Put

TENANTS, NAMESPACES, TOKENS = "flags:tenant", "flags:namespace", "flags:token"
LoginMode = Literal["sso", "email_domain"]
Shown = dict[str, object]

_encode = msgspec.json.Encoder().encode


class Tenant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`created_at` is in nanoseconds since the epoch, here and below."""

    slug: str
    login_mode: LoginMode
    created_at: int
    display_name: str = ""
    sso_provider: str | None = None
    email_domain: str | None = None
    initial_admin_user_ids: tuple[str, ...] = ()


class Namespace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str
    slug: str
    created_at: int
    display_name: str = ""
    description: str = ""


tenant_row = msgspec.json.Decoder(Tenant)
namespace_row = msgspec.json.Decoder(Namespace)
token_row = msgspec.json.Decoder(Token)


def tenant_put(tenant: Tenant) -> Put:
    return Put(TENANTS, tenant.slug.encode(), _encode(tenant))


def namespace_put(namespace: Namespace) -> Put:
    return Put(NAMESPACES, f"{namespace.tenant}/{namespace.slug}".encode(), _encode(namespace))


def token_put(token: Token) -> Put:
    return Put(TOKENS, token.id.encode(), _encode(token))


def tenant_shown(tenant: Tenant, namespace_count: int) -> Shown:
    return {
        "slug": tenant.slug,
        "display_name": tenant.display_name,
        "login_mode": tenant.login_mode,
        "sso_provider": tenant.sso_provider,
        "email_domain": tenant.email_domain,
        "created_at": instant.text(tenant.created_at),
        "namespace_count": namespace_count,
    }


def namespace_shown(namespace: Namespace) -> Shown:
    return {
        "tenant": namespace.tenant,
        "slug": namespace.slug,
        "display_name": namespace.display_name,
        "description": namespace.description,
        "created_at": instant.text(namespace.created_at),
    }


def token_shown(token: Token) -> Shown:
    """Everything but what its secret could be recognised by."""
    return {
        "id": token.id,
        "type": token.type,
        "name": token.name,
        "tenant": token.tenant or None,
        "namespace": token.namespace or None,
        "environment": token.environment or None,
        "allowed_origins": list(token.allowed_origins),
        "created_at": instant.text(token.created_at),
        "created_by": token.created_by,
        "expires_at": None if token.expires_at is None else instant.text(token.expires_at),
        "revoked_at": None if token.revoked_at is None else instant.text(token.revoked_at),
    }
