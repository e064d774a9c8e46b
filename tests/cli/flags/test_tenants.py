"""Tenants from a shell."""

from __future__ import annotations

import os

from tests.cli.flags.desk import Desk


def test_tenants_are_made_and_listed(desk: Desk) -> None:
    tenant = os.environ["EXD_NAMESPACE"].partition("/")[0]
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
    shown_to_people = desk.run("tenants", "list", "--text").out
    assert shown_to_people.split()[:4] == ["tenant", "name", "people", "namespaces"]
    assert "at acme.example" in shown_to_people
    assert "by okta" in shown_to_people
    assert "There is a tenant" in desk.run("tenants", "create", f"{tenant}-d", "--sso-provider", "okta", "--text").out


def test_what_cannot_be_made(desk: Desk) -> None:
    tenant = os.environ["EXD_NAMESPACE"].partition("/")[0]
    assert "already" in desk.run("tenants", "create", tenant, "--sso-provider", "okta", status=1).err
    desk.run("tenants", "create", f"{tenant}-c", status=2)
    desk.run("tenants", "create", "No", "--sso-provider", "okta", status=2)
