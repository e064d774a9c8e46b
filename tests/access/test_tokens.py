"""Typed tokens: what each may do where, and how a secret finds its holder."""

from __future__ import annotations

import itertools
import secrets

import msgspec
import pytest

from seamark.access.tokens import TYPES, Token, TokenHolder, TokenRing, digest_of, new_secret, type_of

PLACES = [("", ""), ("acme", ""), ("acme", "billing"), ("acme", "growth"), ("other", ""), ("other", "billing")]
PERMISSIONS = sorted(frozenset[str]().union(*(row.permissions for row in TYPES.values())))
BOUND = {"namespace-read": ("acme", "billing"), "namespace-write": ("acme", "billing"), "tenant-admin": ("acme", "")}


def token(kind: str, **more: object) -> Token:
    row: dict[str, object] = {
        "id": "tok_1",
        "type": kind,
        "name": "n",
        "digest": b"d",
        "created_at": 1,
        "created_by": "c",
    }
    if kind != "superadmin":
        row["tenant"] = "acme"
    if kind.startswith("namespace-"):
        row["namespace"] = "billing"
    if kind == "namespace-client":
        row["environment"] = "production"
    return msgspec.convert({**row, **more}, Token)


def test_what_every_type_permits_and_nothing_else() -> None:
    read = {"namespace.read", "manifest.read", "evaluate"}
    write = read | {"manifest.write", "rollback"}
    tenant = write | {"tenant.read", "namespace.create", "token.issue", "audit.read"}
    assert {name: row.permissions for name, row in TYPES.items()} == {
        "namespace-read": read,
        "namespace-write": write,
        "namespace-client": {"evaluate.public"},
        "tenant-admin": tenant,
        "superadmin": tenant | {"tenant.create"},
    }


@pytest.mark.parametrize("kind", TYPES)
def test_permissions_hold_within_the_binding_alone(kind: str) -> None:
    holder = TokenHolder(token(kind))
    for permission, (tenant, namespace) in itertools.product([*PERMISSIONS, "made.up"], PLACES):
        within = {
            "superadmin": True,
            "tenant-admin": tenant == "acme",
        }.get(kind, (tenant, namespace) == ("acme", "billing"))
        expected = within and permission in TYPES[kind].permissions
        assert holder.permits(permission, tenant, namespace) is expected, (permission, tenant, namespace)
        if tenant:
            assert holder.may(permission, f"{tenant}/{namespace}".rstrip("/")) is expected


def test_scopes_and_names() -> None:
    holder = TokenHolder(token("namespace-client"))
    assert holder.name == "tok_1"
    assert holder.can("evaluate.public")
    assert not holder.can("manifest.read")


def test_life() -> None:
    assert TokenHolder(token("superadmin")).live(10**30)
    expiring = TokenHolder(token("superadmin", expires_at=100))
    assert expiring.live(99)
    assert not expiring.live(100)
    holder = TokenHolder(token("superadmin"))
    holder.token = msgspec.structs.replace(holder.token, revoked_at=5)
    assert not holder.live(1)


@pytest.mark.parametrize("kind", TYPES)
def test_secrets(kind: str) -> None:
    secret = new_secret(kind, secrets.token_bytes)
    assert secret != new_secret(kind, secrets.token_bytes)
    assert secret.startswith(TYPES[kind].prefix)
    assert len(secret) == len(TYPES[kind].prefix) + 38
    assert secret.removeprefix(TYPES[kind].prefix).isalnum()
    assert type_of(secret) == kind


def test_every_letter_of_a_secret_is_as_likely_as_another() -> None:
    """248 is four times 62: the bytes from there on would favour the first letters, so they are passed over."""
    given = iter([bytes(range(248, 256)) * 4 + b"\xf7" * 6, b"\x00" * 38])
    assert new_secret("superadmin", lambda _: next(given)) == "exd_admin_" + "z" * 6 + "0" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exd_admin_",
        "exd_admin_" + "a" * 37,
        "exd_admin_" + "a" * 39,
        "exd_root_" + "a" * 38,
        "exd_admin_" + "a" * 37 + "-",
        "exd_admin_" + "a" * 37 + "\n",
        "exd_admin_" + "é" * 38,
    ],
)
def test_what_is_no_secret(text: str) -> None:
    assert type_of(text) is None


def test_a_ring_finds_holders_by_secret() -> None:
    made = [new_secret("namespace-read", secrets.token_bytes) for _ in range(50)]
    ring = TokenRing(
        TokenHolder(token("namespace-read", id=str(number), digest=digest_of(secret)))
        for number, secret in enumerate(made)
    )
    for number, secret in enumerate(made):
        found = ring.find(secret)
        assert found is not None
        assert found.name == str(number)
        assert ring.find(secret[:-1]) is None
    for stranger in ("", "x", "\ud800", made[0] + " "):
        assert ring.find(stranger) is None


def test_digests_that_begin_alike_are_told_apart() -> None:
    """The first bytes only say where to look."""
    secret = "exd_read_" + "a" * 38
    near = digest_of(secret)[:8] + bytes(24)
    ring = TokenRing([TokenHolder(token("namespace-read", digest=near))])
    assert ring.find(secret) is None
    ring.add(TokenHolder(token("namespace-read", id="tok_2", digest=digest_of(secret))))
    found = ring.find(secret)
    assert found is not None
    assert found.name == "tok_2"
