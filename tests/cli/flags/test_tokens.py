"""Tenants, namespaces and tokens from a shell."""

from __future__ import annotations

import os

import pytest

from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import ONE


def test_tokens_are_made_used_listed_and_revoked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    place = os.environ["EXD_NAMESPACE"]
    tenant = place.partition("/")[0]
    made = desk.run("tokens", "mint", "--type", "namespace-write", "--name", "ci", "--namespace", place).lines[0]
    assert (made["event"], made["type"]) == ("minted", "namespace-write")
    (desk.folder / "token").write_text(made["secret"] + "\n")
    desk.run("push", desk.write(ONE), "--token-file", str(desk.folder / "token"))
    client = (
        "tokens",
        "mint",
        "--type",
        "namespace-client",
        "--name",
        "shop",
        "--namespace",
        place,
        "--environment",
        "production",
    )
    said = desk.run(*client, "--allowed-origin", "https://a.example", "--expires-at", "2999-01-01T00:00:00Z", "--text")
    assert "shown this once" in said.out
    rows = desk.run("tokens", "list", "--tenant", tenant)
    assert [row["type"] for row in rows.lines] == ["namespace-write", "namespace-client"]
    assert rows.lines[1]["expires_at"] == "2999-01-01T00:00:00.000Z"
    assert made["secret"] not in rows.out
    gone = desk.run("tokens", "revoke", made["id"]).lines[0]
    assert (gone["event"], gone["id"]) == ("revoked", made["id"])
    shown = " ".join(desk.run("tokens", "list", "--tenant", tenant, "--text").out.split())
    assert shown.startswith("id type for name ends")
    assert "revoked" in shown
    assert "is revoked since" in desk.run("tokens", "revoke", made["id"], "--text").out
    desk.run("push", desk.write(ONE), "--token-file", str(desk.folder / "token"), status=3)
    desk.run("tokens", "revoke", "tok_x", status=2)
    desk.run("tokens", "mint", "--type", "tenant-admin", "--name", "boss", "--tenant", tenant)
    desk.run("tokens", "mint", "--type", "tenant-admin", "--name", "boss", status=2)


def test_tenants_and_namespaces(desk: Desk) -> None:
    place = os.environ["EXD_NAMESPACE"]
    tenant = place.partition("/")[0]
    shown = [row for row in desk.run("tenants", "list").lines if row["slug"] == tenant]
    assert [(row["login_mode"], row["email_domain"], row["namespace_count"]) for row in shown] == [
        ("email_domain", "acme.example", 1)
    ]
    made = desk.run("tenants", "create", f"{tenant}-b", "--sso-provider", "okta", "--display-name", "B").lines[0]
    assert (made["event"], made["slug"], made["login_mode"], made["display_name"]) == (
        "created",
        f"{tenant}-b",
        "sso",
        "B",
    )
    assert "already" in desk.run("tenants", "create", tenant, "--sso-provider", "okta", status=1).err
    desk.run("tenants", "create", f"{tenant}-c", status=2)
    assert "push a manifest" in desk.run("namespaces", "create", f"{tenant}/growth", "--text").out
    desk.run("namespaces", "create", f"{tenant}/growth", status=1)
    rows = desk.run("namespaces", "list", "--tenant", tenant).lines
    assert [(row["slug"], row["current_version"]) for row in rows] == [("billing", 0), ("growth", 0)]


def test_lists_are_read_to_their_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.limits.FLAGS_LISTED_MAX", 2)  # of the verb; the server has its own
    tenant = os.environ["EXD_NAMESPACE"].partition("/")[0]
    for slug in ("a", "b", "c", "d"):
        desk.run("namespaces", "create", f"{tenant}/{slug}")
    assert len(desk.run("namespaces", "list", "--tenant", tenant).lines) == 5
