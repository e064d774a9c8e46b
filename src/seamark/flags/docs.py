"""What the OpenAPI document says about tenants, namespaces, tokens and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.flags.table import Operation

Described = Mapping[str, Any]


def query(name: str, kind: str, text: str) -> Described:
    return {"name": name, "in": "query", "required": False, "schema": {"type": kind}, "description": text}


def header(name: str, text: str) -> Described:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}


def json(example: object, text: str) -> Described:
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


def body(example: object) -> Described:
    return {"required": True, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


def paging(*, most: int = 200) -> list[Described]:
    return [
        query("limit", "integer", f"rows in a page: 50 unless given, at most {most}"),
        query("cursor", "string", "the `next_cursor` of the page before"),
    ]


REQUEST_ID = "01KA9Z6W3YB8QX2M4N5P6R7S8T"
_TENANT_BODY = {"slug": "acme", "display_name": "Acme", "login_mode": "email_domain", "email_domain": "acme.example"}
_TENANT = {
    **_TENANT_BODY, "sso_provider": None, "created_at": "2026-02-25T18:58:23.120Z", "namespace_count": 1,
}  # fmt: skip
_NAMESPACE_BODY = {"slug": "billing", "display_name": "Billing", "description": "everything about money"}
_NAMESPACE = {
    "tenant": "acme", **_NAMESPACE_BODY, "created_at": "2026-02-25T18:59:01.004Z", "current_version": 42,
}  # fmt: skip
_TOKEN_BODY = {
    "type": "namespace-client", "name": "the shop's pages", "tenant": "acme", "namespace": "billing",
    "environment": "production", "expires_at": "2027-01-01T00:00:00Z", "allowed_origins": ["https://shop.acme.example"],
}  # fmt: skip
_TOKEN = {
    "id": "tok_01HV5XK1EFQT8N3JRDCP7MW04A", **_TOKEN_BODY, "created_at": "2026-02-25T19:00:40.500Z",
    "created_by": "tok_01HV5XJ8W2Z4K6M8P0R2T4V6X8", "expires_at": "2027-01-01T00:00:00.000Z", "revoked_at": None,
}  # fmt: skip
_SECRET = "exd_client_" + "0123456789abcdefghijklmnopqrstuvwxyzAB"
_ENTRY = {
    "sequence": 3, "at": "2026-02-25T19:00:40.500Z", "actor": "tok_01HV5XJ8W2Z4K6M8P0R2T4V6X8", "action": "token.mint",
    "subject": "tok_01HV5XK1EFQT8N3JRDCP7MW04A", "tenant": "acme", "namespace": "billing", "request_id": REQUEST_ID,
    "before": None, "after": _TOKEN,
}  # fmt: skip


def _with_id(**facts: object) -> dict[str, object]:
    return {**facts, "request_id": REQUEST_ID}


_OWNED = "/api/v1/tenants/{tenant}/namespaces"

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/tenants"): (
        "List the tenants that the token covers, in order of slug",
        "tenant.read",
        {
            "parameters": paging(),
            "responses": {
                "200": json(_with_id(tenants=[_TENANT], next_cursor=None), "`next_cursor` is null at the end")
            },
        },
    ),
    ("POST", "/api/v1/tenants"): (
        "Make a tenant",
        "tenant.create",
        {
            "requestBody": body(_TENANT_BODY),
            "responses": {"201": json(_with_id(tenant={**_TENANT, "namespace_count": 0}), "made")},
        },
    ),
    ("GET", "/api/v1/tenants/{tenant}"): (
        "A tenant",
        "tenant.read",
        {"responses": {"200": json(_with_id(tenant=_TENANT), "`namespace_count` is what it owns now")}},
    ),
    ("GET", "/api/v1/namespaces"): (
        "List the namespaces that the token covers, in order of tenant and slug",
        "namespace.read",
        {
            "parameters": [*paging(), query("tenant", "string", "only those of this tenant")],
            "responses": {
                "200": json(_with_id(namespaces=[_NAMESPACE], next_cursor=None), "`next_cursor` is null at the end")
            },
        },
    ),
    ("GET", _OWNED): (
        "List the namespaces of a tenant, in order of slug",
        "namespace.read",
        {
            "parameters": paging(),
            "responses": {
                "200": json(_with_id(namespaces=[_NAMESPACE], next_cursor=None), "`next_cursor` is null at the end")
            },
        },
    ),
    ("POST", _OWNED): (
        "Make a namespace",
        "namespace.create",
        {
            "requestBody": body(_NAMESPACE_BODY),
            "responses": {
                "201": json(_with_id(namespace={**_NAMESPACE, "current_version": 0}), "made, without a manifest")
            },
        },
    ),
    ("GET", f"{_OWNED}/{{namespace}}"): (
        "A namespace",
        "namespace.read",
        {"responses": {"200": json(_with_id(namespace=_NAMESPACE), "`current_version` is 0 while it has no manifest")}},
    ),
    ("GET", "/api/v1/tokens"): (
        "List the tokens that the token rules over, the oldest first",
        "token.issue",
        {
            "parameters": [
                *paging(),
                query("tenant", "string", "only those of this tenant"),
                query("namespace", "string", "only those of this namespace"),
            ],
            "responses": {
                "200": json(_with_id(tokens=[_TOKEN], next_cursor=None), "revoked and expired ones too, never a secret")
            },
        },
    ),
    ("POST", "/api/v1/tokens"): (
        "Make a token; its secret is in this answer and nowhere else",
        "token.issue",
        {
            "requestBody": body(_TOKEN_BODY),
            "responses": {"201": json(_with_id(token=_TOKEN, secret=_SECRET), "only a digest of the secret is kept")},
        },
    ),
    ("GET", "/api/v1/tokens/{id}"): (
        "A token, without its secret",
        "token.issue",
        {"responses": {"200": json(_with_id(token=_TOKEN), "`revoked_at` is null while it was not revoked")}},
    ),
    ("DELETE", "/api/v1/tokens/{id}"): (
        "Revoke a token: it opens nothing from now on, and streams that it opened end",
        "token.issue",
        {
            "responses": {
                "200": json(
                    _with_id(token={**_TOKEN, "revoked_at": "2026-03-01T08:00:00.000Z"}),
                    "also when it was revoked before, which changes nothing",
                )
            }
        },
    ),
    ("GET", "/api/v1/audit"): (
        "Read the log of changes, the oldest first",
        "audit.read",
        {
            "parameters": [*paging(), query("tenant", "string", "only what is about this tenant")],
            "responses": {
                "200": json(
                    _with_id(entries=[_ENTRY], next_cursor="3", caught_up=True),
                    "`next_cursor` is always there: ask again from it for what is new",
                )
            },
        },
    ),
}
